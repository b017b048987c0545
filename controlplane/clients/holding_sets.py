"""Reads stored sets of what clients have. A set never changes, so that what was read once is kept for a while."""

import threading
from collections.abc import Collection, Mapping
from typing import Final

from controlplane.clients.held_sets import unpack_held
from controlplane.clients.models import HoldingSet
from xdscore.holdings import Holding

# Of all sets that are kept: some 100 MB at most, and in most installations all there is.
_MAX_ENTRIES: Final = 200_000
_BATCH: Final = 500

_Part = tuple[str | None, Mapping[str, Holding | None]]
"""The id of the keyframe (None: the set is one), and what differs from it."""


class _Parts:
    """The sets that were read lately, by id. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: dict[str, _Part] = {}
        self._entries = 0

    def get(self, held_id: str) -> _Part | None:
        return self._parts.get(held_id)

    def put(self, held_id: str, part: _Part) -> None:
        with self._lock:
            if held_id in self._parts:
                return
            self._parts[held_id] = part
            self._entries += len(part[1]) + 1
            while self._entries > _MAX_ENTRIES and len(self._parts) > 1:
                _, oldest = self._parts.pop(next(iter(self._parts)))
                self._entries -= len(oldest) + 1


_PARTS: Final = _Parts()


class StoredSets:
    """The sets with these ids, as one question needs them. An id that is not stored stands for an empty set."""

    def __init__(self, ids: Collection[str | None] = ()) -> None:
        self._parts: dict[str, _Part] = {}
        self.read(ids)

    def read(self, ids: Collection[str | None]) -> None:
        """Read these sets, too. Two queries for 500 sets at most, none for those that were read lately."""
        wanted = {each for each in ids if each is not None}
        # A keyframe may have been stored, or read, as the difference from another one first.
        while wanted:
            self._read(wanted)
            found = {part[0] for part in self._parts.values() if part[0] is not None} - self._parts.keys()
            wanted = found - wanted

    def find(self, held_id: str | None, name: str) -> Holding | None:
        """What the set has of this name; None for nothing."""
        if held_id is None or held_id not in self._parts:
            return None
        keyframe, entries = self._parts[held_id]
        if name in entries or keyframe is None:
            return entries.get(name)
        return self.find(keyframe, name)

    def keyframe(self, held_id: str) -> str:
        """The id of the keyframe to which this set is the difference; its own id where it is none."""
        keyframe, _ = self._parts.get(held_id, (None, {}))
        return held_id if keyframe is None else keyframe

    def entries(self, held_id: str) -> Mapping[str, Holding | None]:
        """What the set has by name where it is a keyframe, else only what differs from the keyframe (None: nothing)."""
        return self._parts[held_id][1] if held_id in self._parts else {}

    def items(self, held_id: str | None) -> Mapping[str, Holding]:
        """Everything that the set has, by name."""
        if held_id is None or held_id not in self._parts:
            return {}
        keyframe, entries = self._parts[held_id]
        base = self.items(keyframe)
        return {name: holding for name, holding in {**base, **entries}.items() if holding is not None}

    def _read(self, ids: set[str]) -> None:
        wanted = sorted(ids - self._parts.keys())
        for held_id in wanted:
            # With its keyframe: a set that was pruned and stored again may differ from another one.
            known = _PARTS.get(held_id)
            keyframe = _PARTS.get(known[0]) if known is not None and known[0] is not None else None
            if known is not None and known[0] is None:
                self._parts[held_id] = known
            elif known is not None and keyframe is not None:
                self._parts[held_id] = known
                self._parts[str(known[0])] = keyframe
        missing = [held_id for held_id in wanted if held_id not in self._parts]
        for start in range(0, len(missing), _BATCH):
            rows = HoldingSet.objects.filter(pk__in=missing[start : start + _BATCH])
            for held_id, parent, packed in rows.values_list("pk", "keyframe", "entries"):
                part = self._parts[held_id] = (parent, unpack_held(bytes(packed)))
                _PARTS.put(held_id, part)
