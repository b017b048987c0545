"""Answers what each client has of each resource: the one source for whoever asks (truth.md H1, H4). Values, never rows.

Where a client has several streams, the one that needs attention counts (`holding_words.WORST_FIRST`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Final

from django.conf import settings
from django.db.models import Q, QuerySet

from controlplane.catalog.selectors import revisions_of
from controlplane.clients.facts import unpack_names
from controlplane.clients.holding_history import History, Standing
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.holding_words import (
    FORGOTTEN,
    SENTENCES,
    UNSAID,
    WORST_FIRST,
    label,
    on_streams,
    went_away,
    worst,
)
from controlplane.clients.models import Client, Nack, NameSet, Stream, Subscription
from controlplane.clients.selectors import nacks_get, name_shown
from controlplane.common.errors import NotFound
from xdscore.holdings import Holding, HoldingState

# As many as there are connected clients in the largest environment, each with two streams.
_MAX_STREAMS: Final = 100_000
_MAX_NACKS: Final = 2_000

Counts = Mapping[HoldingState, Mapping[str, int]]
"""How many clients are in each state, by what they have in it: a revision such as `r12`, `other` for content of no
revision known here, the code of an error, or `none`.
"""
Key = tuple[str, str]
"""A type's word and a name."""


@dataclass(frozen=True, slots=True)
class HeldResource:
    """What one client has of one resource (interfaces.md section 8).

    `version`, `revision`: of the content that it is to have or, once it answered, has. `acked_version`,
        `acked_revision`: of what it goes on with. Revisions are None where the content is of no revision known here.
    `code`: of the error that it was told. `message`: the error word for word, the client's own words where it refused,
        else a sentence where there is something to say.
    `since`: since when, at the latest, it is so. `stream`: the id of the stream that counts.
    """

    client: str
    node_id: str
    type: str
    name: str
    state: HoldingState
    revision: int | None
    version: str
    acked_revision: int | None
    acked_version: str
    code: str
    message: str
    since: datetime | None
    stream: str


@dataclass(frozen=True, slots=True)
class HeldPage:
    """A page of what clients have. `after`: the cursor at which the next page begins; empty where this is the last."""

    rows: tuple[HeldResource, ...]
    after: str = ""


@dataclass(frozen=True, slots=True)
class _Found:
    """What a client has of a name, on the stream that counts and on all of them."""

    standing: Standing
    holding: Holding
    all: tuple[Holding, ...]


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
    if at is not None:
        rows = _open_at(rows, at)
    elif Stream.objects.filter(client=public_id, closed_at=None).exists():
        rows = rows.filter(stream__closed_at=None)
    else:
        last = Stream.objects.filter(client=public_id, closed_at__isnull=False).order_by("-closed_at").first()
        gone_at = last.closed_at if last is not None else None
        rows = rows.filter(stream=last)
    if types:
        rows = rows.filter(type__in=list(types))
    found = _found_of_one(rows, sets, history, at)
    part = name.casefold()
    wanted = [key for key in found if (not part or part in key[1].casefold()) and _cursor(key) > after]
    if gone_at is not None:
        found = {key: _away(each) for key, each in found.items()}
    wanted = sorted(key for key in wanted if not states or found[key].holding.state in states)
    page = [(key, found[key]) for key in sorted(wanted, key=_cursor)[: limit + 1]]
    nodes = {public_id: client.node_id}
    shown = _rows(client.environment.key, nodes, page[:limit], history, at=at, gone_at=gone_at)
    return HeldPage(shown, _cursor(page[limit - 1][0]) if len(page) > limit else "")


def client_holding(*, public_id: str, word: str, name: str) -> HeldResource | None:
    """What a connected client has of one resource; None where it does not ask for it, or did not say yet. Raises
    NotFound.
    """
    client = _client(public_id)
    sets = StoredSets()
    history = History(sets)
    rows = Subscription.objects.filter(stream__client=public_id, stream__closed_at=None, type=word)
    found = _found_of_one(rows, sets, history, None).get((word, name))
    if found is None:
        return None
    return _rows(client.environment.key, {public_id: client.node_id}, [((word, name), found)], history)[0]


def client_said(*, public_id: str, word: str) -> bool:
    """Whether every open stream of a client that asks for this type said what it has of it, and there is one."""
    said = Subscription.objects.filter(stream__client=public_id, stream__closed_at=None, type=word)
    held = list(said.values_list("holding_set_id", flat=True))
    return bool(held) and None not in held


def resource_holders(
    *,
    environment_key: str,
    word: str,
    name: str,
    states: Collection[HoldingState] = (),
    revision: int | None = None,
    after: str = "",
    limit: int = 100,
) -> tuple[Counts, HeldPage]:
    """How many connected clients have what of a resource, and a page of them, those that need attention first
    (`holding_words.WORST_FIRST`), after the cursor `after`.

    `states`, `revision`: the page holds only clients in these states (none: in any) that have, or are to have, this
        revision; the counts are of all.
    """
    sets = StoredSets()
    found = _found_of_all(environment_key, word, name, sets)
    contents = {(word, name, each.holding.version) for each in found.values() if each.holding.version}
    numbers = revisions_of(environment_key=environment_key, contents=contents)
    counts: dict[HoldingState, dict[str, int]] = {}
    wanted: list[tuple[str, _Found]] = []
    for client, each in found.items():
        holding = each.holding
        number = numbers.get((word, name, holding.version))
        of_state = counts.setdefault(holding.state, {})
        of_state[label(holding, number)] = of_state.get(label(holding, number), 0) + 1
        cursor = f"{WORST_FIRST.index(holding.state)}{client}"
        if cursor > after and (not states or holding.state in states) and revision in {None, number}:
            wanted.append((cursor, each))
    page = sorted(wanted, key=itemgetter(0))[:limit]
    nodes = dict(Client.objects.filter(pk__in=[each.standing.client for _, each in page]).values_list("pk", "node_id"))
    shown = _rows(environment_key, nodes, [((word, name), each) for _, each in page], History(sets))
    return counts, HeldPage(shown, page[-1][0] if len(wanted) > limit else "")


def holding_states(*, environment_key: str, word: str, names: Collection[str]) -> Mapping[str, Mapping[str, Holding]]:
    """What each connected client that asks for one of these names has of it: by name and client id."""
    sets = StoredSets()
    streams = _standings(Subscription.objects.filter(stream__closed_at=None), environment_key, word)
    sets.read({each.held for each in streams})
    unsaid = _unsaid(names, streams)
    return {
        name: {client: found.holding for client, found in _of_name(streams, name, sets, unsaid[name]).items()}
        for name in names
    }


def _client(public_id: str) -> Client:
    client = Client.objects.select_related("environment").filter(pk=public_id).first()
    if client is None:
        raise NotFound(f"There is no client '{public_id[:64]}'. A client is forgotten a day after its last stream.")
    return client


def _open_at(rows: QuerySet[Subscription], at: datetime) -> QuerySet[Subscription]:
    still = Q(stream__closed_at=None) | Q(stream__closed_at__gt=at)
    return rows.filter(still, stream__opened_at__lte=at)


def _standing(row: Mapping[str, object]) -> Standing:
    return Standing(*(row[column] for column in _COLUMNS))  # type: ignore[arg-type]  # as the columns are


_COLUMNS: Final = (
    "stream_id",
    "stream__client_id",
    "stream__client__environment_id",
    "type",
    "holding_set_id",
    "held_at",
    "stream__opened_at",
)


def _found_of_one(
    rows: QuerySet[Subscription], sets: StoredSets, history: History, at: datetime | None
) -> dict[Key, _Found]:
    """What the streams of these rows, which are of one client, have of each name."""
    held: dict[Key, list[tuple[Standing, Holding]]] = defaultdict(list)
    for values in rows.order_by("stream_id", "type").values(*_COLUMNS, "name_set__names"):
        standing, unsaid = _standing(values), UNSAID
        sets.read([standing.held])
        names = {*unpack_names(bytes(values["name_set__names"])), *sets.items(standing.held)}
        if at is not None and standing.held is not None:
            known, held_id = history.held_at(standing, at)
            if known and held_id is None:
                continue  # it had not asked for anything yet
            unsaid = UNSAID._replace(message=FORGOTTEN.format(hours=settings.PARLEY.limits.holding_history_h))
            standing = replace(standing, held=held_id, since=None)
            sets.read([standing.held])
        had = sets.items(standing.held) if standing.held is not None else dict.fromkeys(names, unsaid)
        for name, holding in had.items():
            held[standing.type, name].append((standing, holding))
    return {key: _counting(each) for key, each in held.items()}


def _counting(held: list[tuple[Standing, Holding]]) -> _Found:
    holdings = tuple(holding for _, holding in held)
    standing, holding = held[worst(holdings)]
    return _Found(standing, holding, holdings)


def _away(found: _Found) -> _Found:
    """What is known of a client that went away."""
    holding = found.holding
    return _Found(found.standing, holding._replace(state=HoldingState.UNKNOWN, code="", message=""), (holding,))


def _standings(rows: QuerySet[Subscription], environment_key: str, word: str) -> list[Standing]:
    rows = rows.filter(stream__client__environment__key=environment_key, type=word)
    return [Standing(*values) for values in rows.values_list(*_COLUMNS)[:_MAX_STREAMS]]


def _found_of_all(environment_key: str, word: str, name: str, sets: StoredSets) -> dict[str, _Found]:
    """What each connected client that asks for a name has of it, by client id."""
    streams = _standings(Subscription.objects.filter(stream__closed_at=None), environment_key, word)
    sets.read({each.held for each in streams})
    return _of_name(streams, name, sets, _unsaid([name], streams)[name])


def _unsaid(names: Collection[str], streams: Iterable[Standing]) -> Mapping[str, Collection[str]]:
    """For each name, the ids of the streams among `streams` that ask for it and do not say what they have. At most two
    queries.
    """
    silent = [each for each in streams if each.held is None]
    if not silent:
        return dict.fromkeys(names, ())
    rows = Subscription.objects.filter(stream__in=[each.stream for each in silent], type=silent[0].type)
    asked = list(rows.values_list("stream_id", "wildcard", "name_set"))
    sets = NameSet.objects.filter(pk__in={pk for _, _, pk in asked}).values_list("pk", "names")
    unpacked = {pk: frozenset(unpack_names(bytes(packed))) for pk, packed in sets}
    return {
        name: {stream for stream, wildcard, pk in asked if wildcard or name in unpacked.get(pk, ())} for name in names
    }


def _of_name(streams: Iterable[Standing], name: str, sets: StoredSets, unsaid: Collection[str]) -> dict[str, _Found]:
    held: dict[str, list[tuple[Standing, Holding]]] = defaultdict(list)
    known: dict[str | None, Holding | None] = {}
    for standing in streams:
        if standing.held not in known:
            known[standing.held] = sets.find(standing.held, name)
        holding = UNSAID if standing.stream in unsaid else known[standing.held]
        if holding is not None:
            held[standing.client].append((standing, holding))
    return {client: _counting(each) for client, each in held.items()}


def _rows(
    environment_key: str,
    nodes: Mapping[str, str],
    page: Collection[tuple[Key, _Found]],
    history: History,
    *,
    at: datetime | None = None,
    gone_at: datetime | None = None,
) -> tuple[HeldResource, ...]:
    contents = {
        (*key, version) for key, each in page for version in (each.holding.version, each.holding.acked) if version
    }
    numbers = revisions_of(environment_key=environment_key, contents=contents)
    refused = _refusals(page, at)
    since = _since(page, history) if at is None and gone_at is None else {}
    rows = []
    for key, found in page:
        standing, holding = found.standing, found.holding
        acked_revision = numbers.get((*key, holding.acked))
        message = holding.message or SENTENCES.get(holding.state, "")
        if gone_at is not None:
            message = went_away(gone_at, holding, acked_revision)
        elif holding.state is HoldingState.NACKED:
            message = refused.get((standing.client, *key, holding.version), message)
        rows.append(
            HeldResource(
                client=standing.client,
                node_id=nodes.get(standing.client, ""),
                type=key[0],
                name=name_shown(key[1]),
                state=holding.state,
                revision=numbers.get((*key, holding.version)),
                version=holding.version,
                acked_revision=acked_revision,
                acked_version=holding.acked,
                code=holding.code,
                message=" ".join(filter(None, (message, on_streams(holding, found.all)))),
                since=gone_at or since.get((standing.stream, *key)),
                stream=standing.stream,
            )
        )
    return tuple(rows)


def _since(page: Iterable[tuple[Key, _Found]], history: History) -> Mapping[tuple[str, str, str], datetime]:
    """Since when, by stream, type and name."""
    names: dict[Standing, list[str]] = defaultdict(list)
    for (_, name), found in page:
        names[found.standing].append(name)
    return {
        (standing.stream, standing.type, name): at
        for standing, each in names.items()
        for name, at in history.since(standing, each).items()
    }


def _refusals(page: Iterable[tuple[Key, _Found]], at: datetime | None) -> Mapping[tuple[str, str, str, str], str]:
    """What clients said when they refused contents, by client, type, name and version."""
    refusing = {
        (found.standing.client, word) for (word, _), found in page if found.holding.state is HoldingState.NACKED
    }
    if not refusing:
        return {}
    rows = Nack.objects.filter(client__in={client for client, _ in refusing}, type__in={word for _, word in refusing})
    if at is not None:
        rows = rows.filter(at__lte=at)
    ids = list(rows.order_by("-id").values_list("pk", flat=True)[:_MAX_NACKS])
    # The newest goes in last.
    return {
        (nack.client, nack.type, name, version): nack.text
        for nack in reversed(nacks_get(ids=ids))
        for name, version in nack.suspects
    }


def _cursor(key: Key) -> str:
    return f"{key[0]}/{key[1]}"
