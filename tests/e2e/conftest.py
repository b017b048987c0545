"""What several end-to-end modules share, because it takes seconds to start."""

from collections.abc import Iterator

import pytest

from tests.support.stack import Parley, running_up


@pytest.fixture(scope="session")
def xdsctl_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    """A Parley for the tests of xdsctl; they belong to one xdist group, so that there is one of it."""
    with running_up(tmp_path_factory.mktemp("xdsctl") / "home", {"PARLEY_WEBHOOK_ALLOW": "127.0.0.0/8"}) as running:
        yield running
