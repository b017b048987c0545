"""Digest mails over real SMTP: one for each hour or day in which something happened, with all of it."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from unittest.mock import patch

import pytest
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import SYSTEM
from controlplane.clients.clock import database_now
from controlplane.config.values import Mail, MailSecurity
from controlplane.database.aliases import READER
from controlplane.journal.services import event_append
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel, Delivery, DigestEntry, Notification
from controlplane.notify.selectors import delivery_list
from controlplane.notify.services import (
    channel_create,
    channel_test,
    deliveries_send,
    delivering,
    expanding,
    notifications_expand,
    notify,
)
from controlplane.notify.services.delivering import LISTED
from controlplane.notify.services.expanding import _KEEP_NOTIFICATIONS
from tests.support.mailbox import Mailbox, mailbox
from xdscore.limits import Limits

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]


@pytest.fixture
def post(settings: Settings) -> Iterator[Mailbox]:
    with mailbox() as running:
        settings.PARLEY = replace(
            settings.PARLEY, mail=Mail("127.0.0.1", running.port, MailSecurity.NONE, "parley@example.org")
        )
        settings.EMAIL_BACKEND = "controlplane.notify.mailing.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", running.port
        settings.DEFAULT_FROM_EMAIL = "parley@example.org"
        yield running


def channel(name: str = "ops", **more: object) -> Channel:
    wanted = NewChannel(name, ChannelKind.DIGEST, f"{name}@example.org", digest={"every": "hour"}, **more)  # type: ignore[arg-type]
    return channel_create(wanted=wanted, actor=SYSTEM)[0]


def happen(number: int = 1, environment: str = "default", kind: str = "quarantine.opened") -> None:
    payload = {"type": "cluster", "name": f"c-{number}", "revision": 2, "actor": "dana", "reason": "refused"}
    event_append(kind=kind, environment=environment, subject=f"cluster/{number}", payload=payload)


@contextmanager
def later(**by: float) -> Iterator[datetime]:
    """The database's clock, as this room reads it, so much later."""
    moment = database_now() + timedelta(**by)
    with (
        patch("controlplane.notify.services.delivering.database_now", lambda: moment),
        patch("controlplane.notify.services.addressing.database_now", lambda: moment),
        patch("controlplane.notify.services.expanding.database_now", lambda: moment),
    ):
        yield moment


def test_digest__of_an_hour__is_one_mail_with_all_that_happened_when_the_hour_is_over(post: Mailbox) -> None:
    made = channel()
    happen(1)
    notify()
    happen(2)
    notify()

    assert post.received == []
    with later(hours=1):
        notify()
        notify()

    [message] = post.received
    text = message.get_content()
    assert message["To"] == "ops@example.org"
    assert message["Subject"].startswith("[parley] 2 messages of the hour until ")
    assert ("Cluster 'c-1' is quarantined" in text, "Cluster 'c-2' is quarantined" in text) == (True, True)
    assert "/messages" in text
    [delivery] = delivery_list(public_id=made.public_id)
    assert (delivery.title, delivery.state, delivery.entries) == ("Digest of 2 messages", "delivered", 2)
    assert delivery.until is not None


def test_digest__of_an_hour_in_which_nothing_happened__is_not_sent(post: Mailbox) -> None:
    channel()
    happen(1)
    notify()

    for hours in range(1, 6):
        with later(hours=hours):
            notify()

    assert len(post.received) == 1
    assert Delivery.objects.count() == 1


def test_digest__while_nobody_sent_for_hours__is_still_one_for_each_of_them(post: Mailbox) -> None:
    channel()
    for hours in range(3):
        with later(hours=hours):
            happen(hours)
            notifications_expand()

    with later(hours=4):
        notify()

    subjects = [each["Subject"] for each in post.received]
    assert len(set(subjects)) == len(subjects) == 3
    assert all("1 message of the hour" in each for each in subjects)


def test_digest__worker_killed_before_it_kept_the_answer__comes_again_as_the_same_mail(post: Mailbox) -> None:
    channel()
    happen(1)
    notifications_expand()

    def killed(*_arguments: object) -> None:
        raise SystemExit

    with later(hours=1), patch.object(delivering, "_keep", killed), pytest.raises(SystemExit):
        notify()
    with later(hours=1):
        notify()
    assert len(post.received) == 1  # its lease has not ended
    with later(hours=1, minutes=5):
        happen(2)
        notify()
        notify()

    first, second = post.received
    assert (first["Message-ID"], first.get_content()) == (second["Message-ID"], second.get_content())
    # What came meanwhile is in the next one.
    assert Delivery.objects.count() == 2


def test_digest__worker_killed_before_it_sent__is_sent_once(post: Mailbox) -> None:
    channel()
    happen(1)
    notifications_expand()

    with later(hours=1), patch.object(delivering, "_parcel", side_effect=SystemExit), pytest.raises(SystemExit):
        notify()
    with later(hours=1, minutes=5):
        notify()

    assert len(post.received) == 1


def test_digest__written_to_while_it_falls_due__is_sent_with_what_is_being_written(post: Mailbox) -> None:
    channel()
    happen(1)
    notifications_expand()
    happen(2)
    written, may_end, count = threading.Event(), threading.Event(), expanding._count

    def stalled(kinds: Sequence[str]) -> None:
        written.set()
        assert may_end.wait(10)
        count(kinds)

    with patch.object(expanding, "_count", stalled):
        writer = threading.Thread(target=notifications_expand, daemon=True)
        writer.start()
        assert written.wait(10)
        moment = database_now() + timedelta(hours=1)
        with patch.object(delivering, "database_now", lambda: moment):
            sender = threading.Thread(target=deliveries_send, daemon=True)
            sender.start()
            sender.join(0.3)
            may_end.set()
            writer.join(10)
            sender.join(10)

    [message] = post.received
    assert message["Subject"].startswith("[parley] 2 messages of")


def test_message__of_a_worker_that_is_late__is_in_the_digest_after_the_one_that_was_tried(post: Mailbox) -> None:
    channel()
    happen(1)
    notifications_expand()
    with later(hours=1):
        notify()

    happen(2)
    notifications_expand()  # as one whose clock has read the time before the hour ended
    with later(hours=2):
        notify()

    first, second = (each.get_content() for each in post.received)
    assert ("c-1" in first, "c-2" in first) == (True, False)
    assert ("c-1" in second, "c-2" in second) == (False, True)


def test_digest__refused_by_the_mail_server__is_tried_again_and_says_why(post: Mailbox) -> None:
    made = channel()
    happen(1)
    notifications_expand()
    post.refuses = "550 5.1.1 no such person"

    with later(hours=1):
        notify()
        happen(2)
        notifications_expand()
    [newer, failed] = delivery_list(public_id=made.public_id)
    post.refuses = ""
    with later(hours=1, minutes=1):
        notify()

    assert failed.answer == "The mail server refused the recipient: 550 5.1.1 no such person"
    assert (failed.state, failed.attempts) == ("pending", 1)
    # It is as it was when it was tried first.
    [message] = post.received
    assert message["Subject"].startswith("[parley] 1 message of")
    assert newer.state == "pending"


def test_digest__of_environments_and_kinds__has_those_alone(post: Mailbox) -> None:
    channel(environments=("prod",), kinds=("quarantine.opened",))
    happen(1)
    happen(2, "prod")
    happen(3, "prod", "quarantine.released")
    notifications_expand()

    with later(hours=1):
        notify()

    [message] = post.received
    assert message["Subject"].startswith("[parley] 1 message of")
    assert "c-2" in message.get_content()


def test_digest__of_more_than_anybody_reads__lists_the_most_urgent_and_counts_all(post: Mailbox) -> None:
    channel()
    many = Limits().messages_per_h + LISTED
    for number in range(many):
        happen(number)
    event_append(kind="fleet.dropped", environment="default", subject="fleet", payload={"clients": 9, "of": 10})
    while notifications_expand():
        pass

    with later(hours=1):
        notify()

    [message] = post.received
    text = message.get_content()
    assert message["Subject"].startswith(f"[parley] {many + 1} messages of")
    assert text.count("\n* ") == LISTED
    assert text.index("9 of 10 clients are gone") < text.index("is quarantined")
    assert f"And {many + 1 - LISTED} more" in text


def test_digest__older_than_messages_are_kept__is_deleted_with_them() -> None:
    channel()
    happen(1)
    notifications_expand()
    for table, column in ((Notification, "at"), (Delivery, "until")):
        table.objects.update(**{column: database_now() - _KEEP_NOTIFICATIONS - timedelta(minutes=1)})

    happen(2)
    notifications_expand()

    assert Notification.objects.count() == DigestEntry.objects.count() == Delivery.objects.count() == 1


def test_sample__of_a_digest__is_a_mail_at_once(post: Mailbox) -> None:
    made = channel()

    sent = channel_test(public_id=made.public_id)

    assert (sent.ok, sent.answer) == (True, "accepted by the mail server")
    [message] = post.received
    assert "A sample for channel 'ops'" in message.get_content()
    assert Delivery.objects.count() == 0
