"""Answers who acknowledged one revision of a resource. For whoever weighs that against those that refuse it."""

from collections.abc import Mapping
from datetime import datetime

from controlplane.clients.barriers import barrier_of
from controlplane.clients.models import Subscription
from controlplane.clients.selectors import ClientKey, covering
from xdscore.environment_choice import ClientFacts


def clients_acknowledging(*, environment_key: str, word: str, name: str, since: datetime) -> Mapping[str, ClientKey]:
    """The clients, by id, that were sent the type since then, acknowledged it since, and ask for the name, connected or
    gone lately. Raises NotFound.

    ACKs are kept per type: it counts a client whose ACK was for a response composed just before, and one that refused
    the revision and acknowledged what stands in for it, which the caller knows. Not counted is who may not read the
    name: it acknowledged that it was told so.
    """
    answered = Subscription.objects.filter(sent_at__gte=since, acked_at__gte=since)
    columns = (
        "stream__client_id",
        "stream__client__identity",
        "stream__client__node_id",
        "stream__client__node_cluster",
    )
    found = list(covering(answered, environment_key, word, [name]).values_list(*columns).distinct())
    barrier = barrier_of(environment_key=environment_key, keys=[(word, name)])
    if barrier.open:
        return {public_id: (identity, node_id) for public_id, identity, node_id, _ in found}
    return {
        public_id: (identity, node_id)
        for public_id, identity, node_id, cluster in found
        if not barrier.keeps(barrier.audience(ClientFacts(identity, node_id, cluster)), (word, name))
    }
