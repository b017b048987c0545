"""Answers which connected clients refuse something, which do not answer, and which are told that they may not read a
name.

Last answers do not tell all of it: whoever refused content is given something older in its place and acknowledges that,
and whoever may not read a name is told so and acknowledges that (xRFC TP3). The published snapshot decides here as it
does for streams (architecture.md law 2), so the list of clients, its counters and filters, the front page and a
client's own page say the same.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.clients.clock import database_now
from controlplane.clients.delivery import SILENT_AFTER
from controlplane.clients.facts import NO_NAMES, SubscriptionState, unpack_contents, unpack_names
from controlplane.clients.models import Client, ContentList, Nack, NameSet, Stream, Subscription
from controlplane.clients.rulings import Rows, Rulings, Who
from controlplane.common.remembered import Remembered
from controlplane.snapshots.selectors import SnapshotHead, snapshot_heads, snapshots_of_heads
from xdscore.access import Audience, Effect
from xdscore.chunks import ChunkError
from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.snapshot import EntryKey, Snapshot
from xdscore.xdstp import glob_of

# In one query; where more lists are wanted, all that clients refer to are read.
_MAX_LISTED: Final = 500
# More lists than a fleet of 5,000 clients has; one takes some hundred bytes.
_MAX_REMEMBERED: Final = 20_000

_List = tuple[str, str, str]
"""The environment, type and id of a list: names that clients ask for, or contents that they refused; many clients share
one.
"""
_Line = tuple[str, _List]
"""A client, and one of its lists."""

# By snapshot, type and list of contents: the rows of those that are published so.
_published: Final = Remembered[tuple[SnapshotHead, str, str], Rows](_MAX_REMEMBERED)
# By the address of an access table, type and set of names: the rows of those that it denies to somebody.
_deniable: Final = Remembered[tuple[str, str, str], Rows](_MAX_REMEMBERED)


@dataclass(frozen=True, slots=True)
class Troubles:
    """Ids of connected clients by what is wrong with them; one may be in several sets.

    `refusing`: on a stream that is open their last answer to some type was a NACK, or they refused content that is
    published now; `silent`: they were sent something 30 s ago or longer and have not answered; `denied`: they ask by
    name for what they may not read, and hear so.
    """

    refusing: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()


def troubles_of(*, environment_keys: Collection[str], client: str = "") -> Troubles:
    """The troubles of all connected clients of these environments, or of one client. At most thirteen queries, however
    many there are; half of them only for lists that this process has not looked at yet.

    Where a snapshot cannot be read nobody is judged by it; whoever builds and serves it reports that.
    """
    nacked, silent = _by_last_answer(environment_keys, client)
    heads = [head for head in snapshot_heads() if head.genuine and head.environment in environment_keys]
    refusals = _refusals([head.environment for head in heads], client)
    refused = _lines(refusals, "client", "suspects")
    try:
        snapshots = snapshots_of_heads(keys=dict.fromkeys(heads, ()))
        rulings = {head.environment: _rulings(head, snapshots[head.environment]) for head in heads}
        published = _rows_published(heads, rulings, {shared for _, shared in refused}, refusals)
    except ChunkError:
        return Troubles(nacked, silent)
    refusing = _those(Effect.ALLOW, refused, published, rulings)
    return Troubles(nacked | refusing, silent, _denied(rulings, client))


def _by_last_answer(environment_keys: Collection[str], client: str) -> tuple[frozenset[str], frozenset[str]]:
    """The clients whose last answer to some type was a NACK, and those that have not answered for long. One query, and
    PostgreSQL's clock.
    """
    nacked, sent = SubscriptionState.NACKED.value, SubscriptionState.SENT.value
    # Few are in these states, so they are found first: a join would have SQLite go through every client's streams.
    here = Exists(
        Stream.objects.filter(
            pk=OuterRef("stream"), closed_at=None, client__environment__key__in=list(environment_keys)
        )
    )
    rows = Subscription.objects.filter(
        Q(state=nacked) | Q(state=sent, sent_at__lt=database_now() - SILENT_AFTER), here
    ).order_by()
    if client:
        rows = rows.filter(stream__client=client)
    found: dict[str, set[str]] = {nacked: set(), sent: set()}
    for pk, state in rows.values_list("stream__client", "state").distinct():
        found[state].add(pk)
    return frozenset(found[nacked]), frozenset(found[sent])


def _rulings(head: SnapshotHead, snapshot: Snapshot) -> Rulings:
    return Rulings(head.environment, head.access, snapshot.access)


def _denied(rulings: Mapping[str, Rulings], client: str) -> frozenset[str]:
    """The clients that ask by name for something that these rules forbid them. At most four queries.

    First of each set of names, of which thousands of clients have a few hundred; then of who has one that matters.
    """
    denied_words = {key: words for key, each in rulings.items() if (words := each.denied_words)}
    if not denied_words:
        return frozenset()
    rows = _named(denied_words, client)
    shared = set(rows.values_list("stream__client__environment__key", "type", "name_set").distinct())
    denied = {each: found for each, found in _rows_denied(rulings, shared, rows).items() if found}
    if not denied:
        return frozenset()
    if len(denied) <= _MAX_LISTED:
        rows = rows.filter(name_set__in=sorted({name_set for *_, name_set in denied}))
    return _those(Effect.DENY, _lines(rows, "stream__client", "name_set"), denied, rulings)


def _those(
    effect: Effect, lines: Collection[_Line], rows: Mapping[_List, Rows], rulings: Mapping[str, Rulings]
) -> frozenset[str]:
    """The clients for which the rules have this effect on a name in one of their lists. A list without rows has no such
    name. One query at most.
    """
    sure = {shared for shared, each in rows.items() if rulings[shared[0]].says_to_all(effect, each)}
    found = {client for client, shared in lines if shared in sure}
    doubtful = [(client, shared) for client, shared in lines if rows.get(shared) and client not in found]
    narrow = {
        key: each.among(some for shared, some in rows.items() if shared[0] == key) for key, each in rulings.items()
    }
    audiences = _audiences({client for client, _ in doubtful}, narrow)
    for client, shared in doubtful:
        # Of a client that was forgotten meanwhile nothing is said.
        if client in audiences and narrow[shared[0]].says(effect, audiences[client], shared[1], rows[shared]):
            found.add(client)
    return frozenset(found)


def _audiences(clients: Collection[str], rulings: Mapping[str, Rulings]) -> Mapping[str, Audience]:
    """The audience to which each of these clients belongs, by client."""
    if not clients:
        return {}
    rows = Client.objects.filter(environment__key__in=list(rulings))
    if len(clients) <= _MAX_LISTED:
        rows = rows.filter(pk__in=list(clients))
    found: dict[str, dict[str, Who]] = {key: {} for key in rulings}
    for pk, environment, *who in rows.values_list("pk", "environment__key", "identity", "node_id", "node_cluster"):
        if pk in clients:
            found[environment][pk] = (who[0], who[1], who[2])
    audiences = {key: rulings[key].audiences(some.values()) for key, some in found.items()}
    return {pk: audiences[key][who] for key, some in found.items() for pk, who in some.items()}


def _refusals(environment_keys: Collection[str], client: str) -> QuerySet[Nack]:
    """The NACKs of streams that are open."""
    here = Exists(Stream.objects.filter(pk=OuterRef("stream"), closed_at=None))
    rows = Nack.objects.filter(here, client__environment__key__in=list(environment_keys)).order_by()
    return rows.filter(client=client) if client else rows


def _named(words: Mapping[str, frozenset[str]], client: str) -> QuerySet[Subscription]:
    """The subscriptions of open streams to these types, by environment, that ask for names."""
    keys = defaultdict(list)
    for key, some in words.items():
        keys[some].append(key)
    asked = reduce(or_, (Q(stream__client__environment__key__in=keys[some], type__in=sorted(some)) for some in keys))
    rows = Subscription.objects.filter(asked, stream__closed_at=None).order_by()
    rows = rows.exclude(name_set=NO_NAMES.id)
    return rows.filter(stream__client=client) if client else rows


def _lines(rows: QuerySet[Nack] | QuerySet[Subscription], client: str, column: str) -> list[_Line]:
    columns = (client, f"{client}__environment__key", "type", column)
    return [(pk, (environment, word, each)) for pk, environment, word, each in rows.values_list(*columns)]


def _rows_published(
    heads: Collection[SnapshotHead], rulings: Mapping[str, Rulings], lists: Collection[_List], refusals: QuerySet[Nack]
) -> Mapping[_List, Rows]:
    """The access table's rows of those contents in each list that are published now. Three queries at most. Raises
    ChunkError.
    """
    head_of = {head.environment: head for head in heads}

    def look(missing: Collection[tuple[SnapshotHead, str, str]]) -> Mapping[tuple[SnapshotHead, str, str], Rows]:
        contents = _contents({each for *_, each in missing}, refusals)
        wanted: dict[SnapshotHead, set[EntryKey]] = defaultdict(set)
        for head, word, each in missing:
            wanted[head].update((word, canonical(name)) for name, _ in contents.get(each, ()))
        snapshots = snapshots_of_heads(keys=wanted)
        return {
            (head, word, each): rulings[head.environment].rows(
                word, _current(snapshots[head.environment], word, contents[each])
            )
            for head, word, each in missing
            if each in contents
        }

    keys = {each: (head_of[each[0]], *each[1:]) for each in lists}
    found = _published.those_of(keys.values(), look)
    return {each: found[key] for each, key in keys.items() if key in found}


def _current(snapshot: Snapshot, word: str, contents: Collection[tuple[str, str]]) -> list[str]:
    """The names among these contents whose published version is the given one."""
    served = snapshot.type_state(by_word[word]).served
    return [
        name
        for name, version in contents
        if (entry := served.get(canonical(name))) is not None and entry.content.version == version
    ]


def _rows_denied(
    rulings: Mapping[str, Rulings], lists: Collection[_List], named: QuerySet[Subscription]
) -> Mapping[_List, Rows]:
    """The access table's rows of those names in each set that some client may not read. One query at most."""
    by_address = {each.address: each for each in rulings.values()}

    def look(missing: Collection[tuple[str, str, str]]) -> Mapping[tuple[str, str, str], Rows]:
        names = _names({each for *_, each in missing}, named)
        together: dict[tuple[str, str], dict[str, Collection[str]]] = defaultdict(dict)
        for address, word, each in missing:
            if each in names:
                together[address, word][each] = names[each]
        return {
            (address, word, each): rows
            for (address, word), some in together.items()
            for each, rows in by_address[address].rows_denied(word, some).items()
        }

    keys = {each: (rulings[each[0]].address, *each[1:]) for each in lists}
    found = _deniable.those_of(keys.values(), look)
    return {each: found[key] for each, key in keys.items() if key in found}


def _contents(lists: Collection[str], refusals: QuerySet[Nack]) -> Mapping[str, Collection[tuple[str, str]]]:
    """The contents of these lists, by id, to which these refusals refer; one that was pruned meanwhile is left out."""
    pks = list(lists) if len(lists) <= _MAX_LISTED else refusals.values("suspects").distinct()
    rows = ContentList.objects.filter(pk__in=pks)
    return {pk: unpack_contents(bytes(packed)) for pk, packed in rows.values_list("pk", "contents") if pk in lists}


def _names(sets: Collection[str], named: QuerySet[Subscription]) -> Mapping[str, Collection[str]]:
    """The names of these sets, by id, for which these subscriptions ask; a glob collection is no name."""
    pks = list(sets) if len(sets) <= _MAX_LISTED else named.values("name_set").distinct()
    rows = NameSet.objects.filter(pk__in=pks)
    return {
        pk: [name for name in unpack_names(bytes(packed)) if glob_of(name) is None]
        for pk, packed in rows.values_list("pk", "names")
        if pk in sets
    }
