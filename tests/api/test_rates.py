"""How many requests a caller may send, and how many items one may hold."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.test import AsyncClient, Client
from prometheus_client import REGISTRY
from pytest_django.fixtures import Settings

from controlplane.accounts.callers import Callers
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import admin_token_ensure, api_token_create
from controlplane.api import rates
from controlplane.api.views.schema import schema
from controlplane.catalog.services import change_apply, environment_default_ensure
from controlplane.catalog.values import Put
from controlplane.common.principal_ids import PrincipalId, PrincipalKind
from tests.api.conftest import Caller, assert_problem, caller, limited
from tests.support.clocks import StandingClock
from tests.support.manifests import cluster, parsed

Later = Callable[[float], None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Time stands still until a test lets it pass."""
    clock = StandingClock()
    monkeypatch.setattr(rates._requests, "clock", clock)
    return clock.passes


def test_token__more_than_its_burst__429_that_names_the_limits_and_when_to_come_again(
    api: Caller, later: Later, settings: Settings
) -> None:
    limited(settings, token_requests_per_s=2, token_burst=3)

    statuses = [api.get("environments").status for _ in range(3)]
    refused = api.get("environments")

    assert statuses == [200, 200, 200]
    assert_problem(refused, 429, "XDS3029")
    assert refused.headers["Retry-After"] == "1"
    assert "token_requests_per_s is 2, token_burst 3" in refused.json["detail"]
    later(1)
    assert [api.get("environments").status for _ in range(3)] == [200, 200, 429]


@pytest.mark.usefixtures("later")
def test_token_of_the_installation__has_no_rate__and_nobody_else_who_calls_a_token_so(
    db: None, settings: Settings
) -> None:
    limited(settings, token_requests_per_s=1, token_burst=1)
    environment_default_ensure()
    own = admin_token_ensure(known="")
    _, namesake = api_token_create(name="admin.token", scopes=ADMIN_SCOPES[:1], actor=SYSTEM)

    def ask(token: str) -> int:
        return Client().get("/api/v1/environments", headers={"authorization": f"Bearer {token}"}).status_code

    assert [ask(own) for _ in range(5)] == [200] * 5
    assert [ask(namesake) for _ in range(2)] == [200, 429]


def test_token__above_its_rate__others_are_served(api: Caller, later: Later, settings: Settings) -> None:
    limited(settings, token_requests_per_s=1, token_burst=1)
    other = caller(*ADMIN_SCOPES)
    api.get("environments")

    assert api.get("environments").status == 429
    assert other.get("environments").status == 200


def test_write__above_the_rate__leaves_nothing_and_its_key_free(
    api: Caller, later: Later, settings: Settings, stored: Callable[[], tuple[object, ...]]
) -> None:
    limited(settings, token_requests_per_s=1, token_burst=1)
    api.get("environments")
    before = stored()

    refused = api.post("environments/default/apply", {"resources": [cluster("a")]}, Idempotency_Key="once")

    assert refused.status == 429
    assert stored() == before
    later(1)
    again = api.post("environments/default/apply", {"resources": [cluster("a")]}, Idempotency_Key="once")
    assert again.status == 202
    assert "Idempotency-Replayed" not in again.headers


def test_user__more_than_a_seconds_worth__429_that_names_the_limit(
    environments: None, later: Later, settings: Settings
) -> None:
    limited(settings, user_requests_per_s=2)
    browser = Client()
    browser.force_login(get_user_model().objects.create_superuser("rita"))

    answers: list[Any] = [browser.get("/api/v1/environments") for _ in range(3)]

    assert [each.status_code for each in answers] == [200, 200, 429]
    assert "'rita' sends more requests than it may (user_requests_per_s is 2)" in answers[2].json()["detail"]
    assert [browser.get("/environments").status_code for _ in range(9)] == [200] * 9  # pages are not the API


def test_what_is_open_to_all__is_not_counted(api: Caller, later: Later, settings: Settings) -> None:
    limited(settings, token_requests_per_s=1, token_burst=1)
    api.get("environments")

    assert [api.get("errors/XDS3029").status for _ in range(3)] == [200, 200, 200]


@pytest.mark.django_db(transaction=True)
async def test_wait__that_is_answered_twice_inside__counts_once(later: Later, settings: Settings) -> None:
    limited(settings, token_requests_per_s=1, token_burst=1)
    token, change = await sync_to_async(_change_nobody_builds)()
    sent = {"Authorization": f"Bearer {token}"}
    waiting = AsyncClient()

    answers = [await waiting.get(f"/api/v1/changes/{change}?wait=1s", headers=sent) for _ in range(2)]

    assert [each.status_code for each in answers] == [200, 429]


def _change_nobody_builds() -> tuple[str, str]:
    environment_default_ensure()
    token = api_token_create(name="t", scopes=ADMIN_SCOPES, actor=SYSTEM)[1]
    change = change_apply(environment_key="default", edits=[Put(parsed(cluster("a")))], actor=SYSTEM)
    return token, change.change_id


def test_callers__more_than_are_remembered__the_longest_silent_is_forgotten() -> None:
    callers: Callers[PrincipalId] = Callers(most=2)
    a, b, c = (PrincipalId(PrincipalKind.TOKEN, number) for number in (1, 2, 3))

    def wait_s(caller_id: PrincipalId) -> float:
        return callers.wait_s(caller_id, per_s=1, burst=1, now=0)

    for caller_id in (a, b, a):
        wait_s(caller_id)

    wait_s(c)  # forgets b, which was silent longer than a

    assert wait_s(a) > 0
    assert wait_s(b) == 0


def test_refused_requests__are_counted_by_limit(api: Caller, later: Later, settings: Settings) -> None:
    limited(settings, token_requests_per_s=1, token_burst=1)
    series = "parley_api_refused_requests_total", {"limit": "token_requests_per_s"}
    before = REGISTRY.get_sample_value(*series) or 0.0

    for _ in range(3):
        api.get("environments")

    assert REGISTRY.get_sample_value(*series) == before + 2


def test_cases__more_items_than_a_bulk_request_may_hold__413_that_names_the_limit(
    api: Caller, settings: Settings
) -> None:
    limited(settings, bulk_items=2)
    case = {"node_id": "n", "type": "cluster", "name": "c", "expect": "allow"}

    allowed = api.post("environments/default/access/test", {"cases": [case] * 2})
    refused = api.post("environments/default/access/test", {"cases": [case] * 3})

    assert allowed.status == 200
    assert_problem(refused, 413, "XDS1004")
    assert "'cases' holds 3 items; at most 2 are allowed (bulk_items)" in refused.json["detail"]


def test_schema__every_operation__may_be_answered_429_that_says_when() -> None:
    for path, operations in schema()["paths"].items():
        for verb, operation in operations.items():
            assert "Retry-After" in operation["responses"]["429"]["headers"], (verb, path)
