"""Answers who the clients behind streams are, and how they ask: what stands beside what they have of a resource."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from controlplane.clients.models import Subscription


@dataclass(frozen=True, slots=True)
class HolderFacts:
    """Whose a stream is. `wildcard`: it asks for everything of the type, not for single names only."""

    identity: str
    family: str
    wildcard: bool


def holder_facts(*, word: str, streams: Collection[str]) -> Mapping[str, HolderFacts]:
    """Whose each of these streams is and how it asks for resources of this type, by the stream's id. One query."""
    rows = Subscription.objects.filter(stream__in=list(streams), type=word).select_related("stream__client")
    return {
        row.stream_id: HolderFacts(row.stream.client.identity, row.stream.client.family, row.wildcard) for row in rows
    }
