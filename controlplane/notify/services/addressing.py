"""Decides which channels are sent a notification, and when: at once, with the next digest, or not at all.

What one person alone is told, and what is muted, goes to no channel. Of what there was too much of (`expanding`), a
channel gets it in a digest all the same, where everything is one mail. And where a channel makes alerts, it gets in any
case the end of what it was told of, for nobody else would close the alert.
"""

from collections.abc import Collection, Sequence

from controlplane.clients.clock import database_now
from controlplane.journal.services import Event
from controlplane.notify.catalogue import KINDS, Severity, Stage, beginnings
from controlplane.notify.channel_kinds import ChannelKind, Manner
from controlplane.notify.models import Channel, Delivery, DigestEntry, Notification, Sending
from controlplane.notify.schedules import schedule_stored
from controlplane.notify.services.summing import SUMMARY

Told = tuple[Notification, Event]


def notifications_address(told: Sequence[Told]) -> None:
    """Write down which of these notifications go to which channels, in the caller's transaction. Each comes with the
    event that it tells.
    """
    if not told:
        return
    channels = list(Channel.objects.order_by("pk"))
    for notification, event in told:
        wanting = [each for each in channels if _concerns(each, event) and _sent_at_once(each, notification, event)]
        now = database_now()
        Delivery.objects.bulk_create(Delivery(notification=notification, channel=each, next_at=now) for each in wanting)
    # One channel after the other in one order, so that two processes cannot block each other.
    for channel in channels:
        if ChannelKind(channel.kind).facts.manner is Manner.DIGEST:
            _collect(channel, told)


def _concerns(channel: Channel, event: Event) -> bool:
    """Whether the channel is told of the event's environment. The pause of a channel is told by the others."""
    within = not channel.environments or not event.environment or event.environment in channel.environments
    return within and str(channel.public_id) != str(event.payload.get("channel_id", ""))


def _wants(channel: Channel, kinds: Collection[str]) -> bool:
    """Whether the channel is told of one of these kinds."""
    return not channel.kinds or any(kind in channel.kinds for kind in kinds)


def _sent_at_once(channel: Channel, notification: Notification, event: Event) -> bool:
    """Whether the notification, which concerns the channel, is sent to it for itself. `event`: what it tells."""
    manner, kind = ChannelKind(channel.kind).facts.manner, KINDS[event.kind]
    if manner is Manner.DIGEST:
        return False
    is_sent = notification.sending == Sending.SENT.value
    if manner is Manner.ALERTS and kind.stage is Stage.ENDS:
        # Whatever else the channel wants. Of what began before anything is kept, nothing says whether it was told.
        begins = beginnings(kind)
        return _was_told(channel, notification, begins) or (is_sent and _wants(channel, begins))
    if manner is Manner.ALERTS and kind.stage is Stage.MOMENT and notification.severity == Severity.QUIET.value:
        return False  # nobody has to do anything about it
    # A summary is for those who would have been sent what it sums up.
    about = event.payload.get("kinds") if event.kind == SUMMARY else None
    return is_sent and _wants(channel, {event.kind, *(about if isinstance(about, list) else ())})


def _was_told(channel: Channel, notification: Notification, kinds: Collection[str]) -> bool:
    """Whether the channel is told, in one of these kinds, of what the notification is about."""
    return Delivery.objects.filter(
        channel=channel,
        notification__environment=notification.environment,
        notification__subject=notification.subject,
        notification__kind__in=kinds,
    ).exists()


def _collect(channel: Channel, told: Sequence[Told]) -> None:
    """Put those of the notifications that the channel is told of into its next digest."""
    wanted = [
        notification
        for notification, event in told
        if event.kind != SUMMARY
        and notification.sending != Sending.INBOX.value
        and _concerns(channel, event)
        and _wants(channel, {event.kind})
    ]
    if wanted:
        digest = _next_digest(channel)
        DigestEntry.objects.bulk_create(DigestEntry(delivery=digest, notification=each) for each in wanted)


def _next_digest(channel: Channel) -> Delivery:
    """The channel's next digest that takes entries: that of this hour or day or, once that has been tried, of the next
    one. It is locked until the transaction ends, so that it is not tried before the entries are in it.
    """
    schedule, after = schedule_stored(channel.schedule), database_now()
    while True:
        until = schedule.due_after(after)
        Delivery.objects.get_or_create(channel=channel, until=until, defaults={"next_at": until})
        # One that was tried is not locked: whoever keeps what became of the try waits for nobody here.
        found = Delivery.objects.select_for_update().filter(channel=channel, until=until, tried_at=None).first()
        if found is not None:
            return found
        after = until
