"""The open rollout of a snapshot as bytes: its table, and the entries in which the candidate side differs from the
stable side (rollouts.md R2).

The part stands beside the root and the chunks, which hold the stable side alone. It starts with a format byte, so that
a process that cannot read it serves the stable side to everybody.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter

from xdscore.chunks import ChunkError, entry_of_row, entry_row, pack, unpack
from xdscore.sides import RolloutTable
from xdscore.snapshot import Entry, EntryKey

FORMAT = 1
# What stands for a name of which the candidate side knows nothing; the states of entries are s, w and r.
_GONE = "-"


@dataclass(frozen=True, slots=True)
class CandidatePart:
    """What makes the candidate side of a snapshot: `table` says who is on it, and `diff` has the entries in which it
    differs from the stable side; None stands for a name of which the candidate side knows nothing.
    """

    table: RolloutTable
    diff: Mapping[EntryKey, Entry | None]


def encode_rollout(part: CandidatePart) -> bytes:
    """The bytes of a stored candidate side; equal parts give equal bytes, on every machine (reliability P6)."""
    diff = sorted(part.diff.items(), key=itemgetter(0))
    rows = [[*key, _GONE] if entry is None else entry_row(key, entry) for key, entry in diff]
    tree = {"table": part.table.as_json(), "diff": rows}
    return pack(json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode(), FORMAT)


def decode_rollout(data: bytes) -> CandidatePart:
    """The candidate side that these bytes encode. Raises ChunkError."""
    try:
        tree = json.loads(unpack(data, FORMAT))
        known: dict[tuple[int, ...], tuple[int, ...]] = {}
        rows = [_entry(row, known) for row in tree["diff"]]
        diff = dict(rows)
        if len(diff) != len(rows) or tree.keys() != {"table", "diff"}:
            raise ChunkError("a name that is there twice, or something beside table and diff")
        return CandidatePart(RolloutTable.from_json(tree["table"]), diff)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ChunkError(f"unreadable rollout: {error}") from error


def _entry(row: list[object], known: dict[tuple[int, ...], tuple[int, ...]]) -> tuple[EntryKey, Entry | None]:
    match row:
        case [str() as word, str() as name, str() as state] if state == _GONE:
            return (word, name), None
    return entry_of_row(row, known)
