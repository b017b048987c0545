"""Answers which clients were sent a content, and which of them acknowledged it, at any time since it was written.

By what is stored of each name (truth.md H4): what clients have now, or had at the end; and, because something else may
be served since, as in place of what is in quarantine, what they had before they moved on. Many clients share one such
set, which is judged once.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import Q, QuerySet

from controlplane.clients.facts import SubscriptionState
from controlplane.clients.held_sets import STREAM_MARK_BYTES, stream_mark
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.models import HoldingMove, Subscription
from controlplane.clients.selectors import ClientKey, covering
from controlplane.clients.type_answers import answer_to_type

# Of all moves of a type since a content was written, the newest: a fleet that moves together makes one of them.
_MAX_MOVES: Final = 2_000
_WHO: Final = ("stream__client_id", "stream__client__identity", "stream__client__node_id")

Content = tuple[str, str]
"""A name and a version."""


@dataclass(frozen=True, slots=True)
class ContentReach:
    """The clients, by id, that were sent some contents, and those of them that acknowledged one."""

    sent: dict[str, ClientKey] = field(default_factory=dict)
    acknowledged: dict[str, ClientKey] = field(default_factory=dict)


class _Met(NamedTuple):
    """How far clients with one set came with the contents."""

    sent: bool
    acknowledged: bool


def content_reach(*, environment_key: str, word: str, contents: Collection[Content], since: datetime) -> ContentReach:
    """Which clients, connected or gone lately, were sent one of these contents of a type since `since`, and which
    acknowledged one. Without contents: which were sent anything of the type.
    """
    there = Subscription.objects.filter(Q(stream__closed_at=None) | Q(stream__closed_at__gte=since))
    of_type = there.filter(stream__client__environment__key=environment_key, type=word)
    found = ContentReach()
    if not contents:
        _by_type(found, of_type, since)
        return found
    sets = StoredSets()
    streams: dict[bytes, tuple[str, ClientKey]] = {}
    on_set: dict[str, list[tuple[str, ClientKey]]] = {}
    silent = False
    for stream, held, client, *key in of_type.values_list("stream_id", "holding_set_id", *_WHO):
        who = streams[stream_mark(stream)] = client, (key[0], key[1])
        silent = silent or held is None
        if held is not None:
            on_set.setdefault(held, []).append(who)
    sets.read(on_set)
    for held, clients in on_set.items():
        _add(found, _met(sets, held, contents), clients)
    for met, marks in _moved_on(environment_key, word, contents, since, sets):
        _add(found, met, (streams[mark] for mark in marks if mark in streams))
    if silent:
        names = {name for name, _ in contents}
        _by_type(found, covering(of_type.filter(holding_set=None), environment_key, word, names), since)
    return found


def _met(sets: StoredSets, held: str, contents: Iterable[Content]) -> _Met:
    had = [(holding, version) for name, version in contents if (holding := sets.find(held, name)) is not None]
    acknowledged = any(holding.acked == version for holding, version in had)
    return _Met(acknowledged or any(holding.version == version for holding, version in had), acknowledged)


def _moved_on(
    environment_key: str, word: str, contents: Collection[Content], since: datetime, sets: StoredSets
) -> Iterator[tuple[_Met, Iterable[bytes]]]:
    """The marks of the streams that moved away from a set in which they had one of the contents, and how far they had
    come with it then.
    """
    moves = HoldingMove.objects.filter(
        environment__key=environment_key, type=word, at__gte=since, from_set__isnull=False
    )
    left = dict(moves.order_by("-at", "-id").values_list("id", "from_set_id")[:_MAX_MOVES])
    sets.read(set(left.values()))
    met = {held: _met(sets, held, contents) for held in set(left.values())}
    telling = [move for move, held in left.items() if met[held].sent]
    if telling:
        for held, packed in moves.filter(pk__in=telling).values_list("from_set_id", "streams"):
            if held is not None:
                yield met[held], _marks(bytes(packed))


def _marks(packed: bytes) -> Iterator[bytes]:
    return (packed[at : at + STREAM_MARK_BYTES] for at in range(0, len(packed), STREAM_MARK_BYTES))


def _add(found: ContentReach, met: _Met, clients: Iterable[tuple[str, ClientKey]]) -> None:
    if met.sent:
        known = list(clients)
        found.sent.update(known)
        if met.acknowledged:
            found.acknowledged.update(known)


def _by_type(found: ContentReach, rows: QuerySet[Subscription], since: datetime) -> None:
    """Add those whose streams do not say what they have, and all where it is not about contents."""
    for state, sent_at, acked_at, client, *key in rows.values_list("state", "sent_at", "acked_at", *_WHO):
        sent = answer_to_type(state, sent_at, since=since) is not SubscriptionState.REQUESTED
        met = _Met(sent, sent and acked_at is not None and acked_at >= since)
        _add(found, met, [(client, (key[0], key[1]))])
