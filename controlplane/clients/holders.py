"""Answers which connected clients ask for one resource, and what each made of its newest revision."""

from dataclasses import dataclass
from datetime import datetime

from controlplane.clients.barriers import barrier_of
from controlplane.clients.coverage import clients_refusing
from controlplane.clients.facts import SubscriptionState
from controlplane.clients.models import Subscription
from controlplane.clients.selectors import covering
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import ResourceType


@dataclass(frozen=True, slots=True)
class Holder:
    """An open stream that asks for the resource, by name or with a wildcard.

    `state` is NACKED for who refused this very revision, whatever it acknowledged since: something older stands in.
    `denied`: it may not read the name, and was told so; whatever it acknowledged was that.
    """

    client: str
    identity: str
    node_id: str
    family: str
    wildcard: bool
    state: SubscriptionState
    sent_at: datetime | None
    acked_at: datetime | None
    denied: bool = False


def holders_of(*, environment_key: str, kind: ResourceType, name: str, version: str, limit: int) -> tuple[Holder, ...]:
    """The first `limit` open streams that ask for the resource, those that refuse it first. `version`: that of its
    newest revision, on the wire.

    A wildcard does not ask for what the client may not read.
    """
    rows = covering(
        Subscription.objects.filter(stream__closed_at=None), environment_key, kind.word, [name]
    ).select_related("stream__client")
    nacked = rows.filter(state=SubscriptionState.NACKED.value).order_by("stream__client__node_id")[:limit]
    others = rows.exclude(state=SubscriptionState.NACKED.value).order_by("stream__client__node_id")[:limit]
    found = [*nacked, *others][:limit]
    clients = {row.stream.client_id for row in found}
    refusing = clients_refusing(clients=clients, word=kind.word, name=name, version=version)
    barrier = barrier_of(environment_key=environment_key, keys=[(kind.word, name)])
    kept = {row.pk for row in found if barrier.keeps(barrier.audience(_facts(row)), (kind.word, name))}
    return tuple(
        _holder(row, refused=row.stream.client_id in refusing, denied=row.pk in kept)
        for row in found
        if not (row.wildcard and row.pk in kept)
    )


def _facts(row: Subscription) -> ClientFacts:
    client = row.stream.client
    return ClientFacts(client.identity, client.node_id, client.node_cluster)


def _holder(row: Subscription, *, refused: bool, denied: bool) -> Holder:
    client = row.stream.client
    said = SubscriptionState(row.state)
    # A response that was refused over another resource: of this one the client has what it had.
    about_it = SubscriptionState.ACKED if said is SubscriptionState.NACKED else said
    return Holder(
        client=client.pk,
        identity=client.identity,
        node_id=client.node_id,
        family=client.family,
        wildcard=row.wildcard,
        state=SubscriptionState.NACKED if refused else about_it,
        sent_at=row.sent_at,
        acked_at=row.acked_at,
        denied=denied,
    )
