"""A fleet of clients in miniature, in either database."""

from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from controlplane.config.loading import Debounce
from controlplane.rollouts.services import ticking
from tests.services.rollouts.clients import Fleet


@pytest.fixture(autouse=True)
def _no_quiet_time(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else writes here, and the ADS process tells at once who connects."""
    settings.PARLEY = replace(settings.PARLEY, debounce=Debounce(quiet_ms=1))
    monkeypatch.setattr(ticking, "REPORTED_S", 0.0)


@pytest.fixture
def fleet(database: str, tmp_path: Path) -> Fleet:
    """An ADS process in miniature, without clients."""
    return Fleet(tmp_path)
