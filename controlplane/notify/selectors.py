"""Reads channels, their delivery logs, and the inbox. Values only, never rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from controlplane.common.errors import NotFound
from controlplane.notify.catalogue import KINDS
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.models import Channel, Delivery, DeliveryState, Notification, ToldCount
from controlplane.outside.targets import shown_target

_LOGGED = 100


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A channel as it is shown: without its secret and the path of its URL. `paused_reason`: empty while it is not
    paused.
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
    """The delivery of one notification, as a channel's log shows it. `answer`: that of the other side; `next_at`: when
    it is tried again, None where it is not.
    """

    id: str
    title: str
    state: DeliveryState
    attempts: int
    tried_at: datetime | None
    next_at: datetime | None
    answer: str


@dataclass(frozen=True, slots=True)
class NotificationView:
    """One notification in the inbox. `number` orders notifications; `id` is public; `link` is the URL of the page that
    says more.
    """

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
    """The notifications of these environments, newest first. `before`: only those with a smaller number; None: from the
    newest.
    """
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
    """The time at which the delivery that is overdue longest should have been tried; None when none is due. Deliveries
    to paused channels do not count: they wait for a person.
    """
    due = Delivery.objects.filter(state=DeliveryState.PENDING.value, channel__paused_at=None)
    return due.order_by("next_at").values_list("next_at", flat=True).first()


def told_counts() -> Mapping[str, int]:
    """The number of notifications of each kind that there ever were, also those that are deleted."""
    counted = dict(ToldCount.objects.values_list("kind", "count"))
    return {kind: counted.get(kind, 0) for kind in KINDS}


def channels_paused() -> int:
    """The number of channels to which nothing is sent, because too many tries in a row failed or a person paused
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
