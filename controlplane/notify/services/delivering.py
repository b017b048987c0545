"""Sends what is due: with back-off when the other side does not take it, and not at all to a channel that is paused.

One process at a time sends. Of each channel one delivery is under way at a time, in its order, and each channel has a
thread of its own for it: however slow one is, and however much is due there, no other waits for it. Those threads wait
for the other side and touch no database. A try is written down before it is made, so that a crash in the middle of one
leads to a later try with the same delivery id and not to two at once.
"""

import threading
from datetime import timedelta
from queue import Empty, SimpleQueue

import structlog
from django.db import transaction
from django.db.models import QuerySet

from controlplane.builder.claims import claim
from controlplane.builder.sweeper import fork_waits
from controlplane.clients.clock import database_now
from controlplane.journal.services import event_append
from controlplane.notify.models import Channel, Delivery, DeliveryState
from controlplane.notify.services.sending import Sent, send

log = structlog.get_logger(__name__)

# How soon somebody else's new delivery is noticed while one is waited for.
_LOOK_S = 0.5
# After the n-th failed try; then it is given up.
BACK_OFF = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 120, 600, 3_600, 3_600, 3_600))
# Longer than any try can take (`xdscore.limits`, delivery_timeout_ms): only a crash leaves it standing.
_LEASE = timedelta(seconds=60)
# Tries in a row, over all notifications, after which nobody seems to be there any more.
PAUSE_AFTER = 10


def deliveries_send() -> int:
    """Send the notifications that are due, and that become due meanwhile; how many were tried. Does nothing while
    another process sends.

    Returns when nothing is due nor under way, or, where the process wants to fork, when nothing is under way.
    """
    with claim("notify") as claimed:
        return _Round().run() if claimed else 0


class _Round:
    """The deliveries that are under way at the moment, at most one of each channel."""

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
        """Start the channel's delivery that is due first; whether there was one. However many are due, one channel's
        backlog never comes before another channel.
        """
        ordered = _due().filter(channel_id=channel_id).order_by("next_at", "id")
        delivery = ordered.select_related("channel", "notification").first()
        if delivery is None:
            return False
        now = database_now()
        Delivery.objects.filter(pk=delivery.pk).update(next_at=now + _LEASE, tried_at=now)
        threading.Thread(target=self._try, args=(delivery, int(now.timestamp())), daemon=True).start()
        self._under_way.add(channel_id)
        return True

    def _try(self, delivery: Delivery, timestamp: int) -> None:
        """Send one delivery and hand its result back. Runs in a thread of its own, which ends at the deadline of
        `send`.
        """
        try:
            sent = send(delivery, timestamp=timestamp)
        except Exception:
            log.exception("notification.failed", channel=delivery.channel.name)
            sent = Sent(False, "It could not be sent; the log of the worker says why.")
        self._results.put((delivery, sent))

    def _settle(self) -> None:
        """Wait a moment for a delivery to end, and store its result."""
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


def _keep(delivery: Delivery, sent: Sent) -> None:
    with transaction.atomic(durable=True):
        channel = Channel.objects.select_for_update().filter(pk=delivery.channel_id).first()
        if channel is None:
            return
        delivery.attempts += 1
        delivery.answer = sent.answer[:300]
        if sent.ok:
            delivery.state, channel.failures = DeliveryState.DELIVERED.value, 0
        else:
            _failed(delivery, channel)
        channel.save(update_fields=["failures", "paused_at", "paused_reason"])
        delivery.save(update_fields=["attempts", "answer", "state", "next_at"])
    log.info("notification.tried", channel=channel.name, ok=sent.ok, attempt=delivery.attempts, answer=delivery.answer)


def _failed(delivery: Delivery, channel: Channel) -> None:
    now = database_now()
    if delivery.attempts > len(BACK_OFF):
        delivery.state = DeliveryState.FAILED.value
    else:
        delivery.next_at = now + BACK_OFF[delivery.attempts - 1]
    channel.failures += 1
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
