"""Reads channels, their delivery logs, and the inbox. Values only, never rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from controlplane.common.errors import NotFound
from controlplane.common.principal_ids import PrincipalId
from controlplane.notify.catalogue import KINDS
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.models import Channel, Delivery, DeliveryState, DigestEntry, Notification, ToldCount
from controlplane.notify.schedules import Schedule, schedule_stored
from controlplane.notify.turns import in_turn
from controlplane.outside.targets import shown_target

_LOGGED = 100


@dataclass(frozen=True, slots=True)
class LastTry:
    """The newest delivery to a channel that was tried: when, how it stands, and what was answered."""

    at: datetime
    state: DeliveryState
    answer: str


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A channel as it is shown: without its secret and the path of its URL.

    `digest`: when its digests are due; None for a kind without.
    `has_secret`: whether a secret is stored for it.
    `failing_since`: when the first of the `failures` tries in a row failed; None without any.
    `paused_reason`: empty while it is not paused.
    `last`: None where nothing was tried yet.
    """

    id: str
    name: str
    kind: ChannelKind
    target: str
    environments: tuple[str, ...]
    kinds: tuple[str, ...]
    digest: Schedule | None
    has_secret: bool
    failures: int
    failing_since: datetime | None
    paused_at: datetime | None
    paused_reason: str
    last: LastTry | None


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """The delivery of one notification, or of a digest, as a channel's log shows it.

    `number`: orders deliveries; `id` is public.
    `kind`, `environment`: of the notification; empty for a digest, `link` too.
    `until`, `entries`: of a digest, when its hour or day ended and how many notifications it has; None and 0 for a
        notification.
    `next_at`: when it is tried again, None where it is not; `answer`: that of the other side.
    """

    number: int
    id: str
    title: str
    kind: str
    environment: str
    link: str
    until: datetime | None
    entries: int
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
    return _channels(Channel.objects.order_by("name"))


def channel_get(*, public_id: UUID) -> ChannelView:
    """The channel with this public id. Raises NotFound."""
    found = _channels(Channel.objects.filter(public_id=public_id))
    if not found:
        raise NotFound(f"There is no channel '{public_id}'.")
    return found[0]


def delivery_list(
    *,
    public_id: UUID,
    state: DeliveryState | None = None,
    kind: str = "",
    before: int | None = None,
    limit: int = _LOGGED,
) -> tuple[DeliveryView, ...]:
    """Deliveries of a channel, newest first. `state`, `kind`: only those that stand so, and of this kind; `before`:
    only those with a smaller number. Raises NotFound.
    """
    channel = Channel.objects.filter(public_id=public_id).values_list("pk", flat=True).first()
    if channel is None:
        raise NotFound(f"There is no channel '{public_id}'.")
    rows = Delivery.objects.filter(channel=channel)
    if state is not None:
        rows = rows.filter(state=state.value)
    if kind:
        rows = rows.filter(notification__kind=kind)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.select_related("notification").order_by("-pk")[:limit])
    digests = [row.pk for row in found if row.notification is None]
    counted = DigestEntry.objects.filter(delivery__in=digests).values_list("delivery").annotate(count=Count("pk"))
    entries = dict(counted) if digests else {}
    return tuple(_delivery(row, entries.get(row.pk, 0)) for row in found)


def notification_list(
    *,
    environment_keys: Collection[str],
    reader: PrincipalId,
    alone: bool = False,
    severity: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    limit: int = 100,
) -> tuple[NotificationView, ...]:
    """The notifications of these environments, newest first, without those that are for another person alone. `reader`:
    who reads them; `alone`: only those that concern the reader; `severity`: only those that are so urgent; `since`,
    `until`: when they were told, both included; `before`: only those with a smaller number; None: from the newest.
    """
    rows = Notification.objects.filter(environment__in=["", *environment_keys])
    rows = rows.filter(recipient=str(reader)) if alone else rows.exclude(_of_another(reader))
    if severity:
        rows = rows.filter(severity=severity)
    if since is not None:
        rows = rows.filter(at__gte=since)
    if until is not None:
        rows = rows.filter(at__lte=until)
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


def _of_another(reader: PrincipalId) -> Q:
    personal = [kind.name for kind in KINDS.values() if kind.personal]
    return Q(kind__in=personal) & ~Q(recipient=str(reader))


def oldest_delivery_due() -> datetime | None:
    """The time at which the delivery that is overdue longest should have been tried; None when none is due. Deliveries
    to paused channels do not count: they wait for a person; nor do those that wait for their turn.
    """
    due = Delivery.objects.filter(in_turn(), state=DeliveryState.PENDING.value, channel__paused_at=None)
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


def _channels(rows: QuerySet[Channel]) -> tuple[ChannelView, ...]:
    tried = Delivery.objects.filter(channel=OuterRef("pk"), tried_at__isnull=False).order_by("-pk")
    found = list(rows.annotate(last=Subquery(tried.values("pk")[:1])))
    last = Delivery.objects.in_bulk([row.last for row in found if row.last is not None])
    return tuple(_channel(row, last.get(row.last)) for row in found)


def _channel(row: Channel, last: Delivery | None) -> ChannelView:
    return ChannelView(
        str(row.public_id),
        row.name,
        ChannelKind(row.kind),
        shown_target(row.target),
        tuple(row.environments),
        tuple(row.kinds),
        schedule_stored(row.schedule) if row.schedule else None,
        bool(row.secret),
        row.failures,
        row.failing_since,
        row.paused_at,
        row.paused_reason,
        LastTry(last.tried_at, DeliveryState(last.state), last.answer) if last and last.tried_at else None,
    )


def _delivery(row: Delivery, entries: int) -> DeliveryView:
    told = row.notification
    return DeliveryView(
        row.pk,
        str(row.public_id),
        told.title if told is not None else f"Digest of {entries:,} message{'' if entries == 1 else 's'}",
        told.kind if told is not None else "",
        told.environment if told is not None else "",
        told.link if told is not None else "",
        row.until,
        entries,
        DeliveryState(row.state),
        row.attempts,
        row.tried_at,
        row.next_at if row.state == DeliveryState.PENDING.value else None,
        row.answer,
    )
