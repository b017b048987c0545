"""Connected Envoys, as ADS would have reported them."""

from itertools import count

from django.utils import timezone

from controlplane.catalog.models import Environment
from controlplane.clients.models import Client, Replica, Stream

_numbers = count(1)


def connect(environment: str, *versions: str, closed: bool = False) -> None:
    """Store an Envoy of each of these versions that has, or had, a stream."""
    now = timezone.now()
    replica, _ = Replica.objects.get_or_create(id="ads", defaults={"pid": 1, "started_at": now, "seen_at": now})
    for version in versions:
        number = next(_numbers)
        client = Client.objects.create(
            id=f"c{number}",
            environment=Environment.objects.get(key=environment),
            node_id=f"node-{number}",
            family="envoy",
            user_agent="envoy",
            user_agent_version=version,
            first_seen=now,
            last_seen=now,
        )
        Stream.objects.create(
            id=f"s{number}",
            client=client,
            replica=replica,
            variant="delta",
            opened_at=now,
            closed_at=now if closed else None,
        )
