"""A Parley with an identity provider, and a browser in which people sign in by it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import SYSTEM
from controlplane.accounts.selectors import user_principal
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.config.loading import Config
from controlplane.config.oidc import LocalSignIn, Oidc, group_roles
from controlplane.oidc import provider as asking
from tests.support.openid_provider import CLIENT_ID, CLIENT_SECRET, Person, Provider, openid_provider
from tests.web.conftest import USERS

Later = Callable[[float], None]
ROLES = "platform=admin, shop=editor@default, shop=viewer@prod"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with openid_provider() as running:
        yield running


def configured(provider: Provider, **different: Any) -> Oidc:
    """The provider, as variables name it."""
    said = Oidc(
        issuer=provider.url,
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        scopes=("openid", "profile"),
        groups_claim="groups",
        roles=group_roles(ROLES),
        name="Staff ID",
        local_sign_in=LocalSignIn.EVERYBODY,
    )
    return replace(said, **different)


def with_provider(settings: Settings, oidc: Oidc | None, **limits: int) -> None:
    """Start anew with this provider."""
    parley: Config = settings.PARLEY
    settings.PARLEY = replace(parley, oidc=oidc, limits=replace(parley.limits, **limits))
    asking._provider.cache_clear()


@pytest.fixture
def site(settings: Settings, provider: Provider, transactional_db: None) -> Oidc:
    """`default` and `prod`, and the provider."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with_provider(settings, configured(provider))
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    return configured(provider)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Lets time pass for Parley; the provider lives on as before."""
    ahead = [0.0]

    def now() -> datetime:
        return datetime.now(timezone.get_current_timezone()) + timedelta(seconds=ahead[0])

    def passes(seconds: float) -> None:
        ahead[0] += seconds

    monkeypatch.setattr(timezone, "now", now)
    return passes


def begun(browser: Client, leads_to: str = "") -> str:
    """The URL at the provider to which the button leads."""
    answer = browser.get("/login/oidc", {"next": leads_to} if leads_to else {})
    assert answer.status_code == 302, answer.content
    return str(answer["Location"])


def came_back(browser: Client, url: str) -> Any:
    """What the browser is answered that follows the provider's redirect."""
    parts = urlsplit(url)
    return browser.get(f"{parts.path}?{parts.query}")


def sign_in(provider: Provider, person: Person, browser: Client | None = None, leads_to: str = "") -> Client:
    """A browser in which this person signed in."""
    browser = browser or Client()
    answer = came_back(browser, provider.signed_in(begun(browser, leads_to), person))
    assert answer.status_code == 302, answer.content.decode()
    return browser


def rights(name: str) -> set[tuple[str, str | None]]:
    """What somebody may do where, by a token or session of theirs."""
    principal = user_principal(USERS.objects.get(username=name))
    assert principal is not None
    return {(scope.role.value, scope.environment) for scope in principal.scopes}
