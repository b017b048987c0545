"""A change: its states, and waiting for them."""

import asyncio
import json
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, close_old_connections
from django.test import AsyncClient
from django.utils.module_loading import import_string
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create
from controlplane.api import waiting
from controlplane.builder.models import Build, BuildOutcome
from controlplane.builder.services import build
from controlplane.catalog.choices import QuarantineCause
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.services import Terms, change_apply, environment_default_ensure, quarantine_open
from controlplane.catalog.values import Put
from controlplane.database.aliases import READER
from tests.api.conftest import DANA, PREFIX, Caller, assert_problem, caller, limited
from tests.support.manifests import cluster, parsed

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def environment() -> int:
    environment_default_ensure()
    return Environment.objects.get(key="default").pk


@pytest.fixture
def api(environment: int) -> Caller:
    return caller(*ADMIN_SCOPES)


def put(*trees: dict[str, object]) -> str:
    return change_apply(
        environment_key="default",
        edits=[Put(parsed(tree)) for tree in trees],
        actor=DANA,
        message="m",
        request_id="r-1",
    ).change_id


def test_change__before_a_build__saved(api: Caller) -> None:
    change = put(cluster("a"), cluster("b"))

    answer = api.get(f"changes/{change}")

    assert answer.status == 200
    assert (answer.json["state"], answer.json["epoch"], answer.json["author"]) == ("saved", None, "dana")
    assert (answer.json["request_id"], answer.json["edit_count"]) == ("r-1", 2)


def test_change__after_its_build__published_with_the_epoch(api: Caller, environment: int) -> None:
    first = put(cluster("a"))
    build(environment_id=environment)
    second = put(cluster("b"))
    build(environment_id=environment)
    build(environment_id=environment)

    answers = [api.get(f"changes/{change}").json for change in (first, second)]

    assert [(answer["state"], answer["epoch"]) for answer in answers] == [("published", 1), ("published", 2)]


def test_change__overwritten_before_a_build__superseded(api: Caller, environment: int) -> None:
    first = put(cluster("a"))
    second = put(cluster("a", connect_timeout="9s"))
    build(environment_id=environment)

    assert api.get(f"changes/{first}").json["state"] == "superseded"
    assert api.get(f"changes/{second}").json["state"] == "published"


def test_change__overwritten_in_part__published(api: Caller, environment: int) -> None:
    first = put(cluster("a"), cluster("b"))
    put(cluster("a", connect_timeout="9s"))
    build(environment_id=environment)

    assert api.get(f"changes/{first}").json["state"] == "published"


def test_change__no_client_sees_a_difference__unchanged(api: Caller, environment: int) -> None:
    put(cluster("a"))
    build(environment_id=environment)
    owner = change_apply(
        environment_key="default", edits=[Put(parsed(cluster("a")))], actor=DANA, terms=Terms("team")
    ).change_id
    build(environment_id=environment)

    answer = api.get(f"changes/{owner}").json

    assert (answer["state"], answer["epoch"]) == ("unchanged", 1)


def test_change__builds_fail__failed_only_when_it_lasts(api: Caller, environment: int) -> None:
    change = put(cluster("a"))

    def fail() -> str:
        Build.objects.create(
            environment_id=environment,
            from_generation=1,
            to_generation=2,
            outcome=BuildOutcome.FAILED,
            detail="no disk",
        )
        return str(api.get(f"changes/{change}").json["state"])

    assert [fail(), fail(), fail()] == ["saved", "saved", "failed"]
    assert api.get(f"changes/{change}").json["detail"] == "no disk"
    build(environment_id=environment)
    assert api.get(f"changes/{change}").json["state"] == "published"


def test_change__quarantined_revision__is_held_back_in_both_spellings(api: Caller, environment: int) -> None:
    change = put(cluster("a"), cluster("b"))
    quarantine_open(
        environment_key="default",
        word="cluster",
        name="a",
        revision=1,
        cause=QuarantineCause.OPERATOR,
        reason="r",
        actor=SYSTEM,
    )
    build(environment_id=environment)

    answer = api.get(f"changes/{change}").json

    assert answer["held"] == answer["held_back"]
    (held,) = answer["held_back"]
    assert (held["type"], held["name"], held["reason"], held["served"]) == (
        "cluster",
        "a",
        "rejected by clients",
        False,
    )
    assert [each["code"] for each in held["findings"]] == ["XDS5001"]


@pytest.mark.parametrize("change", [str(uuid.UUID(int=0)), "x", "%00", "1"])
def test_change__unknown__404(api: Caller, change: str) -> None:
    assert_problem(api.get(f"changes/{change}"), 404)


@pytest.mark.parametrize(
    "query", ["wait=61s", "wait=-1", "wait=x", "wait=1h", "for=ever&wait=1s", "wait=1s&fro=published"]
)
def test_wait__that_cannot_be__422_that_says_what_can(api: Caller, query: str) -> None:
    answer = api.get(f"changes/{put(cluster('a'))}?{query}")

    assert_problem(answer, 422)
    if "settled" in query:
        assert "published" in answer.json["errors"][0]["hint"]


@pytest.fixture
def token(environment: int) -> str:
    return api_token_create(name="t", scopes=ADMIN_SCOPES, actor=SYSTEM)[1]


async def ask(token: str, change: str, wait: str) -> tuple[int, str, float]:
    started = time.monotonic()
    answer = await asked(token, f"{change}?wait={wait}&for=published")
    return answer.status_code, json.loads(answer.content).get("state", ""), time.monotonic() - started


async def asked(token: str, change: str) -> Any:
    return await AsyncClient().get(f"{PREFIX}changes/{change}", headers={"Authorization": f"Bearer {token}"})


def in_thread(work: object, *arguments: object, **named: object) -> None:
    """Run it on a connection of its own, which is closed."""
    try:
        work(*arguments, **named)  # type: ignore[operator]  # a function
    finally:
        close_old_connections()


async def test_wait__published_meanwhile__answers_soon_after(token: str, environment: int) -> None:
    change = await sync_to_async(put)(cluster("a"))
    asking = asyncio.create_task(ask(token, change, "20s"))
    await asyncio.sleep(0.5)
    assert not asking.done()

    await sync_to_async(in_thread)(build, environment_id=environment)
    built = time.monotonic()
    status, state, _took_s = await asking

    assert (status, state) == (200, "published")
    assert time.monotonic() - built < 2


async def test_wait__published_already__answers_at_once(token: str, environment: int) -> None:
    change = await sync_to_async(put)(cluster("a"))
    await sync_to_async(in_thread)(build, environment_id=environment)

    status, state, took_s = await ask(token, change, "20s")

    assert (status, state) == (200, "published")
    assert took_s < 2


async def test_wait__time_is_up__answers_what_is_true_then(token: str) -> None:
    change = await sync_to_async(put)(cluster("a"))

    status, state, took_s = await ask(token, change, "600ms")

    assert (status, state) == (200, "saved")
    assert 0.6 <= took_s < 3


async def test_wait__many_requests__share_one_question_each_fifth_of_a_second(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = await sync_to_async(put)(cluster("a"))
    asked_at: list[float] = []
    questions: list[list[str]] = []

    async def unfinished(ids: list[str]) -> frozenset[str]:
        asked_at.append(asyncio.get_running_loop().time())
        questions.append(ids)
        # However long they take to arrive: finished once all of them wait.
        return frozenset(ids) if waiters.count < 20 or len(questions) < 3 else frozenset()

    waiters = waiting.Waiters(unfinished)
    monkeypatch.setitem(waiting._waiters, waiting.Wanted.PUBLISHED, waiters)

    answers = await asyncio.gather(*(ask(token, change, "60s") for _ in range(20)))

    assert {status for status, _state, _took in answers} == {200}
    assert all(ids == [change] for ids in questions)
    # A timer of the loop may ring early by its clock's resolution.
    shortest_s = 0.2 - time.get_clock_info("monotonic").resolution
    assert all(later - earlier >= shortest_s for earlier, later in pairwise(asked_at))


async def test_wait__as_many_as_may_wait_already__429(token: str, settings: Settings) -> None:
    limited(settings, change_waiters=2)
    change = await sync_to_async(put)(cluster("a"))
    first = [asyncio.create_task(ask(token, change, "2s")) for _ in range(2)]
    await asyncio.sleep(1)

    refused = await asked(token, f"{change}?wait=2s")

    assert refused.status_code == 429
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.headers["Retry-After"] == "5"
    assert [status for status, _state, _took in await asyncio.gather(*first)] == [200, 200]


async def test_wait__database_fails_meanwhile__503(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change = await sync_to_async(put)(cluster("a"))

    async def unfinished(ids: list[str]) -> frozenset[str]:
        raise OperationalError("gone")

    monkeypatch.setitem(waiting._waiters, waiting.Wanted.PUBLISHED, waiting.Waiters(unfinished))

    answer = await asked(token, f"{change}?wait=5s")

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


def test_put__with_if_match_by_many_at_once__exactly_one_wins(api: Caller) -> None:
    put(cluster("pay"))
    start = threading.Barrier(6)

    def write(number: int) -> int:
        start.wait()
        try:
            tree = cluster("pay", connect_timeout=f"{number + 2}s")
            return api.put("environments/default/resources/cluster/pay", tree, If_Match='"r1"').status
        finally:
            close_old_connections()

    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(write, range(6)))

    assert statuses == [202, 412, 412, 412, 412, 412]
    assert Change.objects.filter(generation=3).count() == 1


def test_middleware__every_one__works_in_an_asynchronous_chain(settings: Settings) -> None:
    # One that does not would put each waiting request into a thread with an event loop of its own.
    assert [path for path in settings.MIDDLEWARE if not import_string(path).async_capable] == []
