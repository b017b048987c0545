"""The live tail over a real Valkey and a real server: who is told what, by whom it is ended, and what refuses it."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import SYSTEM, Role, Scope
from controlplane.accounts.services import api_token_create, api_token_revoke
from controlplane.api import tailing
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.common.errors import DependencyError
from controlplane.common.principal_ids import PrincipalId, PrincipalKind
from controlplane.tail import watching
from controlplane.tail.values import Filter
from tests.support.ads_client import until
from tests.support.facts import content, respond, stream
from tests.support.tails import Telling, telling
from tests.support.valkey import valkey
from tests.support.waiting import eventually
from tests.support.web_thread import serving_web
from xdscore.limits import Limits

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/api/v1/environments/default/tail"


@dataclass
class Place:
    """A web server, and the facts of an ADS process that tells what happens."""

    web: str
    told: Telling


@pytest.fixture(scope="module")
def told() -> Iterator[Telling]:
    with telling() as found:
        yield found


@pytest.fixture
def place(told: Telling) -> Iterator[Place]:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    with serving_web() as web:
        yield Place(web, told)


def token_for(environment: str | None = "default") -> str:
    return api_token_create(name=token_hex(4), scopes=(Scope(Role.VIEWER, environment),), actor=SYSTEM)[1]


class Tail:
    """A tail that is open: its events, one by one."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()

    def next(self) -> tuple[str, Any]:
        """The next event: its name and what it says."""
        fields: dict[str, str] = {}
        for line in self._lines:
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "event" in fields:
                return fields["event"], json.loads(fields["data"])
        raise AssertionError("the tail has ended")


@contextmanager
def tail(place: Place, token: str = "", *, cookie: str = "", path: str = PATH, **headers: str) -> Iterator[Tail]:
    """Watch until the block ends; the first event, which says that the tail is live, was read."""
    sent = {**({"Authorization": f"Bearer {token}"} if token else {"Cookie": f"sessionid={cookie}"}), **headers}
    with httpx.stream("GET", place.web + path, headers=sent, timeout=5) as response:
        assert response.status_code == 200, response.read()
        yield Tail(response)


def refused(place: Place, token: str, path: str = PATH) -> tuple[int, dict[str, Any]]:
    """The status and the problem of a tail that does not begin."""
    answer = httpx.get(place.web + path, headers={"Authorization": f"Bearer {token}"}, timeout=10)
    return answer.status_code, answer.json()


def test_tail__something_happens__is_told_at_once_and_only_what_was_asked_for(place: Place) -> None:
    with tail(place, token_for(), path=f"{PATH}?type=cluster&name=pay&kind=sent,acked") as watched:
        first = watched.next()
        place.told.watched("default")
        place.told.facts.opened(stream())
        place.told.facts.sent(stream(), respond(content("cart")))
        place.told.facts.sent(stream(), respond(content("pay")))

        name, event = watched.next()

    assert first == ("state", {"processes": 1, "unseen_s": 0})
    assert (name, event["names"], event["node_id"]) == ("sent", ["pay"], "node-1")


def test_tail__two_environments__each_is_told_of_its_own_and_a_stranger_finds_nothing(place: Place) -> None:
    prod = token_for("prod")
    with (
        tail(place, token_for()) as here,
        tail(place, prod, path="/api/v1/environments/prod/tail") as there,
    ):
        here.next(), there.next()
        place.told.watched("default", "prod")
        place.told.facts.opened(stream(1, node_id="mine"))
        place.told.facts.opened(stream(2, node_id="theirs", environment="prod"))

        seen = here.next()[1]["node_id"], there.next()[1]["node_id"]

    assert seen == ("mine", "theirs")
    assert refused(place, prod)[0] == 404


@pytest.mark.parametrize("way", ["token", "session"])
def test_tail__token_is_revoked_or_somebody_signs_out__ends_and_says_so(
    place: Place, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(tailing, "_CHECKED_EVERY_S", 0.05)
    user, browser = User.objects.create_user("dana"), Client()
    RoleGrant.objects.create(user=user, role="viewer", environment="default")
    browser.force_login(user)
    token, text = api_token_create(name="t", scopes=(Scope(Role.VIEWER, "default"),), actor=SYSTEM)
    given = {"token": text} if way == "token" else {"cookie": browser.cookies["sessionid"].value}

    with tail(place, **given) as watched:
        watched.next()
        if way == "token":
            api_token_revoke(token=token, actor=SYSTEM)
        else:
            browser.logout()

        name, said = watched.next()

    assert (name, said["again"]) == ("end", False)
    assert "has ended" in said["reason"]


def test_tail__time_is_up__ends_and_the_next_one_knows_for_how_long_nobody_watched(place: Place) -> None:
    token = token_for()
    with tail(place, token, path=f"{PATH}?seconds=1") as watched:
        watched.next()
        assert watched.next()[0] == "end"

    with tail(place, token, **{"Last-Event-ID": "1000000000000"}) as again:
        unseen_s = again.next()[1]["unseen_s"]

    assert unseen_s > 10**8


def test_tail__broker_goes_away__ends_with_a_sentence_and_the_next_is_503(place: Place, settings: Settings) -> None:
    token = token_for()
    with valkey() as other:
        settings.PARLEY = replace(settings.PARLEY, redis_url=other.url)
        with tail(place, token) as watched:
            first = watched.next()
            other.kill()
            name, said = watched.next()
            status, problem = refused(place, token)

    assert first == ("state", {"processes": 0, "unseen_s": 0})
    assert (name, said["again"]) == ("end", True)
    assert (status, problem["code"]) == (503, "XDS9003")
    assert said["reason"] == problem["detail"]
    assert "broker" in problem["detail"]


def test_tail__as_many_as_may_watch__the_next_is_refused_until_one_has_left(place: Place, settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, limits=Limits(tail_watchers=3, tail_watchers_each=2))
    one, other = token_for(), token_for()
    with ExitStack() as open_ones:
        held = [open_ones.enter_context(tail(place, one)) for _ in range(2)]
        own = refused(place, one)
        held.append(open_ones.enter_context(tail(place, other)))
        all_of_them = refused(place, other)

    assert [own[0], all_of_them[0]] == [429, 429]
    assert "tail_watchers_each" in own[1]["detail"]
    assert "(tail_watchers)" in all_of_them[1]["detail"]
    eventually(lambda: _begins(place, one), within_s=5)


def _begins(place: Place, token: str) -> bool:
    with suppress(AssertionError), tail(place, token) as watched:
        return watched.next()[0] == "state"
    return False


def test_tail__parameters_that_cannot_be_used__422_with_all_of_them(place: Place) -> None:
    status, problem = refused(place, token_for(), f"{PATH}?kind=pondered&type=colour&seconds=0&node=x")

    assert status == 422
    assert len(problem["errors"]) == 4


async def test_tail__taken_by_nobody_though_it_is_open__gives_its_place_back(
    told: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_PATIENCE_S", 0.1)
    monkeypatch.setattr(watching, "_ANNOUNCED_EVERY_S", 0.1)
    places = told.broker.client().pubsub_channels
    whose = PrincipalId(PrincipalKind.TOKEN, 1)

    async with watching.watching(
        environment="default", wanted=Filter(), principal=whose, url=told.broker.url, limits=Limits()
    ) as watch:
        taken = len(places("parley:tail:to:*"))
        await until(lambda: not places("parley:tail:to:*"))

        with pytest.raises(DependencyError, match="for a minute"):
            await watch.heard(1)

    assert taken == 1
