"""Channels kept: changed, paused and resumed, with what each of that leaves in the audit log, and no secret there."""

from dataclasses import replace
from ipaddress import ip_network
from typing import Any
from uuid import uuid4

import pytest
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import SYSTEM
from controlplane.clients.clock import database_now
from controlplane.common.errors import Conflict, InputInvalid, NotFound
from controlplane.config.values import WebhookAllow
from controlplane.database.aliases import READER
from controlplane.journal.models import AuditEvent
from controlplane.journal.services import event_append
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel, Delivery
from controlplane.notify.sealing import channel_secret
from controlplane.notify.selectors import channel_get, channel_list
from controlplane.notify.services import (
    channel_create,
    channel_pause,
    channel_resume,
    channel_test,
    channel_update,
    notify,
)
from tests.support.webhook import receiver

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

KEY = "first-integration-key"
API = "https://events.example"


@pytest.fixture
def loopback(settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"),)))


def pager(**more: Any) -> Channel:
    wanted = NewChannel("pager", ChannelKind.PAGERDUTY, API, secret=KEY, **more)
    return channel_create(wanted=wanted, actor=SYSTEM)[0]


def change(channel: Channel, **more: Any) -> Channel:
    given: dict[str, Any] = {"name": channel.name, "kind": ChannelKind(channel.kind), "target": "", **more}
    return channel_update(public_id=channel.public_id, wanted=NewChannel(**given), actor=SYSTEM)


def happen() -> None:
    payload = {"type": "cluster", "name": "pay", "revision": 2, "actor": "dana", "reason": "refused"}
    event_append(kind="quarantine.opened", environment="default", subject="cluster/pay", payload=payload)


def test_change__of_all_but_target_and_key__keeps_these() -> None:
    channel = pager(environments=("prod",))

    change(channel, name="on call", kinds=("incident.opened",))

    row = Channel.objects.get()
    assert (row.name, row.target, row.environments, row.kinds) == ("on call", API, [], ["incident.opened"])
    assert channel_secret(row) == KEY.encode()


def test_change__of_the_url_that_a_key_is_sent_to__needs_the_key_again() -> None:
    channel = pager()

    for target in ("https://elsewhere.example", f"{API}/path"):
        with pytest.raises(InputInvalid, match="integration key is missing"):
            change(channel, target=target)
    change(channel, target=API)
    change(channel, target="https://elsewhere.example", secret="second-key")

    row = Channel.objects.get()
    assert (row.target, channel_secret(row)) == ("https://elsewhere.example", b"second-key")


def test_change__of_a_webhook__keeps_the_secret_that_signs() -> None:
    channel, secret = channel_create(wanted=NewChannel("a", ChannelKind.WEBHOOK, "https://a.example/x"), actor=SYSTEM)

    change(channel, target="https://b.example/y")

    row = Channel.objects.get()
    assert (row.target, channel_secret(row)) == ("https://b.example/y", secret.encode())


def test_change__that_cannot_be__is_refused_whole_and_changes_nothing() -> None:
    channel = pager()
    channel_create(wanted=NewChannel("taken", ChannelKind.MAIL, "a@b.example"), actor=SYSTEM)

    with pytest.raises(Conflict, match="'taken' already"):
        change(channel, name="taken")
    with pytest.raises(InputInvalid, match="kind of a channel"):
        change(channel, kind=ChannelKind.OPSGENIE)
    with pytest.raises(InputInvalid, match="2 problems") as found:
        change(channel, name="", kinds=("nothing",))
    with pytest.raises(NotFound):
        channel_update(public_id=uuid4(), wanted=NewChannel("x", ChannelKind.MAIL, "a@b.example"), actor=SYSTEM)

    assert [each.pointer for each in found.value.findings] == ["/name", "/kinds"]
    assert channel_get(public_id=channel.public_id).name == "pager"
    assert AuditEvent.objects.filter(verb="channel.updated").count() == 0


def test_change__of_a_digest__is_of_its_time() -> None:
    wanted = NewChannel("daily", ChannelKind.DIGEST, "a@b.example", digest={"hour": 7, "zone": "Europe/Berlin"})
    channel, _ = channel_create(wanted=wanted, actor=SYSTEM)

    change(channel, target="c@d.example", digest={"every": "hour"})

    shown = channel_get(public_id=channel.public_id)
    assert shown.target == "c@d.example"
    assert shown.digest is not None
    assert shown.digest.words == "every hour"


def test_audit__of_a_channels_life__says_what_became_of_it_and_no_secret() -> None:
    channel = pager()
    change(channel, name="on call", target="https://elsewhere.example/hidden-path", secret="second-key")
    channel_pause(public_id=channel.public_id, reason="the service moves", actor=SYSTEM)
    channel_resume(public_id=channel.public_id, actor=SYSTEM)

    events = list(AuditEvent.objects.filter(verb__startswith="channel.").order_by("pk"))
    assert [each.verb for each in events] == ["channel.created", "channel.updated", "channel.paused", "channel.resumed"]
    assert events[1].detail["before"]["name"] == "pager"
    assert (events[1].detail["name"], events[1].detail["new_secret"]) == ("on call", True)
    assert events[2].detail["reason"] == "the service moves"
    said = str([each.detail for each in events])
    for secret in (KEY, "second-key", "hidden-path"):
        assert secret not in said


def test_pause__by_somebody__keeps_what_happens_until_it_is_resumed(loopback: None) -> None:
    with receiver() as hook:
        channel, _ = channel_create(wanted=NewChannel("ops", ChannelKind.WEBHOOK, hook.url), actor=SYSTEM)
        channel_pause(public_id=channel.public_id, reason="it moves", actor=SYSTEM)
        channel_pause(public_id=channel.public_id, reason="another reason", actor=SYSTEM)
        happen()
        notify()
        paused, before = channel_get(public_id=channel.public_id), len(hook.received)
        channel_resume(public_id=channel.public_id, actor=SYSTEM)
        notify()

        assert paused.paused_reason == f"{SYSTEM.name}: it moves"
        assert (before, len(hook.received)) == (0, 1)


def test_channel__whose_receiver_fails_and_works_again__says_since_when_and_what_was_answered(loopback: None) -> None:
    with receiver() as hook:
        channel, _ = channel_create(wanted=NewChannel("ops", ChannelKind.WEBHOOK, hook.url), actor=SYSTEM)
        untried = channel_get(public_id=channel.public_id)
        hook.status, hook.says = 503, b""
        happen()
        notify()
        [failing] = channel_list()
        Delivery.objects.update(next_at=database_now())
        notify()
        [still] = channel_list()
        hook.status = 200
        Delivery.objects.update(next_at=database_now())
        notify()
        [works] = channel_list()

    assert (untried.last, untried.failing_since) == (None, None)
    assert failing.last is not None
    assert (failing.last.state.value, failing.last.answer) == ("pending", "503 Service Unavailable")
    assert failing.failing_since is not None
    assert (still.failures, still.failing_since) == (2, failing.failing_since)
    assert works.last is not None
    assert (works.failures, works.failing_since, works.last.state.value) == (0, None, "delivered")


@pytest.mark.parametrize("kind", [ChannelKind.WEBHOOK, ChannelKind.SLACK])
def test_answer__that_repeats_the_url__is_kept_without_what_lets_others_in(loopback: None, kind: ChannelKind) -> None:
    with receiver() as hook:
        target = f"{hook.url}services/T0/hidden-token?key=hidden-value"
        channel, secret = channel_create(wanted=NewChannel("ops", kind, target), actor=SYSTEM)
        hook.status = 404
        hook.says = f"no /services/T0/hidden-token?key=hidden-value, hidden-token, hidden-value {secret}".encode()

        sent = channel_test(public_id=channel.public_id)

    assert sent.answer.startswith("404 no …")
    assert "hidden" not in sent.answer
    assert "whsec_" not in sent.answer
