"""The default environment, in SQLite and, for a test that asks for `database`, in PostgreSQL too; and other keys."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.core.management import call_command
from pytest_django.fixtures import Settings
from pytest_django.plugin import DjangoDbBlocker

from controlplane.catalog.lasting import lasting_keys_forget
from controlplane.catalog.sealing import key_ring
from controlplane.catalog.services import environment_default_ensure
from controlplane.config.home import encryption_keys
from tests.support.databases import connected_to, postgresql_empty
from tests.support.keys import UseKeys
from tests.support.postgres import postgresql


@pytest.fixture(scope="session")
def migrated_postgresql(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The URL of a PostgreSQL with every table."""
    with postgresql() as url:
        with django_db_blocker.unblock(), connected_to(url):
            call_command("migrate", verbosity=0, interactive=False)
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[str]:
    """Each test that asks for it runs on both; tables are empty but for the default environment."""
    if request.param == "sqlite":
        environment_default_ensure()
        yield request.param
        return
    with connected_to(request.getfixturevalue("migrated_postgresql")):
        postgresql_empty()
        environment_default_ensure()
        yield request.param


@pytest.fixture
def use_keys(settings: Settings) -> Iterator[UseKeys]:
    """Go on as a process started with these keys would; returns the mark of the first one."""

    def take(*keys: bytes) -> str:
        settings.PARLEY = replace(settings.PARLEY, encryption_keys=keys)
        key_ring.cache_clear()
        lasting_keys_forget()
        return key_ring().marks[0]

    yield take
    key_ring.cache_clear()
    lasting_keys_forget()


@pytest.fixture
def old_key(settings: Settings) -> bytes:
    """The key that everything was made with so far."""
    return encryption_keys(settings.PARLEY)[0]
