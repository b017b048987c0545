"""Answers which connected clients ask for one resource, and what each last said of its type."""

from dataclasses import dataclass
from datetime import datetime

from controlplane.clients.facts import SubscriptionState
from controlplane.clients.models import Subscription
from controlplane.clients.selectors import covering
from xdscore.resource_types import ResourceType


@dataclass(frozen=True, slots=True)
class Holder:
    """One open stream that asks for the resource, by name or with a wildcard."""

    client: str
    identity: str
    node_id: str
    family: str
    wildcard: bool
    state: SubscriptionState
    sent_at: datetime | None
    acked_at: datetime | None


def holders_of(*, environment_key: str, kind: ResourceType, name: str, limit: int) -> tuple[Holder, ...]:
    """The first `limit` streams that ask for it, those that refuse first."""
    rows = covering(
        Subscription.objects.filter(stream__closed_at=None), environment_key, kind.word, [name]
    ).select_related("stream__client")
    nacked = rows.filter(state=SubscriptionState.NACKED.value).order_by("stream__client__node_id")[:limit]
    others = rows.exclude(state=SubscriptionState.NACKED.value).order_by("stream__client__node_id")[:limit]
    return tuple(_holder(row) for row in [*nacked, *others][:limit])


def _holder(row: Subscription) -> Holder:
    client = row.stream.client
    return Holder(
        client=client.pk,
        identity=client.identity,
        node_id=client.node_id,
        family=client.family,
        wildcard=row.wildcard,
        state=SubscriptionState(row.state),
        sent_at=row.sent_at,
        acked_at=row.acked_at,
    )
