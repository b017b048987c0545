"""Answers what the connected clients were sent, for many clients at once: the status service of ADS reads it; and what
they ask for, for whoever judges what a change would mean to them.

Values only, never rows. Shared lists (names, contents of responses) are read once, however many clients refer to them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from controlplane.clients.asks import Asks, FleetAsks
from controlplane.clients.facts import SubscriptionState, unpack_contents, unpack_names
from controlplane.clients.models import Client, ContentList, Nack, NameSet, Stream, Subscription
from xdscore.environment_choice import ClientFacts

# As many keys as both databases take in one statement without thinking about it.
_CHUNK = 500
# The columns of an `Asks`.
_ASKS = ("stream__client_id", "type", "wildcard", "name_set_id")


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """A client with an open stream. `environment` is a key; `id` is the opaque public one."""

    id: str
    environment: str
    identity: str
    node_id: str
    node_cluster: str
    user_agent: str
    user_agent_version: str


@dataclass(frozen=True, slots=True)
class StreamNack:
    """A NACK of one stream and type. `resources` and `suspects` are (name, version); `text` is redacted and escaped.

    `kept`: the (name, version) of what the client had acknowledged of the suspects, None where that was not written
    down; `healing`: it was sent that again.
    """

    id: int
    text: str
    resources: tuple[tuple[str, str], ...]
    suspects: tuple[tuple[str, str], ...]
    at: datetime
    kept: tuple[tuple[str, str], ...] | None = None
    healing: bool = False


@dataclass(frozen=True, slots=True)
class StreamSubscription:
    """The subscription of an open stream to one type. `sent` and `acked` are versions on the wire, empty when that
    never happened.

    `nacks` are those of this stream and type that are still kept, oldest first.
    """

    client: str
    stream: str
    variant: str
    type: str
    wildcard: bool
    names: tuple[str, ...]
    state: SubscriptionState
    sent: str
    sent_at: datetime | None
    acked: str
    acked_at: datetime | None
    nacks: tuple[StreamNack, ...]


def connected_clients() -> tuple[ConnectedClient, ...]:
    """Every client with an open stream, ordered by environment and node id. One query."""
    connected = Stream.objects.filter(closed_at=None).values("client")
    rows = Client.objects.filter(pk__in=connected).order_by("environment__key", "node_id", "pk")
    columns = ("pk", "environment__key", "identity", "node_id", "node_cluster", "user_agent", "user_agent_version")
    return tuple(ConnectedClient(*row) for row in rows.values_list(*columns))


def fleet_subscriptions(*, clients: Collection[str], max_nacks: int) -> Mapping[str, tuple[StreamSubscription, ...]]:
    """The subscriptions of these clients' open streams, by client. Of NACKs only the newest `max_nacks` are read.

    Read in several statements: a list that was pruned in between reads as empty.
    """
    found: dict[str, list[StreamSubscription]] = {client: [] for client in clients}
    for chunk in _chunks(clients):
        rows = list(
            Subscription.objects.filter(stream__client__in=chunk, stream__closed_at=None).select_related("stream")
        )
        names = _name_sets({row.name_set_id for row in rows})
        nacks = _nacks(chunk, {row.stream_id for row in rows}, max_nacks)
        for row in sorted(rows, key=lambda row: (row.stream_id, row.type)):
            found[row.stream.client_id].append(
                StreamSubscription(
                    client=row.stream.client_id,
                    stream=row.stream_id,
                    variant=row.stream.variant,
                    type=row.type,
                    wildcard=row.wildcard,
                    names=names.get(row.name_set_id, ()),
                    state=SubscriptionState(row.state),
                    sent=row.sent,
                    sent_at=row.sent_at,
                    acked=row.acked,
                    acked_at=row.acked_at,
                    nacks=tuple(nacks.get((row.stream_id, row.type), ())),
                )
            )
    return {client: tuple(subscriptions) for client, subscriptions in found.items()}


def _nacks(clients: list[str], streams: set[str], limit: int) -> dict[tuple[str, str], list[StreamNack]]:
    newest = list(Nack.objects.filter(client__in=clients).order_by("-id")[:limit])
    rows = [row for row in newest if row.stream in streams]
    lists = (each for row in rows for each in (row.resources_id, row.suspects_id, row.kept_id))
    contents = _content_lists({each for each in lists if each is not None})
    found: dict[tuple[str, str], list[StreamNack]] = {}
    for row in reversed(rows):
        nack = StreamNack(
            row.pk,
            row.text,
            contents.get(row.resources_id, ()),
            contents.get(row.suspects_id, ()),
            row.at,
            contents.get(row.kept_id, ()) if row.kept_id is not None else None,
            row.healing,
        )
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
    """The clients connected to this environment, and their subscriptions to these types."""
    here = Stream.objects.filter(closed_at=None, client__environment__key=environment_key)
    columns = ("client_id", "client__identity", "client__node_id", "client__node_cluster")
    clients = {
        public_id: ClientFacts(identity, node_id, node_cluster)
        for public_id, identity, node_id, node_cluster in here.values_list(*columns).distinct()
    }
    rows = Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key=environment_key, type__in=list(words)
    )
    found = rows.values_list(*_ASKS).distinct()
    sets = NameSet.objects.filter(pk__in=rows.values("name_set_id").distinct())
    names = {pk: unpack_names(bytes(packed)) for pk, packed in sets.values_list("pk", "names")}
    # What came between these reads is left out.
    asks = tuple(
        Asks(client, word, wildcard, name_set)
        for client, word, wildcard, name_set in found
        if client in clients and name_set in names
    )
    return FleetAsks(clients, asks, names)


def clients_ask(*, clients: Collection[str]) -> tuple[tuple[Asks, ...], Mapping[str, tuple[str, ...]]]:
    """The subscriptions of these clients' open streams, and the names of each name set. Two queries for 500 clients."""
    found = [
        Asks(*row)
        for chunk in _chunks(clients)
        for row in Subscription.objects.filter(stream__client__in=chunk, stream__closed_at=None).values_list(*_ASKS)
    ]
    names = _name_sets({each.name_set for each in found})
    return tuple(each for each in found if each.name_set in names), names


def fleet_asking(*, environment_key: str, word: str, names: Collection[str]) -> Mapping[str, ClientFacts]:
    """The connected clients, by id, that ask for one of these names itself; a wildcard does not count. Two queries."""
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
