"""Answers what clients had when their streams ended: who took something, and who left before it answered.

Values only. A stream ends by its client where its recorded cause says so (`xdscore.stream_ends`): the client closed it,
or is gone. All other causes are of an ADS process (`adsserver.servicers.ends`).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.models import Stream, Subscription
from xdscore.environment_choice import ClientFacts
from xdscore.holdings import Holding
from xdscore.stream_ends import CLIENT_ENDED

Key = tuple[str, str]
"""The word of a type, and a resource's name."""
_MAX_STREAMS: Final = 10_000
_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class EndedStream:
    """A stream that ended. `by_client`: whether it was the client that ended it, or its death. `agent`: the name and
    version of its software. `held`: what it had then of the names that were asked about.
    """

    client: str
    facts: ClientFacts
    agent: tuple[str, str]
    closed_at: datetime
    by_client: bool
    held: Mapping[Key, Holding]


def streams_ended(*, environment_key: str, since: datetime, keys: Collection[Key]) -> tuple[EndedStream, ...]:
    """The streams of an environment that ended since then, oldest first, at most 10,000 of them, with what their
    clients had of the names `keys`.
    """
    columns = ("client__identity", "client__node_id", "client__node_cluster", "client__user_agent")
    rows = Stream.objects.filter(client__environment__key=environment_key, closed_at__gte=since).order_by("-closed_at")
    found = list(
        rows.values_list("pk", "client_id", "closed_at", "cause", *columns, "client__user_agent_version")[:_MAX_STREAMS]
    )
    held = _held([row[0] for row in found], keys)
    return tuple(
        EndedStream(
            client,
            ClientFacts(identity, node_id, cluster),
            (agent, version),
            closed_at,
            cause == CLIENT_ENDED,
            held.get(pk, {}),
        )
        for pk, client, closed_at, cause, identity, node_id, cluster, agent, version in reversed(found)
        if closed_at is not None
    )


def _held(streams: list[str], keys: Collection[Key]) -> Mapping[str, Mapping[Key, Holding]]:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for word, name in keys:
        names[word].append(name)
    said = [
        row
        for start in range(0, len(streams), _BATCH)
        for row in Subscription.objects.filter(
            stream__in=streams[start : start + _BATCH], type__in=list(names), holding_set__isnull=False
        ).values_list("stream_id", "type", "holding_set_id")
    ]
    sets = StoredSets({held for _, _, held in said})
    found: defaultdict[str, dict[Key, Holding]] = defaultdict(dict)
    for stream, word, held in said:
        for name in names[word]:
            holding = sets.find(held, name)
            if holding is not None:
                found[stream][word, name] = holding
    return found
