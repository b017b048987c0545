"""Finds clients that were sent something and say nothing to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from controlplane.clients.clock import database_now
from controlplane.clients.facts import SubscriptionState
from controlplane.clients.models import Subscription

_NAMED = 5


@dataclass(frozen=True, slots=True)
class Silence:
    """How many clients of an environment do not answer, with the node ids of the first few."""

    clients: int
    node_ids: tuple[str, ...]


def clients_silent(*, longer_than: timedelta, shorter_than: timedelta) -> Mapping[str, Silence]:
    """The connected clients, by environment, that have not answered the last response of some type for longer than one
    time and shorter than the other.
    """
    now = database_now()
    rows = Subscription.objects.filter(
        state=SubscriptionState.SENT.value,
        stream__closed_at=None,
        sent_at__lte=now - longer_than,
        sent_at__gt=now - shorter_than,
    )
    found: dict[str, set[str]] = {}
    columns = ("stream__client__environment__key", "stream__client__node_id")
    for environment, node_id in rows.values_list(*columns).distinct():
        found.setdefault(environment, set()).add(node_id)
    return {key: Silence(len(names), tuple(sorted(names)[:_NAMED])) for key, names in found.items()}
