"""From an event to people: told once, in harmless words, signed, tried again, paused when nobody is there."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.core import mail
from django.db import transaction
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import SYSTEM
from controlplane.clients.clock import database_now
from controlplane.common.errors import InputInvalid
from controlplane.config.values import Mail, MailSecurity, WebhookAllow
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest, incident_set_state
from controlplane.incidents.values import IncidentState
from controlplane.journal.models import DomainEvent
from controlplane.journal.services import event_append
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel, Delivery, Notification
from controlplane.notify.selectors import channel_get, delivery_list
from controlplane.notify.services import channel_create, channel_resume, channel_test, notify
from controlplane.notify.services.delivering import BACK_OFF, PAUSE_AFTER
from tests.services.incidents.fleet import DANA, Fleet, held, publish
from tests.support.manifests import cluster
from tests.support.webhook import Receiver, receiver
from xdscore.limits import Limits

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

HOSTILE = "<img src=x onerror=alert(1)> <!channel> \x1b[31m\x00\u202e`rm` *x*"


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    settings.PARLEY = replace(settings.PARLEY, webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"),)))
    with receiver() as running:
        yield running


def channel(target: str, kind: ChannelKind = ChannelKind.WEBHOOK, *, name: str = "ops") -> tuple[Channel, str]:
    return channel_create(wanted=NewChannel(name, kind, target), actor=SYSTEM)


def happen(kind: str = "quarantine.opened", subject: str = "cluster/pay", environment: str = "default") -> None:
    payload = {"type": "cluster", "name": "pay", "revision": 2, "actor": "dana", "reason": "refused"}
    event_append(kind=kind, environment=environment, subject=subject, payload=payload)


def due_now() -> None:
    Delivery.objects.update(next_at=database_now())


def refused_by(fleet: Fleet, message: str) -> None:
    publish(cluster("pay"))
    fleet.refuse(fleet.send(held("pay", 1)), message, suspects=(held("pay", 1),))
    digest()


def test_notify__incident_opens__is_told_once_with_cause_and_impact(hook: Receiver) -> None:
    channel(hook.url)
    refused_by(Fleet(3), "Error adding/updating cluster(s) pay: no")

    for _ in range(3):
        notify()
        digest()

    (sent,) = hook.received
    body = json.loads(sent.body)
    assert body["kind"] == "incident.opened"
    assert body["title"] == "Cluster 'pay' is refused in 'default'"
    assert "3 of 3 envoy clients refuse it" in body["text"]
    assert "by dana" in body["text"]
    assert "/incidents/" in body["link"]
    assert body["severity"] == "page"


@pytest.mark.parametrize(
    ("state", "became"), [(IncidentState.RESOLVED, "was resolved"), (IncidentState.IGNORED, "is ignored")]
)
def test_notify__somebody_closes_an_incident__is_told_once_with_who(state: IncidentState, became: str) -> None:
    refused_by(Fleet(3), "Error adding/updating cluster(s) pay: no")
    incident = Incident.objects.get()

    def become(wanted: IncidentState) -> None:
        incident_set_state(public_id=str(incident.public_id), state=wanted, actor=DANA, request_id="")

    become(IncidentState.ACKNOWLEDGED)
    become(state)
    become(IncidentState.IGNORED)  # which says nothing new
    notify()

    closed = Notification.objects.get(kind="incident.resolved")
    assert closed.title == f"The incident of Cluster 'pay' in 'default' {became} by dana"
    assert closed.text.startswith("3 of 3 envoy clients refuse it")
    assert closed.subject == Notification.objects.get(kind="incident.opened").subject


def test_webhook__is_signed_over_time_and_body(hook: Receiver) -> None:
    _, secret = channel(hook.url)
    happen()

    notify()

    (sent,) = hook.received
    signed = f"{sent.headers['Parley-Timestamp']}.".encode() + sent.body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    assert sent.headers["Parley-Signature"] == f"v1={expected}"
    assert abs(int(sent.headers["Parley-Timestamp"]) - database_now().timestamp()) < 60
    assert secret.encode() not in bytes(Channel.objects.get().secret)


def test_delivery__refused__is_tried_again_with_the_same_id_and_then_given_up(hook: Receiver) -> None:
    made, _ = channel(hook.url)
    happen()
    hook.status = 503

    notify()
    notify()  # not due yet
    (first,) = delivery_list(public_id=made.public_id)
    for _ in range(len(BACK_OFF) + 3):
        due_now()
        notify()

    assert (first.state, first.attempts, first.answer) == ("pending", 1, "503 ok")
    assert first.next_at is not None
    assert timedelta(seconds=5) < first.next_at - database_now() <= BACK_OFF[0]
    assert delivery_list(public_id=made.public_id)[0].state == "failed"
    assert len(hook.received) == len(BACK_OFF) + 1
    assert len({each.headers["Parley-Delivery"] for each in hook.received}) == 1


def test_channel__nobody_there__is_paused_and_says_so_elsewhere_until_resumed(hook: Receiver) -> None:
    dead, _ = channel("http://127.0.0.1:9/", name="dead")
    channel(hook.url, name="alive")
    for number in range(PAUSE_AFTER):
        happen(subject=f"cluster/{number}")
    notify()
    notify()  # tells of the pause

    paused = channel_get(public_id=dead.public_id)
    assert paused.paused_at is not None
    assert "10 tries in a row failed" in paused.paused_reason
    assert [json.loads(each.body)["kind"] for each in hook.received].count("channel.paused") == 1
    due_now()
    notify()
    assert sum(each.attempts for each in delivery_list(public_id=dead.public_id)) == PAUSE_AFTER

    Channel.objects.filter(pk=dead.pk).update(target=hook.url)
    before = len(hook.received)
    channel_resume(public_id=dead.public_id, actor=SYSTEM)
    due_now()
    notify()
    assert len(hook.received) == before + PAUSE_AFTER


def test_webhook__to_a_private_address__is_never_sent(settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, webhook_allow=WebhookAllow())
    with receiver() as inside:
        with pytest.raises(InputInvalid, match="not a public address"):
            channel(inside.url)
        made, _ = channel(inside.url.replace("127.0.0.1", "localhost"))
        happen()

        notify()

        assert inside.received == []
        assert "not a public address" in delivery_list(public_id=made.public_id)[0].answer


def test_webhook__that_redirects__is_not_followed(hook: Receiver) -> None:
    made, _ = channel(hook.url)
    hook.status = 302
    happen()

    notify()

    assert len(hook.received) == 1
    assert delivery_list(public_id=made.public_id)[0].state == "pending"


def test_storm__more_events_than_anybody_reads__go_to_the_inbox_only(hook: Receiver) -> None:
    channel(hook.url)
    may_go = Limits().messages_per_h
    for number in range(may_go + 20):
        happen(subject=f"cluster/{number}")

    for _ in range(3):
        notify()

    assert len(hook.received) == may_go
    assert Notification.objects.count() == may_go + 20


def test_repeats__of_one_failing_build__are_told_once_an_hour() -> None:
    for _ in range(5):
        event_append(kind="build.failed", environment="default", subject="build/default", payload={"generation": 3})

    notify()

    assert Notification.objects.count() == 1
    assert "Clients keep the snapshot they have" in Notification.objects.get().text


@pytest.mark.parametrize(("first", "told"), [((20, 20), 1), ((1, 100), 2)])
def test_escalation__of_what_was_just_told__is_told_where_it_is_louder(first: tuple[int, int], told: int) -> None:
    for kind, (nacked, sent) in (("incident.opened", first), ("incident.escalating", (90, 100))):
        payload = {"incident": "i", "type": "cluster", "name": "pay", "nacked": nacked, "sent": sent}
        event_append(kind=kind, environment="default", subject="incident/i", payload=payload)

    notify()

    assert Notification.objects.count() == told


def test_notify__crash_before_the_commit__loses_and_doubles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    happen()

    def crash(*_arguments: object, **_more: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("controlplane.notify.services.expanding.events_prune", crash)
        with pytest.raises(RuntimeError, match="killed"):
            notify()
    assert Notification.objects.count() == 0
    notify()
    notify()

    assert Notification.objects.count() == 1


def test_event__of_a_transaction_that_fails__never_happened() -> None:
    with transaction.atomic():
        happen()
        transaction.set_rollback(True)

    assert DomainEvent.objects.count() == 0


def test_channel__only_its_environments_and_kinds__are_told(hook: Receiver) -> None:
    wanted = NewChannel("prod", ChannelKind.WEBHOOK, hook.url, environments=("prod",), kinds=("build.failed",))
    channel_create(wanted=wanted, actor=SYSTEM)
    happen()
    happen(environment="prod")
    happen("build.failed", environment="prod")

    notify()

    assert [json.loads(each.body)["kind"] for each in hook.received] == ["build.failed"]


def test_hostile_text__from_a_client__harms_no_channel(hook: Receiver, settings: Settings) -> None:
    mailer = Mail("mail.example", 25, MailSecurity.NONE, "parley@example.org")
    settings.PARLEY = replace(settings.PARLEY, mail=mailer)
    channel(hook.url, ChannelKind.SLACK, name="slack")
    channel("ops@example.org", ChannelKind.MAIL, name="mail")
    refused_by(Fleet(1), HOSTILE + "x" * 1_048_576)

    notify()

    (slack,) = hook.received
    said = json.loads(slack.body)["text"]
    assert "<" not in said
    assert "`" not in said
    assert len(slack.body) < 4_000
    (message,) = mail.outbox
    for text in (said, str(message.body), str(message.subject)):
        assert not {"\x1b", "\x00", "\u202e"} & set(text)
    assert "\n" not in str(message.subject)
    assert len(str(message.body)) < 3_000


def test_sample__is_sent_at_once_and_leaves_nothing(hook: Receiver) -> None:
    made, _ = channel(hook.url)

    sent = channel_test(public_id=made.public_id)

    assert (sent.ok, sent.answer) == (True, "200 ok")
    assert Notification.objects.count() == 0
