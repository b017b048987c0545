"""Samples that other tests of the last minute sent count for nobody."""

import pytest

from controlplane.notify.services import samples


@pytest.fixture(autouse=True)
def nobody_sent_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "_samples", samples._Samples())
