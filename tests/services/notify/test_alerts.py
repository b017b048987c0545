"""Channels that make alerts, PagerDuty's and Opsgenie's, over real HTTP: what begins opens one, its end closes it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import SYSTEM
from controlplane.clients.clock import database_now
from controlplane.config.values import WebhookAllow
from controlplane.database.aliases import READER
from controlplane.journal.services import event_append
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel, Delivery, Notification, Sending
from controlplane.notify.selectors import delivery_list, oldest_delivery_due
from controlplane.notify.services import channel_create, channel_test, notify
from tests.support.webhook import Received, Receiver, receiver
from xdscore.limits import Limits

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

KEY = "0123456789abcdef0123456789abcdef"


@dataclass(frozen=True)
class Service:
    """How one of the services is spoken to: each reads a request as (what is done, the alert's key)."""

    kind: ChannelKind
    read: Callable[[Received], tuple[str, str]]


def pagerduty(received: Received) -> tuple[str, str]:
    body = json.loads(received.body)
    assert (received.path, body["routing_key"]) == ("/v2/enqueue", KEY)
    return {"trigger": "open", "resolve": "close"}[body["event_action"]], body["dedup_key"]


def opsgenie(received: Received) -> tuple[str, str]:
    assert received.headers["Authorization"] == f"GenieKey {KEY}"
    if received.path == "/v2/alerts":
        return "open", json.loads(received.body)["alias"]
    path, question = received.path.split("?")
    alias = path.removeprefix("/v2/alerts/").removesuffix("/close")
    assert (path, question) == (f"/v2/alerts/{alias}/close", "identifierType=alias")
    return "close", alias


SERVICES = [Service(ChannelKind.PAGERDUTY, pagerduty), Service(ChannelKind.OPSGENIE, opsgenie)]


@pytest.fixture(params=SERVICES, ids=lambda each: each.kind.value)
def service(request: pytest.FixtureRequest) -> Service:
    found: Service = request.param
    return found


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    settings.PARLEY = replace(settings.PARLEY, webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"),)))
    with receiver() as running:
        running.status, running.says = 202, b'{"result": "Request will be processed"}'
        yield running


def channel(service: Service, hook: Receiver, **more: Any) -> Channel:
    wanted = NewChannel("on call", service.kind, hook.url, secret=KEY, **more)
    return channel_create(wanted=wanted, actor=SYSTEM)[0]


def happen(kind: str, number: int = 1, environment: str = "default", **more: object) -> None:
    payload = {
        "incident": str(number),
        "type": "cluster",
        "name": "pay",
        "nacked": 9,
        "sent": 10,
        "reason": "why",
    } | more
    event_append(kind=kind, environment=environment, subject=f"incident/{number}", payload=payload)


def due_now() -> None:
    Delivery.objects.update(next_at=database_now())


def done(service: Service, hook: Receiver) -> list[str]:
    return [service.read(each)[0] for each in hook.received]


def test_incident__opened_and_resolved__is_one_alert_that_is_closed(service: Service, hook: Receiver) -> None:
    channel(service, hook)

    happen("incident.opened")
    notify()
    happen("incident.resolved")
    notify()

    (opens, first), (closes, second) = map(service.read, hook.received)
    assert (opens, closes) == ("open", "close")
    assert first == second


def test_incident__muted__opens_no_alert_and_one_that_is_there_is_closed(service: Service, hook: Receiver) -> None:
    channel(service, hook)

    happen("incident.opened")
    notify()
    happen("incident.escalating", muted=True)
    happen("incident.opened", 2, muted=True)
    happen("incident.assigned", assignee="mia", by="opal")
    notify()
    happen("incident.resolved", muted=True)
    happen("incident.resolved", 2, muted=True)
    notify()

    assert done(service, hook) == ["open", "close"]


def test_incident__not_muted_any_more__opens_an_alert_that_its_end_closes(service: Service, hook: Receiver) -> None:
    channel(service, hook)

    happen("incident.opened", muted=True)
    notify()
    happen("incident.unmuted", because="its time was over")
    notify()
    happen("incident.resolved")
    notify()

    assert done(service, hook) == ["open", "close"]


def test_incidents__of_other_things__have_other_alerts(service: Service, hook: Receiver) -> None:
    channel(service, hook)

    for kind, number, environment in (
        ("incident.opened", 1, "default"),
        ("incident.opened", 2, "default"),
        ("incident.opened", 1, "prod"),
        ("hold.set", 1, "default"),
    ):
        happen(kind, number, environment)
    notify()

    assert done(service, hook) == ["open"] * 4
    assert len({service.read(each)[1] for each in hook.received}) == 4


def test_end__of_what_could_not_be_told_yet__goes_out_behind_its_beginning(service: Service, hook: Receiver) -> None:
    channel(service, hook)
    hook.status = 503
    happen("incident.opened")
    notify()
    hook.status = 202
    happen("incident.resolved")
    happen("incident.opened", 2)

    notify()  # the first one is not due yet

    late = oldest_delivery_due()
    assert late is not None
    assert late > database_now()  # nobody is called because the end waits for its beginning
    assert done(service, hook) == ["open", "open"]
    assert len({service.read(each)[1] for each in hook.received}) == 2
    due_now()
    notify()
    assert done(service, hook)[2:] == ["open", "close"]
    assert service.read(hook.received[2]) == service.read(hook.received[0])


def test_end__beyond_what_channels_may_be_sent__is_sent_where_its_beginning_was(
    service: Service, hook: Receiver
) -> None:
    told = channel(service, hook)
    happen("incident.opened", 1)
    notify()
    for number in range(Limits().messages_per_h):
        happen("quarantine.opened", 100 + number)
    notify()
    hook.received.clear()

    happen("incident.resolved", 1)
    happen("incident.resolved", 2)
    notify()

    assert {row.sending for row in Notification.objects.filter(kind="incident.resolved")} == {Sending.HELD.value}
    assert done(service, hook) == ["close"]
    assert delivery_list(public_id=told.public_id)[0].state == "delivered"


@pytest.mark.parametrize(
    ("kinds", "told"),
    [(("incident.opened",), ["open", "close"]), (("incident.resolved",), []), (("hold.set",), [])],
)
def test_end__of_kinds_that_a_channel_chose__is_told_with_the_beginning(
    service: Service, hook: Receiver, kinds: tuple[str, ...], told: list[str]
) -> None:
    channel(service, hook, kinds=kinds)

    happen("incident.opened")
    happen("incident.resolved")
    notify()

    assert done(service, hook) == told


def test_moment__quiet__is_no_alert_and_another_is_one(service: Service, hook: Receiver) -> None:
    channel(service, hook)

    for kind in ("rollout.opened", "rollout.done", "build.failed"):
        event_append(kind=kind, environment="default", subject=kind, payload={"mode": "steps", "generation": 3})
    notify()

    assert done(service, hook) == ["open"]
    assert Notification.objects.count() == 3


def test_change_set__waits_for_review__calls_nobody_and_one_that_is_due_and_waits_does(
    service: Service, hook: Receiver
) -> None:
    channel(service, hook)

    told = []
    for kind in ("submitted", "approved", "waiting", "published"):
        event_append(
            kind=f"change_set.{kind}", environment="default", subject="change_set/1", payload={"title": "more time"}
        )
        notify()
        told.append(done(service, hook))

    assert told == [[], [], ["open"], ["open", "close"]]


def test_sample__opens_an_alert_of_the_lowest_urgency_and_closes_it(service: Service, hook: Receiver) -> None:
    made = channel(service, hook)

    sent = channel_test(public_id=made.public_id)

    (opens, first), (closes, second) = map(service.read, hook.received)
    assert (opens, closes, first) == ("open", "close", second)
    opened = json.loads(hook.received[0].body)
    assert opened.get("priority", opened.get("payload", {}).get("severity")) in ("P5", "info")
    assert sent.ok
    assert sent.answer.count('202 {"result": "Request will be processed"}') == 2


def test_sample__refused__says_the_answer_without_the_key_and_closes_nothing(service: Service, hook: Receiver) -> None:
    made = channel(service, hook)
    hook.status, hook.says = 400, f'{{"message": "no such key: {KEY}"}}'.encode()

    sent = channel_test(public_id=made.public_id)

    assert not sent.ok
    assert sent.answer == '400 {"message": "no such key: …"}'
    assert len(hook.received) == 1


def test_key__is_stored_sealed_and_stands_in_no_answer_however_it_is_cut(service: Service, hook: Receiver) -> None:
    made = channel(service, hook)
    # It would be cut where what is kept of an answer ends.
    hook.status, hook.says = 401, b"x" * 190 + KEY.encode() + b"y" * 400
    happen("incident.opened")

    notify()

    [delivery] = delivery_list(public_id=made.public_id)
    assert KEY[:8] not in delivery.answer
    assert delivery.answer.startswith("401 x")
    row = Channel.objects.get()
    assert KEY.encode() not in bytes(row.secret)
    assert KEY not in str([getattr(row, field.attname) for field in row._meta.fields if field.attname != "secret"])


def test_service__that_cannot_be_reached__is_said_in_words(service: Service, hook: Receiver) -> None:
    wanted = NewChannel("nobody", service.kind, "http://127.0.0.1:9", secret=KEY)
    made = channel_create(wanted=wanted, actor=SYSTEM)[0]

    sent = channel_test(public_id=made.public_id)

    assert (sent.ok, sent.answer) == (False, "The connection was refused: nothing listens at this host and port.")
