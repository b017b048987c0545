"""Stores what clients have, and when that changed, as part of a batch of facts; and lets go what is old."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from django.db import connection
from django.db.backends.utils import CursorWrapper

from controlplane.clients.facts import MoveFact
from controlplane.clients.held_sets import HeldRow

# So many ids are looked up in one statement.
_BATCH: Final = 500
_SET: Final = """
    INSERT INTO clients_holdingset (id, keyframe_id, count, entries) VALUES (%s, %s, %s, %s)
    ON CONFLICT (id) DO UPDATE SET keyframe_id = NULL, entries = excluded.entries
    WHERE excluded.keyframe_id IS NULL AND clients_holdingset.keyframe_id IS NOT NULL
"""
# A set that is not there any more (its batch was given up) leaves a gap in the history, and does not stop it.
_MOVE: Final = """
    INSERT INTO clients_holdingmove (environment_id, type, from_set_id, to_set_id, at, count, streams)
    SELECT environment.id, %s, (SELECT id FROM clients_holdingset WHERE id = %s), %s, %s, %s, %s
    FROM catalog_environment AS environment WHERE environment.key = %s
"""


def held_sets_write(cursor: CursorWrapper, *, rows: Sequence[HeldRow]) -> None:
    """Store these sets, as far as they are not there yet; keyframes come first. Those that are there cannot be pruned
    before the transaction ends.

    What is a keyframe here may be there as the difference from another one, as an ADS process stored it that ran
    before: it is made a keyframe, because whoever reads a difference looks for the rest in its keyframe alone.
    """
    known: dict[str, bool] = {}
    for start in range(0, len(rows), _BATCH):
        known |= _known(cursor, [row.id for row in rows[start : start + _BATCH]])
    wanted = (row for row in rows if row.id not in known or (row.keyframe is None and not known[row.id]))
    # Sorted, so that two replicas never wait for each other.
    missing = sorted(wanted, key=lambda row: (row.keyframe is not None, row.id))
    if missing:
        cursor.executemany(_SET, [(row.id, row.keyframe, row.count, row.packed) for row in missing])


def _known(cursor: CursorWrapper, ids: Sequence[str]) -> dict[str, bool]:
    """Whether each of these sets that is there is a keyframe."""
    marks = ", ".join(["%s"] * len(ids))
    kept = " ORDER BY id FOR KEY SHARE" if connection.vendor == "postgresql" else ""
    cursor.execute(f"SELECT id, keyframe_id FROM clients_holdingset WHERE id IN ({marks}){kept}", list(ids))  # noqa: S608 - marks
    return {pk: keyframe is None for pk, keyframe in cursor.fetchall()}


def moves_write(cursor: CursorWrapper, *, moves: Iterable[tuple[MoveFact, datetime | str | None]]) -> None:
    """Store these moves, each with the time when it was."""
    rows = [
        (each.word, each.from_set, each.to_set, at, each.count, each.streams, each.environment) for each, at in moves
    ]
    if rows:
        cursor.executemany(_MOVE, rows)
