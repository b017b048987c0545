"""Which deliveries have their turn: of a channel that makes alerts, none before what waits about the same thing."""

from django.db.models import Exists, OuterRef, Q

from controlplane.notify.channel_kinds import ALERTING
from controlplane.notify.models import Delivery, DeliveryState


def in_turn() -> Q:
    """A condition on deliveries. Were the end of something taken before its beginning, its alert would stay open."""
    before = Delivery.objects.filter(
        channel=OuterRef("channel"),
        state=DeliveryState.PENDING.value,
        notification__environment=OuterRef("notification__environment"),
        notification__subject=OuterRef("notification__subject"),
        pk__lt=OuterRef("pk"),
    )
    return ~Q(channel__kind__in=ALERTING) | Q(~Exists(before))
