"""Another database for the connections of this process."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connections

from controlplane.config.loading import load
from controlplane.database.aliases import databases
from tests.support.keys import ENCRYPTION_KEYS


@contextmanager
def connected_to(url: str) -> Iterator[None]:
    """Let every connection that is opened from now on go to another database, until the block ends."""
    config = load({"DATABASE_URL": url, "PARLEY_ENCRYPTION_KEYS": ENCRYPTION_KEYS}, directory=settings.PARLEY.home)
    others = connections.configure_settings(databases(config, pooled=False))
    before = {alias: connections.settings[alias] for alias in others}
    _point(others)
    try:
        yield
    finally:
        _point(before)


def _point(chosen: dict[str, dict[str, object]]) -> None:
    for alias, values in chosen.items():
        connections[alias].close()
        del connections[alias]
        connections.settings[alias] = values
