"""Reads channels, their delivery logs, and the inbox. Values only, never rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from controlplane.common.errors import NotFound
from controlplane.notify.catalogue import KINDS
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.models import Channel, Delivery, DeliveryState, Notification, ToldCount
from controlplane.notify.targets import shown_target

_LOGGED = 100


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A channel; `paused_reason` is empty while it is not paused. Its secret is never read
    back, and neither is the path of a URL.
    """

    id: str
    name: str
    kind: ChannelKind
    target: str
    environments: tuple[str, ...]
    kinds: tuple[str, ...]
    failures: int
    paused_at: datetime | None
    paused_reason: str


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """One delivery in a channel's log."""

    id: str
    title: str
    state: DeliveryState
    attempts: int
    tried_at: datetime | None
    next_at: datetime | None
    answer: str


@dataclass(frozen=True, slots=True)
class NotificationView:
    """One notification in the inbox."""

    number: int
    id: str
    at: datetime
    kind: str
    environment: str
    subject: str
    severity: str
    title: str
    text: str
    link: str


def channel_list() -> tuple[ChannelView, ...]:
    """Every channel, by name."""
    return tuple(_channel(row) for row in Channel.objects.order_by("name"))


def channel_get(*, public_id: UUID) -> ChannelView:
    """The channel with this public id. Raises NotFound."""
    row = Channel.objects.filter(public_id=public_id).first()
    if row is None:
        raise NotFound(f"There is no channel '{public_id}'.")
    return _channel(row)


def delivery_list(*, public_id: UUID) -> tuple[DeliveryView, ...]:
    """The last hundred deliveries of a channel, newest first. Raises NotFound."""
    channel_get(public_id=public_id)
    rows = Delivery.objects.filter(channel__public_id=public_id).select_related("notification").order_by("-id")
    return tuple(
        DeliveryView(
            str(row.public_id),
            row.notification.title,
            DeliveryState(row.state),
            row.attempts,
            row.tried_at,
            row.next_at if row.state == DeliveryState.PENDING.value else None,
            row.answer,
        )
        for row in rows[:_LOGGED]
    )


def notification_list(
    *, environment_keys: Collection[str], before: int | None = None, limit: int = 100
) -> tuple[NotificationView, ...]:
    """The notifications of these environments, newest first, from the one behind `before` on."""
    rows = Notification.objects.filter(environment__in=["", *environment_keys])
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return tuple(
        NotificationView(
            row.pk,
            str(row.public_id),
            row.at,
            row.kind,
            row.environment,
            row.subject,
            row.severity,
            row.title,
            row.text,
            row.link,
        )
        for row in rows.order_by("-pk")[:limit]
    )


def oldest_delivery_due() -> datetime | None:
    """The time at which the notification that has waited longest should have been tried; None when none waits.

    What waits for a paused channel waits for a person and does not count.
    """
    due = Delivery.objects.filter(state=DeliveryState.PENDING.value, channel__paused_at=None)
    return due.order_by("next_at").values_list("next_at", flat=True).first()


def told_counts() -> Mapping[str, int]:
    """The number of notifications of each kind that there ever were."""
    counted = dict(ToldCount.objects.values_list("kind", "count"))
    return {kind: counted.get(kind, 0) for kind in KINDS}


def channels_paused() -> int:
    """The number of channels that are sent nothing, since too many tries in a row went wrong or a person paused
    them.
    """
    return Channel.objects.exclude(paused_at=None).count()


def _channel(row: Channel) -> ChannelView:
    return ChannelView(
        str(row.public_id),
        row.name,
        ChannelKind(row.kind),
        shown_target(row.target),
        tuple(row.environments),
        tuple(row.kinds),
        row.failures,
        row.paused_at,
        row.paused_reason,
    )
