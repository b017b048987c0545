"""Sends what is due: with back-off when the other side does not take it, and not at all to a channel that is paused.

One process at a time sends. Of each channel one delivery is under way at a time, in its order, and each channel has a
thread of its own for it: however slow one is, and however much is due there, no other waits for it. Those threads wait
for the other side and touch no database. A try is written down before it is made, so that a crash in the middle of one
leads to a later try with the same delivery id and not to two at once.

Where a channel makes alerts, what is told of one thing goes out in its order, also over failures (`turns`).
"""

import threading
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Case, QuerySet, Value, When

from controlplane.builder.claims import claim
from controlplane.builder.sweeper import fork_waits
from controlplane.clients.clock import database_now
from controlplane.journal.services import event_append
from controlplane.notify.bodies import Digest
from controlplane.notify.catalogue import KINDS, Severity, Stage
from controlplane.notify.models import Channel, Delivery, DeliveryState, Notification
from controlplane.notify.schedules import schedule_stored
from controlplane.notify.services.sending import Parcel, Sent, send
from controlplane.notify.turns import in_turn

log = structlog.get_logger(__name__)

# How soon somebody else's new delivery is noticed while one is waited for.
_LOOK_S = 0.5
# After the n-th failed try; then it is given up.
BACK_OFF = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 120, 600, 3_600, 3_600, 3_600))
# Longer than any try can take (`xdscore.limits`, delivery_timeout_ms): only a crash leaves it standing.
_LEASE = timedelta(seconds=60)
# Tries in a row, over all notifications, after which nobody seems to be there any more.
PAUSE_AFTER = 10
# So many messages are listed in a digest; the inbox has all of them.
LISTED = 100


def deliveries_send() -> int:
    """Send every notification that is due, or becomes due meanwhile, to its channel. Returns how many were tried. Does
    nothing while another process sends.

    Returns when nothing is due or being sent any more; earlier, when this process wants to fork, once nothing is being
    sent.
    """
    with claim("notify") as claimed:
        return _Round().run() if claimed else 0


class _Round:
    """The deliveries that are being tried at the moment, at most one for each channel."""

    def __init__(self) -> None:
        # There are no more threads than channels (`channels.MAX_CHANNELS`).
        self._under_way: set[int] = set()
        self._results: SimpleQueue[tuple[Delivery, Sent]] = SimpleQueue()

    def run(self) -> int:
        tried = 0
        try:
            while True:
                if not fork_waits():
                    tried += self._start()
                if not self._under_way:
                    return tried
                self._settle()
        finally:
            # Whatever failed here, those that are out there come back, and what they say is kept.
            while self._under_way:
                try:
                    self._settle()
                except Exception:
                    log.exception("notification.lost")

    def _start(self) -> int:
        waiting = _due().exclude(channel_id__in=self._under_way).values_list("channel_id", flat=True).distinct()
        return sum(self._start_next(channel_id) for channel_id in list(waiting))

    def _start_next(self, channel_id: int) -> bool:
        """Start that delivery of the channel which has been due longest. Returns False where none is due. Each channel
        has its turn, so that one with many deliveries keeps no other waiting.
        """
        ordered = _due().filter(in_turn(), channel_id=channel_id).order_by("next_at", "id")
        delivery = ordered.select_related("channel", "notification").first()
        if delivery is None:
            return False
        now = database_now()
        # From here on a digest takes no more entries (`digesting`), so that those that are read are all.
        Delivery.objects.filter(pk=delivery.pk).update(next_at=now + _LEASE, tried_at=now)
        threading.Thread(target=self._try, args=(delivery, _parcel(delivery, now)), daemon=True).start()
        self._under_way.add(channel_id)
        return True

    def _try(self, delivery: Delivery, parcel: Parcel) -> None:
        """Try one delivery and hand its result back. Runs in a thread of its own, which ends at the deadline of
        `send`.
        """
        try:
            sent = send(parcel)
        except Exception:
            log.exception("notification.failed", channel=delivery.channel.name)
            sent = Sent(False, "It could not be sent; the log of the worker says why.")
        self._results.put((delivery, sent))

    def _settle(self) -> None:
        """Wait a short time for a running delivery to end, and store its result."""
        try:
            delivery, sent = self._results.get(timeout=_LOOK_S)
        except Empty:
            return
        self._under_way.remove(delivery.channel_id)
        _keep(delivery, sent)


def _due() -> QuerySet[Delivery]:
    return Delivery.objects.filter(
        state=DeliveryState.PENDING.value, next_at__lte=database_now(), channel__paused_at=None
    )


def _parcel(delivery: Delivery, now: datetime) -> Parcel:
    """What is sent in a try of this delivery, which begins now."""
    number, channel, timestamp = str(delivery.public_id), delivery.channel, int(now.timestamp())
    if delivery.notification is not None:
        kind = KINDS.get(delivery.notification.kind)
        stage = kind.stage if kind is not None else Stage.MOMENT
        return Parcel(number, channel, (delivery.notification,), timestamp, stage)
    told = Notification.objects.filter(digests__delivery=delivery)
    loudest = Case(*(When(severity=each.value, then=Value(each.loudness)) for each in Severity), default=Value(0))
    schedule = schedule_stored(channel.schedule)
    until = delivery.until or now
    digest = Digest(schedule.every, schedule.local_words(until), told.count(), f"{settings.PARLEY.public_url}/messages")
    return Parcel(number, channel, tuple(told.order_by(loudest.desc(), "pk")[:LISTED]), timestamp, digest=digest)


def _keep(delivery: Delivery, sent: Sent) -> None:
    with transaction.atomic(durable=True):
        channel = Channel.objects.select_for_update().filter(pk=delivery.channel_id).first()
        if channel is None:
            return
        delivery.attempts += 1
        delivery.answer = sent.answer[:300]
        if sent.ok:
            delivery.state, channel.failures, channel.failing_since = DeliveryState.DELIVERED.value, 0, None
        else:
            _failed(delivery, channel)
        channel.save(update_fields=["failures", "failing_since", "paused_at", "paused_reason"])
        delivery.save(update_fields=["attempts", "answer", "state", "next_at"])
    log.info("notification.tried", channel=channel.name, ok=sent.ok, attempt=delivery.attempts, answer=delivery.answer)


def _failed(delivery: Delivery, channel: Channel) -> None:
    now = database_now()
    if delivery.attempts > len(BACK_OFF):
        delivery.state = DeliveryState.FAILED.value
    else:
        delivery.next_at = now + BACK_OFF[delivery.attempts - 1]
    channel.failures += 1
    channel.failing_since = channel.failing_since or now
    if channel.failures < PAUSE_AFTER or channel.paused_at is not None:
        return
    channel.paused_at = now
    channel.paused_reason = f"{channel.failures} tries in a row failed, the last with: {delivery.answer}"[:300]
    event_append(
        kind="channel.paused",
        environment="",
        subject=f"channel/{channel.public_id}",
        payload={"channel": channel.name, "channel_id": str(channel.public_id), "reason": channel.paused_reason},
    )
