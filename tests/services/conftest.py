"""The default environment, in SQLite and, for a test that asks for `database`, in PostgreSQL too."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from controlplane.catalog.services import environment_default_ensure
from controlplane.config import load
from controlplane.databases import databases
from tests.support.keys import ENCRYPTION_KEYS
from tests.support.postgres import postgresql


@contextmanager
def _connected_to(url: str) -> Iterator[None]:
    """Every connection opened from now on goes to another database, until the end."""
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


@pytest.fixture(scope="session")
def migrated_postgresql(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The URL of a PostgreSQL with every table."""
    with postgresql() as url:
        with django_db_blocker.unblock(), _connected_to(url):
            call_command("migrate", verbosity=0, interactive=False)
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[str]:
    """Each test that asks for it runs on both; tables are empty but for the default environment."""
    if request.param == "sqlite":
        environment_default_ensure()
        yield request.param
        return
    with _connected_to(request.getfixturevalue("migrated_postgresql")):
        call_command("flush", verbosity=0, interactive=False, inhibit_post_migrate=True)
        environment_default_ensure()
        yield request.param
