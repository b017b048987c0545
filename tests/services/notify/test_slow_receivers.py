"""Who is slow on purpose holds up nobody else: one deadline for a whole try, and channels that do not wait for
each other.
"""

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network

import pytest
from django.db import transaction
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import SYSTEM
from controlplane.builder.sweeper import Sweeper, fork_waits
from controlplane.clients.clock import database_now
from controlplane.config.values import Mail, MailSecurity, WebhookAllow
from controlplane.database.aliases import READER
from controlplane.journal.services import event_append
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel, Delivery, Notification
from controlplane.notify.services import channel_create, channel_test, deliveries_send, notifications_expand
from tests.support.slow_peers import Behaviour, after, drips, silent, slow_peer
from tests.support.waiting import eventually
from tests.support.webhook import Receiver, receiver

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

# A record of a TLS handshake that announces more than ever comes.
HALF_A_HANDSHAKE = b"\x16\x03\x03\x40\x00"


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.PARLEY = replace(
        settings.PARLEY,
        webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"),)),
        limits=replace(settings.PARLEY.limits, channel_tests_per_min=10_000),
    )


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


def short(settings: Settings, milliseconds: int = 400) -> None:
    limits = replace(settings.PARLEY.limits, delivery_timeout_ms=milliseconds)
    settings.PARLEY = replace(settings.PARLEY, limits=limits)


def channel(target: str, name: str = "ops", kind: ChannelKind = ChannelKind.WEBHOOK) -> Channel:
    return channel_create(wanted=NewChannel(name, kind, target), actor=SYSTEM)[0]


def happen(number: int) -> None:
    payload = {"type": "cluster", "name": f"c-{number}", "revision": 2, "actor": "dana", "reason": "refused"}
    event_append(kind="quarantine.opened", environment="default", subject=f"cluster/{number}", payload=payload)
    notifications_expand()


def told(hook: Receiver) -> list[str]:
    return [json.loads(each.body)["subject"] for each in hook.received]


@pytest.mark.parametrize(
    ("scheme", "behave"),
    [
        ("http", silent),
        ("http", drips(b"HTTP/1.1 200 OK\r\nX: ", b"x")),
        ("http", drips(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n")),
        ("https", silent),
        ("https", drips(HALF_A_HANDSHAKE, b"\x02")),
    ],
    ids=["silence", "headers", "answers before the answer", "silence before TLS", "handshake"],
)
def test_webhook__to_a_peer_that_drips__ends_at_its_one_deadline(
    settings: Settings, scheme: str, behave: Behaviour
) -> None:
    short(settings)
    with slow_peer(behave) as port:
        slow = channel(f"{scheme}://127.0.0.1:{port}/")
        begun = time.monotonic()

        sent = channel_test(public_id=slow.public_id)

        took_s = time.monotonic() - begun
    assert 0.3 < took_s < 1.5
    assert (sent.ok, sent.answer) == (False, "It was not taken within 400 ms (PARLEY_LIMIT_DELIVERY_TIMEOUT_MS).")


def test_webhook__taken_but_the_body_of_the_answer_drips__is_taken_and_ends_at_the_deadline(settings: Settings) -> None:
    short(settings)
    with slow_peer(drips(b"HTTP/1.1 202 Accepted\r\nContent-Length: 150\r\n\r\n", b"y")) as port:
        slow = channel(f"http://127.0.0.1:{port}/")
        begun = time.monotonic()

        sent = channel_test(public_id=slow.public_id)

        took_s = time.monotonic() - begun
    assert took_s < 1.5
    assert (sent.ok, sent.answer[:6]) == (True, "202 yy")


def test_webhook__resolver_hangs__ends_at_its_deadline_and_one_thread_asks(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(settings)
    answered = threading.Event()
    asked: list[object] = []

    def hang(*question: object, **_more: object) -> list[object]:
        asked.append(question)
        answered.wait(3)
        raise socket.gaierror("no answer")

    slow = channel("https://hooks.example/")
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    begun = time.monotonic()

    tries = [channel_test(public_id=slow.public_id) for _ in range(3)]

    took_s = time.monotonic() - begun
    answered.set()
    assert [each.ok for each in tries] == [False] * 3
    assert took_s < 2.5
    assert len(asked) == 1


@pytest.mark.parametrize("security", list(MailSecurity))
def test_mail__to_a_server_that_drips__ends_at_its_one_deadline(settings: Settings, security: MailSecurity) -> None:
    short(settings)
    drip = {
        MailSecurity.NONE: drips(b"220-slow\r\n", b"220-slow\r\n"),
        MailSecurity.STARTTLS: after(
            [b"220 slow\r\n", b"250-slow\r\n250 STARTTLS\r\n", b"220 go\r\n"], drips(HALF_A_HANDSHAKE, b"\x02")
        ),
        MailSecurity.TLS: drips(HALF_A_HANDSHAKE, b"\x02"),
    }[security]
    with slow_peer(drip) as port:
        settings.PARLEY = replace(settings.PARLEY, mail=Mail("localhost", port, security, "parley@example.org"))
        settings.EMAIL_BACKEND = "controlplane.notify.mailing.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "localhost", port
        settings.EMAIL_USE_SSL = security is MailSecurity.TLS
        settings.EMAIL_USE_TLS = security is MailSecurity.STARTTLS
        slow = channel("ops@example.org", kind=ChannelKind.MAIL)
        begun = time.monotonic()

        sent = channel_test(public_id=slow.public_id)

        took_s = time.monotonic() - begun
    assert (sent.ok, sent.answer) == (False, "It was not taken within 400 ms (PARLEY_LIMIT_DELIVERY_TIMEOUT_MS).")
    assert took_s < 1.5


@pytest.mark.usefixtures("database")
def test_channels__one_is_slow_with_a_thousand_due__others_are_told_meanwhile(hook: Receiver) -> None:
    """Also of what happens only while the slow one is waited for."""
    with receiver() as other:
        other.hold()
        slow = channel(other.url, "slow")
        first = database_now()
        made = Notification.objects.bulk_create(
            Notification(event=10_000 + number, at=first, kind="build.failed", severity="quiet", title="t", text="t")
            for number in range(1_000)
        )
        Delivery.objects.bulk_create(Delivery(notification=each, channel=slow, next_at=first) for each in made)
        channel(hook.url, "quick")
        happen(1)
        sender = threading.Thread(target=deliveries_send, daemon=True)
        sender.start()

        eventually(lambda: len(other.waiting), within_s=3)
        eventually(lambda: told(hook) == ["cluster/1"], within_s=3)
        happen(2)
        eventually(lambda: told(hook) == ["cluster/1", "cluster/2"], within_s=3)
        assert len(other.waiting) == 1

        Channel.objects.filter(pk=slow.pk).update(paused_at=database_now())
        other.let_go()
        sender.join(5)
    assert not sender.is_alive()
    assert len(other.received) == 1


@pytest.mark.usefixtures("database")
def test_channel__several_due__are_sent_one_after_the_other_in_their_order(hook: Receiver) -> None:
    channel(hook.url)
    for number in range(8):
        happen(number)

    assert deliveries_send() == 8

    assert told(hook) == [f"cluster/{number}" for number in range(8)]
    assert hook.most_at_once == 1


def test_fork__somebody_is_slow_and_more_is_due__waits_for_what_is_under_way_only(hook: Receiver) -> None:
    channel(hook.url)
    happen(1)
    happen(2)
    hook.hold()
    sweeper = Sweeper((deliveries_send,), 0.01)
    told_before: list[list[str]] = []

    def fork() -> None:
        sweeper._hold()  # what os.fork calls first
        told_before.append(told(hook))
        sweeper._let_go()

    sweeper.start()
    try:
        eventually(lambda: len(hook.waiting), within_s=5)
        forking = threading.Thread(target=fork, daemon=True)
        forking.start()
        eventually(fork_waits, within_s=5)
        hook.let_go()
        forking.join(5)

        assert told_before == [["cluster/1"]]
        eventually(lambda: told(hook) == ["cluster/1", "cluster/2"], within_s=5)
    finally:
        hook.let_go()
        sweeper.stop()
        sweeper.join(5)


def test_send__within_a_transaction__is_refused(hook: Receiver) -> None:
    made = channel(hook.url)

    with pytest.raises(RuntimeError, match="transaction"), transaction.atomic():
        channel_test(public_id=made.public_id)

    assert hook.received == []
