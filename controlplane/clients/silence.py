"""Finds clients that were sent something and say nothing to it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, Exists, OuterRef

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
    """The connected clients, by environment key, whose answer to a response of some type is missing for more than
    `longer_than` and less than `shorter_than`.
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


def unanswered_counts(*, environment_keys: Collection[str]) -> Mapping[str, int]:
    """The number of connected clients that have not answered the last response of some type and refused that of none,
    by environment; one without such clients is left out. One query.
    """
    refused = Subscription.objects.filter(
        stream__client=OuterRef("stream__client"), stream__closed_at=None, state=SubscriptionState.NACKED.value
    )
    rows = Subscription.objects.filter(
        ~Exists(refused),
        state=SubscriptionState.SENT.value,
        stream__closed_at=None,
        stream__client__environment__key__in=list(environment_keys),
    ).order_by()
    counted = rows.values_list("stream__client__environment__key")
    return dict(counted.annotate(count=Count("stream__client", distinct=True)))
