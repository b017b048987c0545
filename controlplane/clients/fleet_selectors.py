"""Answers what the connected clients have, for many clients at once: the status service of ADS reads it; and what they
ask for, for whoever judges what a change would mean to them.

Values only, never rows. Shared lists (names, contents of responses) are read once, however many clients refer to them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db.models import Count

from controlplane.clients.asks import Asks, FleetAsks
from controlplane.clients.facts import unpack_contents, unpack_names
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.holding_words import UNSAID
from controlplane.clients.models import Client, ContentList, Nack, NameSet, Stream, Subscription
from xdscore.client_kinds import UNKNOWN_VERSION, ClientFamily, kind_of
from xdscore.environment_choice import ClientFacts
from xdscore.holdings import Holding

_DELTA = "delta"
# As many keys as both databases take in one statement without thinking about it.
_CHUNK = 500
# The columns of an `Asks`.
_ASKS = ("stream__client_id", "type", "wildcard", "name_set_id")


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """A client with an open stream. `id`: the public id; `environment`: the environment's key."""

    id: str
    environment: str
    identity: str
    node_id: str
    node_cluster: str
    user_agent: str
    user_agent_version: str


@dataclass(frozen=True, slots=True)
class StreamNack:
    """A NACK on one stream for one type. `text` is the client's, without secrets and harmless to show.

    `version`: of the refused response.
    `suspects`: the (name, version) of what the client may have refused of the response.
    `healing`: whether the client was sent again what it had acknowledged of them.
    """

    text: str
    version: str
    suspects: tuple[tuple[str, str], ...]
    healing: bool


@dataclass(frozen=True, slots=True)
class StreamSubscription:
    """The subscription of an open stream to one type.

    `delta`: whether it is of a delta stream.
    `sent`, `acked`: the versions of the responses that were last sent and last acknowledged; empty where there is none.
    `holdings`: what the client has, by name; many subscriptions share one mapping.
    `since`: since when, at the latest, it is so.
    `nacks`: the NACKs of this stream and type that are still stored, oldest first.
    """

    client: str
    stream: str
    type: str
    delta: bool
    sent: str
    acked: str
    holdings: Mapping[str, Holding]
    since: datetime | None
    nacks: tuple[StreamNack, ...]


def connected_clients() -> tuple[ConnectedClient, ...]:
    """Every client with an open stream, ordered by environment and node id. One query."""
    connected = Stream.objects.filter(closed_at=None).values("client")
    rows = Client.objects.filter(pk__in=connected).order_by("environment__key", "node_id", "pk")
    columns = ("pk", "environment__key", "identity", "node_id", "node_cluster", "user_agent", "user_agent_version")
    return tuple(ConnectedClient(*row) for row in rows.values_list(*columns))


def envoys_connected(*, environment_key: str) -> Mapping[str, int]:
    """How many Envoys of each version (`1.36`) have an open stream in an environment. Those that name no version are
    left out. One query.
    """
    connected = Stream.objects.filter(closed_at=None).values("client")
    rows = Client.objects.filter(environment__key=environment_key, family=ClientFamily.ENVOY.value, pk__in=connected)
    counts: Counter[str] = Counter()
    for user_agent, said, count in rows.values_list("user_agent", "user_agent_version").annotate(count=Count("pk")):
        counts[kind_of(user_agent, said).version] += count
    counts.pop(UNKNOWN_VERSION, None)
    return counts


def fleet_subscriptions(*, clients: Collection[str], max_nacks: int) -> Mapping[str, tuple[StreamSubscription, ...]]:
    """The subscriptions of these clients' open streams, by client id. Of the NACKs only the newest `max_nacks` are
    read.

    Several statements read them; a set that was deleted in between reads as empty.
    """
    found: dict[str, list[StreamSubscription]] = {client: [] for client in clients}
    for chunk in _chunks(clients):
        rows = list(
            Subscription.objects.filter(stream__client__in=chunk, stream__closed_at=None).select_related("stream")
        )
        holdings = _holdings(rows)
        nacks = _nacks(chunk, {row.stream_id for row in rows}, max_nacks)
        for row in sorted(rows, key=lambda row: (row.stream_id, row.type)):
            found[row.stream.client_id].append(
                StreamSubscription(
                    client=row.stream.client_id,
                    stream=row.stream_id,
                    type=row.type,
                    delta=row.stream.variant == _DELTA,
                    sent=row.sent,
                    acked=row.acked,
                    holdings=holdings[_set_of(row)],
                    since=row.held_at,
                    nacks=tuple(nacks.get((row.stream_id, row.type), ())),
                )
            )
    return {client: tuple(subscriptions) for client, subscriptions in found.items()}


_SetOf = tuple[str | None, str]
"""The id of a set of what is had; and, where there is none, that of the set of names that are asked for."""


def _set_of(row: Subscription) -> _SetOf:
    return row.holding_set_id, "" if row.holding_set_id is not None else row.name_set_id


def _holdings(rows: Iterable[Subscription]) -> Mapping[_SetOf, Mapping[str, Holding]]:
    """What the clients of these rows have, read once for all that have the same."""
    wanted = {_set_of(row) for row in rows}
    sets = StoredSets({held for held, _ in wanted})
    names = _name_sets({name_set for held, name_set in wanted if held is None})
    return {
        (held, name_set): sets.items(held) if held is not None else dict.fromkeys(names.get(name_set, ()), UNSAID)
        for held, name_set in wanted
    }


def _nacks(clients: list[str], streams: set[str], limit: int) -> dict[tuple[str, str], list[StreamNack]]:
    newest = list(Nack.objects.filter(client__in=clients).order_by("-id")[:limit])
    rows = [row for row in newest if row.stream in streams]
    contents = _content_lists({row.suspects_id for row in rows})
    found: dict[tuple[str, str], list[StreamNack]] = {}
    for row in reversed(rows):
        nack = StreamNack(row.text, row.version, contents.get(row.suspects_id, ()), row.healing)
        found.setdefault((row.stream, row.type), []).append(nack)
    return found


def _name_sets(ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    return {
        pk: unpack_names(bytes(packed))
        for chunk in _chunks(ids)
        for pk, packed in NameSet.objects.filter(pk__in=chunk).values_list("pk", "names")
    }


def _content_lists(ids: Iterable[str]) -> dict[str, tuple[tuple[str, str], ...]]:
    return {
        pk: unpack_contents(bytes(packed))
        for chunk in _chunks(ids)
        for pk, packed in ContentList.objects.filter(pk__in=chunk).values_list("pk", "contents")
    }


def _chunks(keys: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(keys)
    while chunk := list(islice(remaining, _CHUNK)):
        yield chunk


def fleet_asks(*, environment_key: str, words: Collection[str]) -> FleetAsks:
    """The clients connected to an environment, with their subscriptions to the types `words`."""
    here = Stream.objects.filter(closed_at=None, client__environment__key=environment_key)
    columns = ("client_id", "client__identity", "client__node_id", "client__node_cluster")
    clients = {
        public_id: ClientFacts(identity, node_id, node_cluster)
        for public_id, identity, node_id, node_cluster in here.values_list(*columns)
    }
    rows = Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key=environment_key, type__in=list(words)
    )
    # Few clients have several streams: to find them here costs less than to sort all rows in the database.
    found = dict.fromkeys(rows.values_list(*_ASKS))
    sets = NameSet.objects.filter(pk__in=rows.values("name_set_id").distinct())
    names = {pk: unpack_names(bytes(packed)) for pk, packed in sets.values_list("pk", "names")}
    # What came between these reads is left out.
    asks = tuple(
        Asks(client, word, wildcard, name_set)
        for client, word, wildcard, name_set in found
        if client in clients and name_set in names
    )
    return FleetAsks(clients, asks, names)


def fleet_asking(*, environment_key: str, word: str, names: Collection[str]) -> Mapping[str, ClientFacts]:
    """The connected clients, by id, that ask for at least one of these names by name; a wildcard does not count.
    `word`: the type. Two queries.
    """
    here = Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key=environment_key, type=word
    )
    wanted = frozenset(names)
    sets = NameSet.objects.filter(pk__in=here.values("name_set_id").distinct()).values_list("pk", "names")
    asking = [pk for pk, packed in sets if not wanted.isdisjoint(unpack_names(bytes(packed)))]
    prefix = "stream__client"
    columns = (f"{prefix}_id", f"{prefix}__identity", f"{prefix}__node_id", f"{prefix}__node_cluster")
    rows = here.filter(name_set_id__in=asking).values_list(*columns).distinct()
    return {client: ClientFacts(identity, node_id, node_cluster) for client, identity, node_id, node_cluster in rows}
