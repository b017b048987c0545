"""The tables of notifications (decisions part 5). Private to this app's services and selectors."""

import uuid
from enum import StrEnum

from django.db import models
from django.utils import timezone

from controlplane.notify.catalogue import Severity
from controlplane.notify.channel_kinds import ChannelKind
from xdscore.shares import ACCOUNTABLE_CHARS


class DeliveryState(StrEnum):
    """How far one notification has come on its way to one channel."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Sending(StrEnum):
    """Whether a notification was sent to channels besides the inbox."""

    SENT = "sent"  # to every channel that wants it
    HELD = "held"  # to none: there were too many
    SUMMED = "summed"  # to none, and a summary has said so


class Channel(models.Model):
    """A channel that notifications are sent to. `target` is a URL or a mail address; `environments` and `kinds` empty:
    all of them.

    `secret` is sealed; it signs webhooks. `failures` counts tries in a row that went wrong; paused_at: nothing is sent.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=8)
    target = models.CharField(max_length=2_000)
    environments = models.JSONField(default=list)
    kinds = models.JSONField(default=list)
    secret = models.BinaryField(default=bytes)
    failures = models.PositiveIntegerField(default=0)
    paused_at = models.DateTimeField(null=True)
    paused_reason = models.CharField(max_length=300, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The kind is a known one."""

        constraints = (
            models.CheckConstraint(
                condition=models.Q(kind__in=[kind.value for kind in ChannelKind]), name="channel_kind_known"
            ),
        )

    def __str__(self) -> str:
        """The channel's name."""
        return self.name


class Notification(models.Model):
    """A notification in the inbox. `event` makes sure that one event is told once.

    `caused_by`: who is accountable for it (`xdscore.shares`) or its `SEVERAL`; empty where no data plane is.
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
    sending = models.CharField(max_length=8, db_default=Sending.SENT.value)

    class Meta:
        """Notifications are looked up by subject, for repeats; those that no summary has named yet by an index of their
        own.
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
    """How many notifications of a kind there ever were; those that are forgotten count on."""

    kind = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        """The kind and its number."""
        return f"{self.kind}: {self.count}"


class Delivery(models.Model):
    """The delivery of one notification to one channel: the tries, and the last answer."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True)
    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    state = models.CharField(max_length=16, default=DeliveryState.PENDING.value)
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField()
    tried_at = models.DateTimeField(null=True)
    answer = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        """At most one for each notification and channel; those that wait are looked up by a small index of their
        own.
        """

        constraints = (
            models.UniqueConstraint(fields=("notification", "channel"), name="one_delivery_per_channel"),
            models.CheckConstraint(
                condition=models.Q(state__in=[each.value for each in DeliveryState]), name="delivery_state_known"
            ),
        )
        indexes = (models.Index(fields=("next_at",), condition=models.Q(state="pending"), name="delivery_due"),)

    def __str__(self) -> str:
        """The delivery's state and number of tries."""
        return f"{self.state} after {self.attempts}"
