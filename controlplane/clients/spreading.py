"""How what was published spread: when each client had taken all of it that is for it (truth.md H6). Values only, never
rows.

Read from the moves of streams from what they had to what they have. Only clients that were connected when it was
published count: one that came later was given it at once, and says nothing about how fast it spread.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Q

from controlplane.clients.clock import database_now
from controlplane.clients.delivery import Reaction, Written, is_behind
from controlplane.clients.held_sets import STREAM_MARK_BYTES, stream_mark
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.models import HoldingMove, Stream
from controlplane.history.convergence import Convergence, convergence

# The first ones after it was published. Who took it after so many moves is as if it had not taken it yet.
_MAX_MOVES: Final = 5_000
_MOVE: Final = ("type", "from_set", "to_set", "at", "streams")
_Move = tuple[str, str | None, str, datetime, bytes]


def spread(
    *,
    environment_key: str,
    written: Mapping[str, Mapping[str, Written]],
    since: datetime,
    reactions: Mapping[str, Reaction],
) -> Convergence | None:
    """How the contents spread that were published at `since`; None where the moves of that time are not kept any more.
    `written`: by the word of the type, then by name; `reactions`: how far each client has come with them, by client id.
    """
    moves = HoldingMove.objects.filter(environment__key=environment_key, type__in=written, at__gte=since)
    limits = settings.PARLEY.limits
    kept_since = database_now() - timedelta(hours=limits.holding_history_h)
    first = tuple(moves.order_by("at", "pk").values_list(*_MOVE)[: _MAX_MOVES + 1])
    count = len(first) if len(first) <= _MAX_MOVES else moves.count()
    if since < kept_since or count >= limits.holding_moves_per_environment:
        return None
    expected, clients = _there(environment_key, since, reactions)
    took: dict[str, float] = {}
    done: dict[bytes, float] = {}
    first = first[:_MAX_MOVES]
    sets = StoredSets({each for move in first for each in (move[1], move[2])})
    for word, names in written.items():
        for mark, second in _first_whole([each for each in first if each[0] == word], sets, names, since).items():
            done[mark] = max(done.get(mark, 0.0), second)
    for mark, second in done.items():
        client = clients.get(mark)
        if client is not None:
            took[client] = min(took.get(client, second), second)
    # Who took it without a move had it before.
    otherwise = {} if count > _MAX_MOVES else dict.fromkeys(expected, 0.0)
    taken = [
        (second, 1)
        for client, second in {**otherwise, **took}.items()
        if client in expected and reactions[client] is Reaction.ACKED
    ]
    return convergence(taken, len(expected))


def _there(
    environment_key: str, since: datetime, reactions: Mapping[str, Reaction]
) -> tuple[frozenset[str], Mapping[bytes, str]]:
    """The ids of the clients that were connected at that time and should take it; and whose each of their streams is,
    by the mark of the stream.
    """
    streams = Stream.objects.filter(
        Q(closed_at=None) | Q(closed_at__gt=since), client__environment__key=environment_key
    )
    rows = tuple(streams.values_list("pk", "client_id", "opened_at"))
    expected = frozenset(
        client
        for _, client, opened_at in rows
        if opened_at <= since and reactions.get(client, Reaction.LEFT) is not Reaction.LEFT
    )
    return expected, {stream_mark(stream): client for stream, client, _ in rows if client in expected}


def _first_whole(
    rows: Collection[_Move], sets: StoredSets, names: Mapping[str, Written], since: datetime
) -> Mapping[bytes, float]:
    """After how many seconds each stream had taken all of these names that it asks for, by the mark of the stream; of
    those alone that had not before.
    """
    ids = {each for _, from_set, to_set, _, _ in rows for each in (from_set, to_set)}
    behind = {
        each: each is None or any(is_behind(sets.find(each, name), names[name]) for name in names) for each in ids
    }
    found: dict[bytes, float] = {}
    for _, from_set, to_set, at, streams in rows:
        if not behind[from_set] or behind[to_set]:
            continue
        second, marks = round((at - since).total_seconds(), 2), bytes(streams)
        for start in range(0, len(marks), STREAM_MARK_BYTES):
            found.setdefault(marks[start : start + STREAM_MARK_BYTES], second)
    return found
