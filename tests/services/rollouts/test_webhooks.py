"""Webhooks are asked whether a rollout may begin and go on, and told how it ended (rollouts.md "Gates")."""

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.db import connection
from django.db.models import F
from pytest_django.fixtures import Settings

from controlplane.catalog.models import Revision
from controlplane.common.errors import NotFound
from controlplane.config.values import WebhookAllow
from controlplane.database import failpoints
from controlplane.database.aliases import READER
from controlplane.journal.models import AuditEvent
from controlplane.outside.posting import DELIVERY, SIGNATURE, TIMESTAMP
from controlplane.rollouts.models import Rollout, RolloutQuestion
from controlplane.rollouts.services import (
    rollout_advance,
    rollout_pause,
    rollout_resume,
    webhook_secret_make,
    webhooks_ask,
)
from controlplane.rollouts.values import Outcome, ResourceOutcome, RolloutState
from tests.services.rollouts.clients import OPAL, Fleet, go_on, rollout_now, switch_on, write
from tests.support.manifests import cluster
from tests.support.slow_peers import drips, silent, slow_peer
from tests.support.webhook import Receiver, receiver

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER])]

PASS = b'{"verdict": "pass"}'
STEPS = [{"clients": 1}, {"percent": 100}]


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.PARLEY = replace(
        settings.PARLEY,
        webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"),)),
        limits=replace(settings.PARLEY.limits, delivery_timeout_ms=400),
    )


@pytest.fixture(autouse=True)
def _disarmed() -> object:
    yield
    failpoints.arm()


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as running:
        running.says = PASS
        yield running


def begin(fleet: Fleet, url: str, **settings: object) -> None:
    """Three clients that have r1 of `pay`, and a rollout of r2 of which this URL is asked."""
    for number in range(3):
        fleet.join(f"node-{number}")
    write(cluster("pay"))
    go_on(fleet)
    switch_on(**{"mode": "steps", "steps": STEPS, "gates": {"webhooks": [url]}, **settings})
    write(cluster("pay", connect_timeout="2s"))


def move(fleet: Fleet, *, turns: int = 12) -> None:
    """Let workers look, ask and build, and clients answer, until nobody is to be asked any more."""
    for _ in range(turns):
        go_on(fleet)
        # What is tried again later is tried now.
        RolloutQuestion.objects.filter(outcome="").update(due_at=F("due_at") - timedelta(minutes=1))
        if not webhooks_ask() and not RolloutQuestion.objects.filter(outcome="").exists():
            go_on(fleet)
            return
    raise AssertionError("it never comes to rest")


def has_new(fleet: Fleet) -> int:
    version = Revision.objects.get(resource__name="pay", number=2).version
    return sum(each == version for each in fleet.has("pay").values())


def asked(hook: Receiver) -> list[tuple[object, object, object]]:
    bodies = [json.loads(each.body) for each in hook.received]
    return [(body["phase"], body["step"], body["state"]) for body in bodies]


def test_webhook__agrees_each_time__is_asked_before_the_first_step_after_each_and_told_the_end(
    fleet: Fleet, hook: Receiver
) -> None:
    secret = webhook_secret_make(environment_key="default", actor=OPAL)
    begin(fleet, hook.url + "hook?key=1")
    go_on(fleet)
    assert has_new(fleet) == 0
    assert rollout_now().waits_for == f"the answer of the webhook {hook.url}…"

    move(fleet)

    view = rollout_now()
    assert (view.state, has_new(fleet)) == (RolloutState.DONE, 3)
    assert asked(hook) == [
        ("begin", 1, "running"),
        ("step", 1, "running"),
        ("step", 2, "running"),
        ("end", 2, "done"),
    ]
    second = json.loads(hook.received[1].body)
    assert second["rollout"] == view.id
    assert second["environment"] == "default"
    assert second["steps"] == 2
    assert second["counts"] == {"cohort": 1, "exposed": 1, "acked": 1, "refused": 0, "silent": 0, "lost": 0}
    assert second["verdict"]["reasons"] == ["1 of 1 client that were asked took all of it"]
    assert [{**each, "change": ""} for each in second["resources"]] == [
        {"type": "cluster", "name": "pay", "from": 1, "to": 2, "outcome": "candidate", "change": ""}
    ]
    for each in hook.received:
        signed = hmac.new(secret.encode(), each.headers[TIMESTAMP].encode() + b"." + each.body, hashlib.sha256)
        assert each.headers[SIGNATURE] == f"v1={signed.hexdigest()}"
        assert each.headers[DELIVERY] == json.loads(each.body)["id"]
    assert any("agrees" in reason for reason in view.reasons)


def test_webhook__no_before_the_first_step__nobody_ever_has_it(fleet: Fleet, hook: Receiver) -> None:
    hook.says = b'{"verdict": "fail", "reason": "it is Friday"}'
    begin(fleet, hook.url)

    move(fleet)

    view = rollout_now()
    assert view.state is RolloutState.REVERTED
    assert view.ended_because == f"the webhook {hook.url}… says that it must not go on: it is Friday"
    assert view.resources[0].outcome is ResourceOutcome.REVERTED
    assert not fleet.saw("pay", Revision.objects.get(resource__name="pay", number=2).version)
    assert asked(hook)[-1] == ("end", 1, "reverted")


def test_webhook__no_after_a_step__everything_goes_back(fleet: Fleet, hook: Receiver) -> None:
    begin(fleet, hook.url)
    go_on(fleet)
    webhooks_ask()
    hook.says = b'{"verdict": "fail"}'

    move(fleet)

    assert (rollout_now().state, has_new(fleet)) == (RolloutState.REVERTED, 0)
    assert asked(hook) == [("begin", 1, "running"), ("step", 1, "running"), ("end", 1, "reverted")]


def test_webhook__cannot_tell__a_person_lets_it_begin(fleet: Fleet, hook: Receiver) -> None:
    hook.says = json.dumps({"verdict": "inconclusive", "reason": "no\x1b[2J data\n\u202e" + "x" * 900}).encode()
    begin(fleet, hook.url, steps=[{"clients": 1, "bake": "1h"}, {"percent": 100}])

    move(fleet)

    view = rollout_now()
    assert (view.state, view.outcome, has_new(fleet)) == (RolloutState.WAITING, Outcome.INCONCLUSIVE, 0)
    assert view.reasons[0].startswith(rf"the webhook {hook.url}… cannot tell: no\x1b[2J data \u202exxx")
    assert len(view.reasons[0]) < 400
    assert rollout_advance(public_id=view.id, reason="I looked", actor=OPAL)
    assert not rollout_advance(public_id=view.id, reason="I looked", actor=OPAL)
    go_on(fleet)
    assert (rollout_now().step, has_new(fleet)) == (1, 1)


def test_webhook__cannot_tell__is_asked_again_when_it_was_paused_and_resumed(fleet: Fleet, hook: Receiver) -> None:
    hook.says = b'{"verdict": "inconclusive"}'
    begin(fleet, hook.url)
    move(fleet)
    hook.says = PASS

    rollout_pause(public_id=rollout_now().id, reason="look", actor=OPAL)
    move(fleet)
    assert len(hook.received) == 1
    rollout_resume(public_id=rollout_now().id, reason="go", actor=OPAL)
    move(fleet)

    assert rollout_now().state is RolloutState.DONE


@pytest.mark.parametrize(
    ("status", "says", "reason"),
    [
        (200, b"ok", "it answered something else than"),
        (200, PASS + b" " * 5_000, "its answer did not end, or has more than 4,096 bytes"),
        (302, PASS, "it answered with status 302, and redirects are not followed"),
    ],
)
def test_webhook__answers_rubbish__is_asked_three_times_and_never_passes(
    fleet: Fleet, hook: Receiver, status: int, says: bytes, reason: str
) -> None:
    hook.status, hook.says = status, says
    begin(fleet, hook.url)

    move(fleet)

    view = rollout_now()
    assert (view.state, has_new(fleet)) == (RolloutState.WAITING, 0)
    assert view.reasons[0].startswith(f"the webhook {hook.url}… cannot tell: {reason}")
    assert len(hook.received) == 3
    assert len({each.headers[DELIVERY] for each in hook.received}) == 1


@pytest.mark.parametrize("behaviour", [silent, drips(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n")])
def test_webhook__never_answers__is_inconclusive_in_words(fleet: Fleet, behaviour: object) -> None:
    with slow_peer(behaviour) as port:  # type: ignore[arg-type]
        began = time.monotonic()
        begin(fleet, f"http://127.0.0.1:{port}/")
        move(fleet)

    assert time.monotonic() - began < 15
    assert rollout_now().reasons == (
        f"the webhook http://127.0.0.1:{port}/… cannot tell: it did not answer within 0.4 s",
    )


def test_webhook__its_time_is_over__is_not_asked_any_more(fleet: Fleet, hook: Receiver) -> None:
    begin(fleet, hook.url)
    go_on(fleet)
    RolloutQuestion.objects.update(until=F("until") - timedelta(seconds=31))

    assert webhooks_ask() == 0

    assert hook.received == []
    go_on(fleet)
    assert rollout_now().reasons == (f"the webhook {hook.url}… cannot tell: it did not answer in time",)


def test_webhook__at_a_private_address_that_is_not_allowed__is_never_reached(
    fleet: Fleet, hook: Receiver, settings: Settings
) -> None:
    settings.PARLEY = replace(settings.PARLEY, webhook_allow=WebhookAllow())
    begin(fleet, hook.url)

    move(fleet)

    assert hook.received == [] == hook.waiting
    assert rollout_now().state is RolloutState.WAITING
    assert "is not a public address; PARLEY_WEBHOOK_ALLOW can allow it" in rollout_now().reasons[0]
    assert RolloutQuestion.objects.get().tries == 1


class Died(BaseException):
    """The worker's process is gone."""


def test_webhook__worker_dies_between_asking_and_acting__is_asked_once_more_and_decided_once(
    fleet: Fleet, hook: Receiver
) -> None:
    begin(fleet, hook.url, steps=[{"clients": 1, "bake": "1h"}, {"percent": 100}])
    go_on(fleet)

    def die(name: str) -> None:
        if name == "webhook.answered":
            raise Died

    failpoints.arm(die)
    with pytest.raises(Died):
        webhooks_ask()
    failpoints.arm()
    go_on(fleet)
    assert (webhooks_ask(), has_new(fleet)) == (0, 0)  # its time is not over, and nobody acts on what is not kept
    move(fleet)

    assert len(hook.received) == 2
    assert len({each.headers[DELIVERY] for each in hook.received}) == 1
    assert (rollout_now().state, rollout_now().step, has_new(fleet)) == (RolloutState.RUNNING, 1, 1)


def test_webhook__two_processes_look_at_once__one_asks(fleet: Fleet, hook: Receiver) -> None:
    begin(fleet, hook.url)
    go_on(fleet)
    hook.hold()

    def other() -> None:
        try:
            webhooks_ask()
        finally:
            connection.close()

    threads = [threading.Thread(target=other) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    hook.let_go()

    assert RolloutQuestion.objects.get().tries == 1
    assert hook.most_at_once == 1


def test_webhook__is_slow__a_refusal_is_taken_back_meanwhile(fleet: Fleet, hook: Receiver, settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, limits=replace(settings.PARLEY.limits, delivery_timeout_ms=5_000))
    begin(fleet, hook.url)
    go_on(fleet)
    webhooks_ask()
    hook.hold()
    go_on(fleet)

    def ask() -> None:
        try:
            webhooks_ask()
        finally:
            connection.close()

    asking = threading.Thread(target=ask)
    asking.start()
    for _ in range(200):
        if hook.waiting:
            break
        time.sleep(0.02)
    assert hook.waiting
    for member in fleet.members.values():
        member.refuses = frozenset({"pay"})
        member.took.clear()
    write(cluster("pay", connect_timeout="3s"))
    go_on(fleet)
    assert rollout_now().state is RolloutState.REVERTED
    assert hook.waiting
    hook.let_go()
    asking.join(10)
    assert not asking.is_alive()
    assert Rollout.objects.get().state == RolloutState.REVERTED.value


def test_webhook__a_name_of_the_rollout_is_written_again__is_asked_again(fleet: Fleet, hook: Receiver) -> None:
    begin(fleet, hook.url, steps=[{"clients": 1}, {"percent": 100, "bake": "1h"}])
    go_on(fleet)
    webhooks_ask()
    go_on(fleet)
    webhooks_ask()
    assert [each[:2] for each in asked(hook)] == [("begin", 1), ("step", 1)]

    write(cluster("pay", connect_timeout="3s"))
    move(fleet)

    assert [each[:2] for each in asked(hook)] == [("begin", 1), ("step", 1), ("step", 1)]
    assert rollout_now().step == 2


def test_pilot__with_a_webhook__waits_for_it_before_and_after(fleet: Fleet, hook: Receiver) -> None:
    begin(fleet, hook.url, mode="pilot", steps=[])

    move(fleet)

    assert rollout_now().state is RolloutState.DONE
    assert [each[:2] for each in asked(hook)] == [("begin", 1), ("step", 1), ("end", 1)]


def test_secret__made_again__is_another_and_stands_in_the_audit_log_without_its_value(database: str) -> None:
    first = webhook_secret_make(environment_key="default", actor=OPAL)
    second = webhook_secret_make(environment_key="default", actor=OPAL)

    assert first != second
    assert first.startswith("whsec_")
    entries = AuditEvent.objects.filter(verb="rollout.secret_made")
    assert entries.count() == 2
    assert not any(first in str(entry.__dict__) for entry in entries)
    with pytest.raises(NotFound):
        webhook_secret_make(environment_key="nowhere", actor=OPAL)
