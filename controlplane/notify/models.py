"""The tables of notifications (decisions part 5). Private to this app's services and selectors."""

import uuid
from enum import StrEnum

from django.db import models
from django.utils import timezone

from controlplane.common.principal_ids import MAX_PRINCIPAL_CHARS
from controlplane.notify.catalogue import Severity
from controlplane.notify.channel_kinds import ChannelKind
from xdscore.shares import ACCOUNTABLE_CHARS


class DeliveryState(StrEnum):
    """How far the delivery of one notification to one channel has come."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Sending(StrEnum):
    """Whether a notification was sent to channels. In any case it is in the inbox of the console."""

    SENT = "sent"  # to every channel that wants it
    INBOX = "inbox"  # to none: it is muted, or concerns one person alone
    HELD = "held"  # to none: there were too many
    SUMMED = "summed"  # to none, and a summary has said so


class Channel(models.Model):
    """A channel to which notifications are sent.

    `target`: a URL or a mail address.
    `environments`, `kinds`: the only ones of which it is told; empty: all.
    `schedule`: when digests are due, as JSON; null where it has none.
    `secret`: the key with which webhooks are signed, or which a receiver's service gave, encrypted.
    `failures`: how many tries in a row failed; `failing_since`: when the first of them did, null without any.
    `paused_at`: since when nothing is sent; null: it is not paused.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=16)
    target = models.CharField(max_length=2_000)
    environments = models.JSONField(default=list)
    kinds = models.JSONField(default=list)
    schedule = models.JSONField(null=True)
    secret = models.BinaryField(default=bytes)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)
    paused_reason = models.CharField(max_length=300, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The database refuses a row whose kind is not a known one."""

        constraints = (
            models.CheckConstraint(
                condition=models.Q(kind__in=[kind.value for kind in ChannelKind]), name="channel_kind_known"
            ),
        )

    def __str__(self) -> str:
        """The channel's name."""
        return self.name


class Notification(models.Model):
    """A notification in the inbox. `event`: the event that it tells; one event makes at most one notification.

    `caused_by`: the key of whoever is accountable for it, when messages are limited per party (`xdscore.shares`), or
        `SEVERAL`; empty where no data plane caused it.
    `recipient`: the id (`principal_ids.PrincipalId`) of the person whom it concerns; empty where it is nobody's alone.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    event = models.BigIntegerField(unique=True)
    at = models.DateTimeField(db_index=True)
    kind = models.CharField(max_length=64)
    environment = models.CharField(max_length=64, blank=True)
    subject = models.CharField(max_length=1200, blank=True)
    severity = models.CharField(max_length=8)
    title = models.CharField(max_length=500)
    text = models.TextField()
    link = models.CharField(max_length=500, blank=True)
    caused_by = models.CharField(max_length=ACCOUNTABLE_CHARS, blank=True, db_default="")
    recipient = models.CharField(max_length=MAX_PRINCIPAL_CHARS, blank=True, db_default="")
    sending = models.CharField(max_length=8, db_default=Sending.SENT.value)

    class Meta:
        """Notifications are looked up by subject, to find repeats; those that no summary has counted yet by an index of
        their own.
        """

        indexes = (
            models.Index(fields=("environment", "id"), name="notification_by_env"),
            models.Index(fields=("id",), condition=models.Q(sending="held"), name="notification_held"),
        )
        constraints = (
            models.CheckConstraint(
                condition=models.Q(sending__in=[each.value for each in Sending]), name="sending_known"
            ),
            models.CheckConstraint(
                condition=models.Q(severity__in=[each.value for each in Severity]), name="severity_known"
            ),
        )

    def __str__(self) -> str:
        """The notification's title."""
        return self.title


class ToldCount(models.Model):
    """The number of notifications of a kind that there ever were, also those that are deleted."""

    kind = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        """The kind and the number of its notifications."""
        return f"{self.kind}: {self.count}"


class Delivery(models.Model):
    """The delivery of one notification to one channel, or of one digest, whose notifications are its entries: the
    tries, and the last answer.

    `until`: of a digest, the end of the hour or day that it tells of; null for a notification.
    `tried_at`: when it was tried last; from the first try on a digest takes no more entries.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    notification = models.ForeignKey(Notification, null=True, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    until = models.DateTimeField(null=True)
    state = models.CharField(max_length=16, default=DeliveryState.PENDING.value)
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField()
    tried_at = models.DateTimeField(null=True)
    answer = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        """At most one delivery of each notification to each channel, and one digest for each of its periods. Those that
        wait are looked up by a small index of their own, a channel's newest ones by two.
        """

        constraints = (
            models.UniqueConstraint(fields=("notification", "channel"), name="one_delivery_per_channel"),
            models.UniqueConstraint(fields=("channel", "until"), name="one_digest_per_period"),
            models.CheckConstraint(
                condition=models.Q(notification__isnull=False, until=None)
                | models.Q(notification=None, until__isnull=False),
                name="delivery_of_one_or_digest",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=[each.value for each in DeliveryState]), name="delivery_state_known"
            ),
        )
        indexes = (
            models.Index(fields=("next_at",), condition=models.Q(state="pending"), name="delivery_due"),
            models.Index(fields=("channel", "-id"), name="delivery_newest"),
            models.Index(fields=("channel", "state", "-id"), name="delivery_newest_in_state"),
        )

    def __str__(self) -> str:
        """The delivery's state and number of tries."""
        return f"{self.state} after {self.attempts}"


class DigestEntry(models.Model):
    """A notification in a digest, written in the transaction that made the notification."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="entries")
    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="digests")

    class Meta:
        """A digest has each notification once."""

        constraints = (models.UniqueConstraint(fields=("delivery", "notification"), name="one_entry_per_notification"),)

    def __str__(self) -> str:
        """Which digest it is in."""
        return f"in {self.delivery_id}"
