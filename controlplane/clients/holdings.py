"""Answers what each client has of each resource: the one source for whoever asks (truth.md H1, H4). Values, never rows.

Where a client has several streams, the one that needs attention counts (`holding_words.WORST_FIRST`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import QuerySet

from controlplane.catalog.selectors import revisions_of
from controlplane.clients.clock import database_now
from controlplane.clients.held_rows import HeldResource, contents_of, rows_of
from controlplane.clients.holding_history import History
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.holding_words import WORST_FIRST, label
from controlplane.clients.models import Client, Stream, Subscription
from controlplane.clients.open_streams import streams_open
from controlplane.clients.selectors import ClientSummary
from controlplane.clients.stream_holdings import (
    Found,
    Key,
    holdings_of_everybody,
    moved_since,
    of_everybody,
    of_one,
)
from controlplane.clients.uses import Uses
from controlplane.common.errors import NotFound
from xdscore.holdings import Holding, HoldingState

NEEDS_ATTENTION: Final = (HoldingState.NACKED, HoldingState.ERROR_SENT)
"""The states of a resource because of which somebody should look at a client."""

Counts = Mapping[HoldingState, Mapping[str, int]]
"""How many clients are in each state, by what they have in it: a revision such as `r12`, `other` for content of no
revision known here, the code of an error, or `none`.
"""


@dataclass(frozen=True, slots=True)
class HeldPage:
    """A page of what clients have. `after`: the cursor at which the next page begins; empty where this is the last.
    `served`: of one resource's clients, the number of the revision that is served; None where it was not asked for, or
    no revision has what is served.
    """

    rows: tuple[HeldResource, ...]
    after: str = ""
    served: int | None = None


@dataclass(frozen=True, slots=True)
class HeldOfType:
    """What a client has of one type: its first resources, by name, how many there are (`count`), and in which states
    any of them is.
    """

    rows: tuple[HeldResource, ...]
    count: int
    states: frozenset[HoldingState]


@dataclass(frozen=True, slots=True)
class HeldSummary:
    """What a connected client has, in short, by type. `attention`: the first resources that need attention;
    `attention_count`: how many do.
    """

    types: Mapping[str, HeldOfType]
    attention: tuple[HeldResource, ...]
    attention_count: int


@dataclass(frozen=True, slots=True)
class HeldNow:
    """What a connected client has of each name. `lately`: the names of which it had something else a moment ago;
    `unsaid`: the types of which a stream does not say what it has.
    """

    names: Mapping[Key, Holding]
    lately: frozenset[Key]
    unsaid: frozenset[str]


@dataclass(frozen=True, slots=True)
class HeldThen:
    """What a client had of one resource at a time. `connected`: a stream that was open then is known.

    `known`: whether it is known what its streams had. `row`: None where they had nothing of the resource.
    """

    connected: bool
    known: bool
    row: HeldResource | None


def client_holdings(
    *,
    public_id: str,
    types: Collection[str] = (),
    states: Collection[HoldingState] = (),
    name: str = "",
    at: datetime | None = None,
    after: str = "",
    limit: int = 100,
) -> HeldPage:
    """What a client has of each resource that it asks for, by type and name, after the cursor `after`. Raises NotFound.

    `types`, `states`: only these; none for all. `name`: only names that contain it, in any case. `at`: what it had at
        that time. A client that is away has what its last stream had, as UNKNOWN.
    """
    client = _client(public_id)
    sets = StoredSets()
    history = History(sets)
    rows = Subscription.objects.filter(stream__client=public_id)
    gone_at = None
    if at is not None or streams_open(public_id).exists():
        rows = rows.filter(stream__in=streams_open(public_id, at))
    else:
        last = Stream.objects.filter(client=public_id, closed_at__isnull=False).order_by("-closed_at").first()
        gone_at = last.closed_at if last is not None else None
        rows = rows.filter(stream=last)
    if types:
        rows = rows.filter(type__in=list(types))
    found = dict(of_one(rows, sets, history, at).found)
    part = name.casefold()
    wanted = [key for key in found if (not part or part in key[1].casefold()) and _cursor(key) > after]
    if gone_at is not None:
        found = {key: each.away() for key, each in found.items()}
    wanted = sorted(key for key in wanted if not states or found[key].holding.state in states)
    page = [(key, found[key]) for key in sorted(wanted, key=_cursor)[: limit + 1]]
    nodes = {public_id: client.node_id}
    shown = rows_of(client.environment.key, nodes, page[:limit], history, at=at, gone_at=gone_at)
    return HeldPage(shown, _cursor(page[limit - 1][0]) if len(page) > limit else "")


def client_summary(*, client: ClientSummary, limit: int, attention: int) -> HeldSummary:
    """What a connected client has, in short: at most `limit` resources of each type, and at most `attention` that need
    attention. Not since when, for that costs a look at each change since.
    """
    sets = StoredSets()
    found = of_one(_open(client.id), sets, History(sets)).found
    by_type: dict[str, list[Key]] = {}
    for key in sorted(found):
        by_type.setdefault(key[0], []).append(key)
    urgent = [key for key in sorted(found) if found[key].holding.state in NEEDS_ATTENTION]
    urgent.sort(key=lambda key: WORST_FIRST.index(found[key].holding.state))
    shown = sorted({*urgent[:attention], *(key for keys in by_type.values() for key in keys[:limit])})
    held = rows_of(client.environment, {client.id: client.node_id}, [(key, found[key]) for key in shown], None)
    rows = dict(zip(shown, held, strict=True))
    return HeldSummary(
        {
            word: HeldOfType(
                tuple(rows[key] for key in keys[:limit]),
                len(keys),
                frozenset(found[key].holding.state for key in keys),
            )
            for word, keys in by_type.items()
        },
        tuple(rows[key] for key in urgent[:attention]),
        len(urgent),
    )


def client_has(*, public_id: str, types: Collection[str], settled: datetime) -> HeldNow:
    """What a connected client has of each name of these types. What moved after `settled` did so lately."""
    sets = StoredSets()
    history = History(sets)
    rows = _open(public_id).filter(type__in=list(types))
    found = of_one(rows, sets, history)
    names = {key: each.holding for key, each in found.found.items()}
    return HeldNow(names, moved_since(rows, sets, history, settled), found.unsaid)


def client_holding(*, public_id: str, word: str, name: str) -> HeldResource | None:
    """What a connected client has of one resource; None where it does not ask for it, or did not say yet. Raises
    NotFound.
    """
    client = _client(public_id)
    sets = StoredSets()
    history = History(sets)
    found = of_one(_open(public_id).filter(type=word), sets, history).found.get((word, name))
    if found is None:
        return None
    return rows_of(client.environment.key, {public_id: client.node_id}, [((word, name), found)], history)[0]


def client_had(*, public_id: str, word: str, name: str, at: datetime) -> HeldThen:
    """What a client had of one resource at a time. Raises NotFound."""
    client = _client(public_id)
    sets = StoredSets()
    history = History(sets)
    streams = streams_open(public_id, at)
    had = of_one(Subscription.objects.filter(stream__in=streams, type=word), sets, history, at)
    found = had.found.get((word, name))
    kept_since = database_now() - timedelta(hours=settings.PARLEY.limits.holding_history_h)
    row = None
    if found is not None:
        nodes = {public_id: client.node_id}
        (row,) = rows_of(client.environment.key, nodes, [((word, name), found)], None, at=at)
    return HeldThen(streams.exists(), at >= kept_since and word not in had.unsaid, row)


def client_said(*, public_id: str, word: str) -> bool:
    """Whether every open stream of a client that asks for this type said what it has of it, and there is one."""
    said = _open(public_id).filter(type=word)
    held = list(said.values_list("holding_set_id", flat=True))
    return bool(held) and None not in held


def resource_holders(
    *,
    environment_key: str,
    key: Key,
    states: Collection[HoldingState] = (),
    revision: int | None = None,
    after: str = "",
    limit: int = 100,
    uses: Uses | None = None,
    served: str = "",
) -> tuple[Counts, HeldPage]:
    """How many connected clients have what of a resource, and a page of them, those that need attention first
    (`holding_words.WORST_FIRST`), after the cursor `after`.

    `key`: the resource, by type and name. `states`, `revision`: the page holds only clients in these states (none: in
        any) that have, or are to have, this revision; the counts are of all. `uses`: what was read before of who uses
        what. `served`: the version on the wire of what is served, whose revision comes with the page.
    """
    word, name = key
    held = holdings_of_everybody(environment_key=environment_key, word=word, names=[name])[name]
    # Thousands have the same, which is looked at once.
    alike: dict[int, list[str]] = {}
    for client, holding in held.items():
        alike.setdefault(id(holding), []).append(client)
    different = {place: held[clients[0]] for place, clients in alike.items()}
    contents = contents_of(((word, name), each) for each in different.values())
    if served:
        contents.add((word, name, served))
    numbers = revisions_of(environment_key=environment_key, contents=contents)
    counts: dict[HoldingState, dict[str, int]] = {}
    wanted: list[tuple[str, str]] = []
    for place, clients in alike.items():
        holding = different[place]
        number = numbers.get((word, name, holding.version))
        of_state = counts.setdefault(holding.state, {})
        of_state[label(holding, number)] = of_state.get(label(holding, number), 0) + len(clients)
        if (not states or holding.state in states) and revision in {None, number}:
            first = str(WORST_FIRST.index(holding.state))
            wanted += ((f"{first}{client}", client) for client in clients if f"{first}{client}" > after)
    page = sorted(wanted)[:limit]
    sets, chosen = StoredSets(), [client for _, client in page]
    found = (
        of_everybody(environment_key=environment_key, word=word, names=[name], sets=sets, clients=chosen)[name]
        if chosen
        else {}
    )
    # Who went meanwhile is left out.
    rows = [((word, name), found[client]) for client in chosen if client in found]
    nodes = {client: each.standing.node_id for client, each in found.items()}
    shown = rows_of(environment_key, nodes, rows, History(sets), uses=uses, numbers=numbers)
    return counts, HeldPage(shown, page[-1][0] if len(wanted) > limit else "", numbers.get((word, name, served)))


def messages_of(
    *, environment_key: str, nodes: Mapping[str, str], names: Collection[tuple[str, str, str]]
) -> Mapping[tuple[str, str, str], str]:
    """The message (`HeldResource`) of what connected clients have of these names, which are (client, type, name). Names
    that a client does not ask for are left out. `nodes`: the node ids of the clients, by client id.
    """
    sets = StoredSets()
    of_type: dict[str, set[str]] = {}
    for _, word, name in names:
        of_type.setdefault(word, set()).add(name)
    clients = {client for client, _, _ in names}
    page: list[tuple[Key, Found]] = []
    for word, some in of_type.items():
        found = of_everybody(environment_key=environment_key, word=word, names=some, sets=sets, clients=clients)
        page += (
            ((word, name), each)
            for name, of_client in found.items()
            for client, each in of_client.items()
            if (client, word, name) in names
        )
    rows = rows_of(environment_key, nodes, page, None)
    return {(each.standing.client, *key): row.message for (key, each), row in zip(page, rows, strict=True)}


def holding_states(*, environment_key: str, word: str, names: Collection[str]) -> Mapping[str, Mapping[str, Holding]]:
    """What each connected client that asks for one of these names has of it: by name and client id."""
    return holdings_of_everybody(environment_key=environment_key, word=word, names=names)


def _client(public_id: str) -> Client:
    client = Client.objects.select_related("environment").filter(pk=public_id).first()
    if client is None:
        raise NotFound(f"There is no client '{public_id[:64]}'. A client is forgotten a day after its last stream.")
    return client


def _open(public_id: str) -> QuerySet[Subscription]:
    """The subscriptions of a client's open streams."""
    return Subscription.objects.filter(stream__in=streams_open(public_id))


def _cursor(key: Key) -> str:
    return f"{key[0]}/{key[1]}"
