"""Somebody in front of a browser, and a fleet that has something to say."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from controlplane.accounts.callers import Callers
from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role
from controlplane.api import strangers
from controlplane.catalog.services import change_apply, environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy, Put
from controlplane.console import live, page_rates
from controlplane.incidents.services import digest
from controlplane.notify.services import samples
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster, parsed, route
from tests.support.principals import somebody

DANA = somebody("dana", ADMIN_SCOPES)
SignIn = Callable[[Role | None, str], Client]
USERS: Any = get_user_model()
# Whatever a data plane or an operator may write: markup, what turns a line around, and what drives a terminal.
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe\x1b[31m"


@pytest.fixture(autouse=True)
def nobody_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another test asked for counts for nobody."""
    monkeypatch.setattr(page_rates._requests, "callers", Callers())
    monkeypatch.setattr(strangers._requests, "callers", Callers())
    monkeypatch.setattr(samples, "_samples", samples._Samples())


@pytest.fixture
def two_environments(settings: Settings) -> None:
    """`default` and `prod`."""
    # Slow hashes are Django's to test; here they would only make a minute pass.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    _two_environments()


@pytest.fixture
def admin(two_environments: None) -> Client:
    """Somebody who may do everything."""
    USERS.objects.create_superuser("admin", password="pw")
    return _signed_in("admin")


@pytest.fixture
def person(two_environments: None) -> Callable[..., Client]:
    """Somebody with one role in one environment."""

    def make(role: Role, environment: str = "default") -> Client:
        name = f"{role.value}-{environment}"
        user = USERS.objects.create_user(name, password="pw")
        RoleGrant.objects.create(user=user, role=role.value, environment=environment)
        return _signed_in(name)

    return make


@pytest.fixture
def fleet(two_environments: None) -> Fleet:
    """Three clients in `default` that run r1 of `pay`; the first refused r2, in hostile words."""
    three = Fleet(3)
    publish(cluster("pay"))
    three.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    text = f"Error adding/updating cluster(s) pay: Invalid path: {HOSTILE}"
    three.refuse(three.send(held("pay", 2)), text, suspects=(held("pay", 2),), kept=(held("pay", 1),), who=slice(1))
    digest()
    return three


@pytest.fixture
def environments(db: None) -> None:
    """`default` and `prod`."""
    _two_environments()


@pytest.fixture
def sign_in(environments: None) -> SignIn:
    """Somebody with one role in one environment; without a role an administrator of everything."""

    def signed_in(role: Role | None = None, environment: str = "default") -> Client:
        name = f"{role.value}-{environment}" if role is not None else "admin"
        user = USERS.objects.filter(username=name).first() or USERS.objects.create_user(name, is_superuser=role is None)
        if role is not None:
            RoleGrant.objects.get_or_create(user=user, environment=environment, role=role.value)
        client = Client()
        client.force_login(user)
        return client

    return signed_in


@pytest.fixture
def written(environments: None) -> str:
    """A cluster with two revisions and a route to it in `default`, not built; the id of the newest change."""
    edits = [Put(parsed(cluster("pay"))), Put(parsed(route("edge", "pay")))]
    change_apply(environment_key="default", edits=edits, actor=DANA)
    newer = Put(parsed(cluster("pay", connect_timeout="2s")))
    made = change_apply(environment_key="default", edits=[newer], actor=DANA, message="twice the patience")
    return made.change_id


@pytest.fixture
def two_editors(sign_in: SignIn) -> tuple[Client, Client]:
    """Two people who may write resources of `default`, and approve what the other proposes."""
    other, second = USERS.objects.create_user("other"), Client()
    RoleGrant.objects.create(user=other, environment="default", role=Role.EDITOR.value)
    second.force_login(other)
    return sign_in(Role.EDITOR, "default"), second


def page(client: Client, path: str, status: int = 200) -> str:
    """A page, which must be answered so."""
    answer = client.get(path)
    assert answer.status_code == status, answer.content.decode()[:2000]
    return answer.content.decode()


def queries(client: Client, path: str) -> int:
    """How many queries a page costs somebody who has seen one before, a moment ago however slow the machine is."""
    cache.clear()
    with patch.object(live, "INTERVAL_S", 600):
        page(client, path)
        with CaptureQueriesContext(connection) as asked:
            page(client, path)
    cache.clear()
    return len(asked)


def assert_harmless(text: str) -> None:
    """Nothing of HOSTILE acts: no tag of it, no control character, nothing that turns the direction."""
    assert "<img src=x" not in text
    assert "\u202e" not in text
    assert "\x1b" not in text


def _two_environments() -> None:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)


def _signed_in(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password="pw")
    return client
