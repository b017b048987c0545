"""How many REST requests an address may send where nobody is known to be asking."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from prometheus_client import REGISTRY
from pytest_django.fixtures import Settings

from controlplane.accounts.browsers import browser_write, cookie_name
from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create, api_token_revoke
from controlplane.api import strangers
from tests.api.conftest import Caller, assert_problem, caller, limited
from tests.support.clocks import StandingClock

USERS: Any = get_user_model()
Later = Callable[[float], None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Time stands still until a test lets it pass."""
    clock = StandingClock()
    monkeypatch.setattr(strangers._requests, "clock", clock)
    return clock.passes


@pytest.fixture(autouse=True)
def few(settings: Settings, environments: None, patience: None) -> None:
    limited(settings, anonymous_requests_per_s=1, anonymous_burst=3)


def stranger(token: str = "parley_unknown", address: str = "192.0.2.1") -> Caller:
    return Caller(token, REMOTE_ADDR=address)


def statuses(asker: Caller, count: int) -> list[int]:
    return [asker.get("environments").status for _ in range(count)]


def test_unknown_tokens__more_than_an_address_may__429_that_names_the_limit_and_when_to_come_again(
    later: Later,
) -> None:
    series = "parley_api_refused_requests_total", {"limit": "anonymous_requests_per_s"}
    before = REGISTRY.get_sample_value(*series) or 0.0
    codes = [stranger(f"parley_{n}", "2001:db8::1").get("environments").status for n in range(3)]

    refused = stranger("parley_other", "2001:db8::2").get("environments")  # the same /64

    assert codes == [401] * 3
    assert_problem(refused, 429, "XDS3029")
    assert refused.headers["Retry-After"] == "1"
    assert "anonymous_requests_per_s is 1, anonymous_burst 3" in refused.json["detail"]
    assert REGISTRY.get_sample_value(*series) == before + 1
    assert statuses(stranger(address="2001:db8:0:1::1"), 1) == [401]
    later(2)
    assert statuses(stranger(address="2001:db8::1"), 3) == [401, 401, 429]


@pytest.mark.parametrize("path", ["environments", "errors/XDS3029", "no-such-thing"])
def test_nothing_sent__more_than_an_address_may__429(path: str, later: Later) -> None:
    nobody = stranger("")

    codes = [nobody.get(path).status for _ in range(5)]

    assert 429 not in codes[:3]
    assert codes[3:] == [429, 429]


@pytest.mark.parametrize("sent", [{"Authorization": "Bearer parley_unknown"}, {"Cookie": "sessionid=made-up"}])
def test_write__of_an_address_in_debt__is_refused_before_it_takes_a_turn_or_reads(
    sent: dict[str, str], later: Later
) -> None:
    statuses(stranger(), 3)

    with CaptureQueriesContext(connection) as asked:
        answer = Client(REMOTE_ADDR="192.0.2.1", headers=sent).post("/api/v1/environments/default/apply")

    chain = django_settings.MIDDLEWARE
    assert answer.status_code == 429
    assert len(asked) == 0
    assert chain.index("controlplane.api.strangers.StrangerRate") < chain.index(
        "controlplane.api.turns.TurnsMiddleware"
    )


def test_good_tokens__of_an_office_behind_one_address__cost_it_nothing_and_are_served_while_it_is_in_debt(
    later: Later,
) -> None:
    office = [caller(*ADMIN_SCOPES) for _ in range(5)]

    first = [statuses(each, 2) for each in office]
    flood = statuses(stranger(address="127.0.0.1"), 5)
    second = [statuses(each, 2) for each in office]

    assert first == second == [[200, 200]] * 5
    assert flood == [401] * 3 + [429] * 2


def test_token__that_was_good_and_is_revoked__is_a_strangers_from_then_on(later: Later) -> None:
    asker = caller(*ADMIN_SCOPES)
    statuses(asker, 1)
    statuses(stranger(address="127.0.0.1"), 3)

    api_token_revoke(token=ApiToken.objects.get(), actor=SYSTEM)

    assert statuses(asker, 3) == [401, 429, 429]


def test_token__that_was_not_sent_for_minutes__is_not_known_any_more(later: Later) -> None:
    asker = caller(*ADMIN_SCOPES)
    statuses(asker, 1)
    later(strangers.KEPT_S + 1)
    statuses(stranger(address="127.0.0.1"), 3)

    assert statuses(asker, 1) == [429]
    later(1)
    assert statuses(asker, 2) == [200, 200]


def test_session__of_somebody_signed_in__costs_nothing_and_is_served_while_the_address_is_in_debt(
    later: Later,
) -> None:
    rita = Client()
    rita.force_login(USERS.objects.create_superuser("rita"))

    first = [rita.get("/api/v1/environments").status_code for _ in range(5)]
    statuses(stranger(address="127.0.0.1"), 3)

    assert first == [200] * 5
    assert rita.get("/api/v1/environments").status_code == 200
    rita.logout()
    assert rita.get("/api/v1/environments").status_code == 429


def test_browser_that_is_known__while_strangers_at_its_address_are_too_many__has_a_rate_of_its_own(
    later: Later,
) -> None:
    rita = USERS.objects.create_superuser("rita")
    browser = Client(REMOTE_ADDR="192.0.2.1")
    browser.force_login(rita)
    browser.cookies[cookie_name()] = browser_write(rita)
    statuses(stranger(), 4)

    assert browser.get("/api/v1/environments").status_code == 200


@pytest.mark.django_db(transaction=True)
async def test_asynchronous_chain__as_in_the_real_server__has_the_same_rate(later: Later) -> None:
    _token, text = await sync_to_async(api_token_create)(name="t", scopes=ADMIN_SCOPES, actor=SYSTEM)
    client = AsyncClient()

    async def asked(token: str, count: int) -> list[int]:
        sent = {"Authorization": f"Bearer {token}"}
        return [(await client.get("/api/v1/environments", headers=sent)).status_code for _ in range(count)]

    assert await asked(text, 5) == [200] * 5
    assert await asked("parley_unknown", 4) == [401] * 3 + [429]
    assert await asked(text, 1) == [200]
