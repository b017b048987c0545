"""Sets of what clients have, in the form in which the database keeps them (truth.md H3). Pure.

A set is stored whole (a keyframe), or as what differs from a keyframe: a step of one name in a set of thousands is a
row of a few bytes.
"""

import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from xdscore.holdings import Holding, HoldingState

STREAM_MARK_BYTES: Final = 8
_SHORT_DIFFERENCE: Final = 64


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A set as it is stored. `keyframe`: the id of the set that `packed` is the difference to; None where `packed` is
    all of it. `count`: how many names the whole set has.
    """

    id: str
    keyframe: str | None
    count: int
    packed: bytes


def is_short(changes: int, count: int) -> bool:
    """Whether a difference of so many `changes` is worth to be stored in place of the whole set of `count` names."""
    return changes <= _SHORT_DIFFERENCE + math.isqrt(count)


def pack_held(entries: Iterable[tuple[str, Holding | None]]) -> bytes:
    """The stored form of a set, or of its difference to a keyframe, from the names in it and what a client has of each.
    None: the keyframe has the name and the set has not.
    """
    has: dict[str, str] = {}
    others: list[list[str]] = []
    gone: list[str] = []
    for name, holding in entries:
        if holding is None:
            gone.append(name)
        elif holding.state is HoldingState.ACKED and holding.version == holding.acked:
            has[name] = holding.version
        else:
            others.append([name, *holding])
    data = json.dumps([has, others, gone], ensure_ascii=False, separators=(",", ":")).encode()
    return zlib.compress(data, level=1)


def unpack_held(packed: bytes) -> dict[str, Holding | None]:
    """What `pack_held` was given, by name."""
    has, others, gone = json.loads(zlib.decompress(packed))
    acked = HoldingState.ACKED
    found: dict[str, Holding | None] = {name: Holding(acked, version, version) for name, version in has.items()}
    found.update((name, Holding(HoldingState(state), *texts)) for name, state, *texts in others)
    found.update(dict.fromkeys(gone))
    return found


def whole(keyframe: Mapping[str, Holding | None], difference: Mapping[str, Holding | None]) -> dict[str, Holding]:
    """The whole set that differs from `keyframe` by `difference`."""
    merged = {**keyframe, **difference}
    return {name: holding for name, holding in merged.items() if holding is not None}


def stream_mark(stream: str) -> bytes:
    """A few bytes that stand for the stream with this id among those that moved together. Ids end in random digits."""
    return bytes.fromhex(stream[-2 * STREAM_MARK_BYTES :])


def has_mark(packed: bytes, mark: bytes) -> bool:
    """Whether the stream with this mark is among those packed one behind the other."""
    at = packed.find(mark)
    while at >= 0 and at % STREAM_MARK_BYTES:
        at = packed.find(mark, at + 1)
    return at >= 0
