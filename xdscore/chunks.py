"""Snapshot entries as bytes: 256 chunks under one root (decisions D9).

A name's chunk is decided by its hash, so that a change of one name changes one chunk, and comparing two snapshots
compares 256 addresses. Each blob starts with a format byte, so that an older process refuses what it cannot read
(rolling upgrades).
"""

import json
import zlib
from collections.abc import Iterable
from hashlib import blake2b

from xdscore.access import CLOSED, AccessTable, Effect, Rule
from xdscore.client_groups import ClientGroup
from xdscore.resource_types import SECRET_WORDS
from xdscore.snapshot import HASH_BYTES, Content, Entry, EntryKey, RemovedName, Served, WithheldName

CHUNKS = 256
# 2: entries name their access rules, and the access table has some.
FORMAT = 2
# A chunk of the largest environment (100,000 names) is about 60 KB of JSON; anything near this bound is not ours.
MAX_CHUNK_BYTES = 64 * 1024 * 1024
# The default's word on secrets, as the last rule of a table whose default allows: a process of the version before, to
# which such a default covers secrets, decides by it as we do; a table without it was built by that version.
_SECRETS_CLOSED = Rule(CLOSED, Effect.DENY, types=SECRET_WORDS)


Chunk = tuple[tuple[EntryKey, Entry], ...]
"""The entries of one chunk."""


class ChunkError(ValueError):
    """The bytes are not a chunk, a root (the list of chunks) or an access table in a format that this process reads."""


def chunk_number(key: EntryKey) -> int:
    """The number of the chunk, 0 to 255, that holds this name. A snapshot is stored as 256 chunks."""
    return blake2b("\0".join(key).encode(), digest_size=1).digest()[0]


def encode_chunk(entries: Iterable[tuple[EntryKey, Entry]]) -> bytes:
    """The bytes of one chunk that holds these entries, in the order of their keys; equal entries give equal bytes, on
    every machine (reliability P6).
    """
    rows = [entry_row(key, entry) for key, entry in entries]
    return pack(json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode())


def decode_chunk(data: bytes) -> Chunk:
    """The entries of one chunk, by key. Raises ChunkError."""
    try:
        rows = json.loads(unpack(data))
        # Names that the same rules match share one tuple.
        known: dict[tuple[int, ...], tuple[int, ...]] = {}
        return tuple(entry_of_row(row, known) for row in rows)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ChunkError(f"unreadable chunk: {error}") from error


def changed_entries(before: Iterable[Chunk], now: Iterable[Chunk]) -> dict[EntryKey, Entry | None]:
    """The entries that differ between the chunks `before` and the chunks `now`, by key; None for a key that is gone.
    Equal entries are left out, so that the caller can keep the objects it has.
    """
    earlier = {key: entry for chunk in before for key, entry in chunk}
    later = {key: entry for chunk in now for key, entry in chunk}
    changed: dict[EntryKey, Entry | None] = dict.fromkeys(earlier.keys() - later.keys())
    changed.update((key, entry) for key, entry in later.items() if earlier.get(key) != entry)
    return changed


def decode_addresses(data: bytes) -> dict[EntryKey, str]:
    """The hexadecimal address of every served content in one chunk, by key. Raises ChunkError.

    It takes a quarter of the time of `decode_chunk`, for callers that only compare snapshots.
    """
    try:
        return {(row[0], row[1]): row[3][0] for row in json.loads(unpack(data)) if row[2] == "s"}
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ChunkError(f"unreadable chunk: {error}") from error


def encode_root(addresses: Iterable[bytes]) -> bytes:
    """The bytes of a snapshot's root: the addresses of its chunks, in order."""
    return bytes([FORMAT]) + b"".join(addresses)


def decode_root(data: bytes) -> tuple[bytes, ...]:
    """The addresses of a snapshot's chunks, in order, from the bytes of its root. Raises ChunkError."""
    if len(data) != 1 + CHUNKS * HASH_BYTES or data[0] != FORMAT:
        raise ChunkError(f"unreadable root of {len(data)} bytes")
    return tuple(data[start : start + HASH_BYTES] for start in range(1, len(data), HASH_BYTES))


def encode_access(table: AccessTable) -> bytes:
    """The bytes of an access table; equal tables give equal bytes."""
    rules = (*table.rules, _SECRETS_CLOSED) if table.closed else table.rules
    tree = {
        "default": table.default.value,
        "groups": [group.as_json() for group in table.groups],
        "rules": [_rule_row(rule) for rule in rules],
    }
    return pack(json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode())


def decode_access(data: bytes) -> AccessTable:
    """The access table that these bytes encode. Raises ChunkError."""
    try:
        tree = json.loads(unpack(data))
        groups = tuple(ClientGroup.from_json(row) for row in tree["groups"])
        default, rules = Effect(tree["default"]), tuple(_rule(row) for row in tree["rules"])
        if rules and rules[-1] == _SECRETS_CLOSED:
            return AccessTable(default, groups, rules[:-1])
        return AccessTable(default, groups, rules, default_covers_secrets=default is Effect.ALLOW)
    except (ValueError, TypeError, KeyError) as error:
        raise ChunkError(f"unreadable access table: {error}") from error


def pack(data: bytes, form: int = FORMAT) -> bytes:
    """The bytes of a stored part: a byte that names the format, `form`, and `data` compressed."""
    return bytes([form]) + zlib.compress(data, level=6)


def unpack(data: bytes, form: int = FORMAT) -> bytes:
    """What `pack` made a stored part of. Raises ChunkError when it has another format, is cut off or too large."""
    if not data or data[0] != form:
        raise ChunkError(f"unknown chunk format {data[:1].hex() or 'nothing'}")
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(data[1:], MAX_CHUNK_BYTES)
    except zlib.error as error:
        raise ChunkError(str(error)) from error
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ChunkError("truncated or oversized chunk")
    return plain


def entry_row(key: EntryKey, entry: Entry) -> list[object]:
    """An entry as the row of JSON that stands for it in a stored part; equal entries give equal rows."""
    match entry:
        case Served(content=content, proven=proven, rules=rules):
            row: list[object] = [*key, "s", _content_row(content), _content_row(proven) if proven is not None else None]
            return row if rules is None else [*row, rules]
        case WithheldName(reason=reason, content=Content() as content, kinds=kinds, refusers=refusers):
            # A process of the version before reads the reason alone, and withholds it from everybody.
            return [*key, "w", reason, _content_row(content), kinds, refusers]
        case WithheldName(reason=reason):
            return [*key, "w", reason]
        case RemovedName():
            return [*key, "r"]


def _content_row(content: Content) -> list[object]:
    return [content.blob.hex(), content.version, content.size, content.eds_name]


def entry_of_row(row: list[object], known: dict[tuple[int, ...], tuple[int, ...]]) -> tuple[EntryKey, Entry]:
    """The entry that `entry_row` made this row of. `known` has the rows of rules met so far, so that equal ones are one
    object. Raises ChunkError, ValueError, TypeError or IndexError for anything else.
    """
    word, name, state = row[0], row[1], row[2]
    if not isinstance(word, str) or not isinstance(name, str):
        raise ChunkError("an entry without type or name")
    match state:
        case "s":
            proven = _content(row[4]) if row[4] is not None else None
            return (word, name), Served(_content(row[3]), proven, _rules(row[5:], known))
        case "w":
            return (word, name), _withheld(row[3:])
        case "r":
            return (word, name), RemovedName()
    raise ChunkError(f"unknown entry state {state!r}")


def _withheld(columns: list[object]) -> WithheldName:
    reason, *more = columns
    if not more:
        return WithheldName(str(reason))
    content, kinds, refusers = more
    return WithheldName(str(reason), _content(content), _ordered(kinds), _ordered(refusers))


def _ordered(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ChunkError("a withheld entry without kinds or refusers")
    return tuple(value)


def _content(row: object) -> Content:
    if not isinstance(row, list):
        raise ChunkError("an entry without content")
    blob, version, size, eds_name = row
    return Content(bytes.fromhex(blob), version, size, eds_name)


def _rules(column: list[object], known: dict[tuple[int, ...], tuple[int, ...]]) -> tuple[int, ...] | None:
    if not column:
        return None
    numbers = column[0]
    if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
        raise ChunkError("an entry with unreadable rules")
    rules = tuple(numbers)
    return known.setdefault(rules, rules)


def _rule_row(rule: Rule) -> list[object]:
    groups, types = sorted(rule.client_groups), sorted(rule.types)
    return [rule.number, rule.effect.value, rule.pattern, groups, types, rule.message]


def _rule(row: list[object]) -> Rule:
    number, effect, pattern, groups, types, message = row
    if not (isinstance(number, int) and isinstance(pattern, str) and isinstance(message, str)):
        raise ChunkError("an access rule without number, pattern or message")
    return Rule(number, Effect(effect), pattern, _texts(groups), _texts(types), message)


def _texts(value: object) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ChunkError("an access rule with unreadable groups or types")
    return frozenset(value)
