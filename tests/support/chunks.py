"""A whole catalogue in chunks, put together from nothing: what a build that goes step by step must come to."""

from collections.abc import Mapping

from xdscore.chunks import CHUNKS, chunk_number, encode_chunk
from xdscore.snapshot import Entry, EntryKey


def encode_chunks(entries: Mapping[EntryKey, Entry]) -> tuple[bytes, ...]:
    """All 256 chunks in their order."""
    parts: list[list[tuple[EntryKey, Entry]]] = [[] for _ in range(CHUNKS)]
    for key in sorted(entries):
        parts[chunk_number(key)].append((key, entries[key]))
    return tuple(encode_chunk(part) for part in parts)
