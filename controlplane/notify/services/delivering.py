"""Sends what is due: with back-off when the other side does not take it, and not at all to a channel that is paused.

One process at a time sends. A try is written down before it is made, so that a crash in the middle of one leads to a
later try with the same delivery id and not to two at once.
"""

from datetime import timedelta

import structlog
from django.db import transaction

from controlplane.builder.claims import claim
from controlplane.clients.clock import database_now
from controlplane.journal.services import event_append
from controlplane.notify.models import Channel, Delivery, DeliveryState
from controlplane.notify.services.sending import send

log = structlog.get_logger(__name__)

_AT_ONCE = 50
# After the n-th failed try; then it is given up.
BACK_OFF = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 120, 600, 3_600, 3_600, 3_600))
# Longer than any try can take: only a crash leaves it standing.
_LEASE = timedelta(seconds=60)
# Tries in a row, over all notifications, after which nobody seems to be there any more.
PAUSE_AFTER = 10


def deliveries_send() -> int:
    """Try what is due; how many were tried. Does nothing while another process sends."""
    with claim("notify") as claimed:
        if not claimed:
            return 0
        due = Delivery.objects.filter(
            state=DeliveryState.PENDING.value, next_at__lte=database_now(), channel__paused_at=None
        ).select_related("channel", "notification")
        tried = 0
        for delivery in due.order_by("next_at", "id")[:_AT_ONCE]:
            tried += _try(delivery)
        return tried


def _try(delivery: Delivery) -> bool:
    now = database_now()
    if Channel.objects.filter(pk=delivery.channel_id).exclude(paused_at=None).exists():
        return False
    Delivery.objects.filter(pk=delivery.pk).update(next_at=now + _LEASE, tried_at=now)
    sent = send(delivery, timestamp=int(now.timestamp()))
    with transaction.atomic(durable=True):
        channel = Channel.objects.select_for_update().filter(pk=delivery.channel_id).first()
        if channel is None:
            return True
        delivery.attempts += 1
        delivery.answer = sent.answer[:300]
        if sent.ok:
            delivery.state, channel.failures = DeliveryState.DELIVERED.value, 0
        else:
            _failed(delivery, channel)
        channel.save(update_fields=["failures", "paused_at", "paused_reason"])
        delivery.save(update_fields=["attempts", "answer", "state", "next_at"])
    log.info("notification.tried", channel=channel.name, ok=sent.ok, attempt=delivery.attempts, answer=delivery.answer)
    return True


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
