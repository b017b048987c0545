"""Puts entries into chunks (decisions D9). What did not change since the assembly before is taken from there."""

from collections.abc import Mapping
from dataclasses import dataclass

from xdscore.chunks import CHUNKS, chunk_number, encode_chunk
from xdscore.snapshot import Entry, EntryKey, Served


@dataclass(frozen=True, slots=True)
class Assembly:
    """An environment's chunks: their bytes, the names of each in order, and the entries they were made of.

    Equal entries make equal bytes, whatever came before (reliability P6).
    """

    parts: tuple[bytes, ...]
    names: tuple[tuple[EntryKey, ...], ...]
    entries: Mapping[EntryKey, Entry]

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of resources that are served, by type."""
        counts: dict[str, int] = {}
        for (word, _), entry in self.entries.items():
            if isinstance(entry, Served):
                counts[word] = counts.get(word, 0) + 1
        return counts


EMPTY = Assembly((encode_chunk(()),) * CHUNKS, ((),) * CHUNKS, {})


def assemble(entries: Mapping[EntryKey, Entry], before: Assembly = EMPTY) -> Assembly:
    """The assembly of these entries; only chunks that differ from `before` are packed again."""
    added: dict[int, list[EntryKey]] = {}
    stale: set[int] = set()
    known = before.entries
    for key, entry in entries.items():
        old = known.get(key)
        if old is None:
            added.setdefault(chunk_number(key), []).append(key)
        elif old is not entry and old != entry:
            stale.add(chunk_number(key))
    if len(entries) != len(known) + sum(map(len, added.values())):
        stale.update(chunk_number(key) for key in known if key not in entries)
    parts, names = list(before.parts), list(before.names)
    for number in stale | added.keys():
        kept = [key for key in names[number] if key in entries]
        names[number] = tuple(sorted(kept + added.get(number, [])))
        parts[number] = encode_chunk([(key, entries[key]) for key in names[number]])
    return Assembly(tuple(parts), tuple(names), entries)
