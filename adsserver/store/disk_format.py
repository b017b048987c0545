"""The format of the files in which ADS keeps the last good snapshots (law 4, reliability P8, P10).

A directory, signed, says what was served. For each blob that it leads to (roots, access tables, chunks) there is a part
with the address for a name. A chunk's part brings the contents of its entries along: a change of one name is one small
file, and the largest environment is 256 of them. Secrets are there as ciphertext.

Nothing is believed before it was verified. Pure: no file is touched here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Protocol

from adsserver.ports import ClientToken
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.snapshot import HASH_BYTES, content_hash

FORMAT = 1

_DIRECTORY_MAGIC = b"parley-directory"
_PART_MAGIC = b"parley-part "
# No environment's key starts like this, so that no signature of a snapshot is one of a directory.
_SIGNED = b"\0directory\0"

_BLOB, _PLAIN, _SEALED = b"b", b"p", b"s"
_LENGTH_BYTES = 4
_OF_ROLLOUT = ("rollout", "rollout_mac")


class CacheRefused(Exception):
    """A file of the cache on disk is missing, incomplete, altered, signed under a foreign key, or of a format this
    process does not read.
    """


class Keys(Protocol):
    """What the files need of the installation's key ring."""

    def sign(self, data: bytes) -> str:
        """The signature (MAC) of the data, on one line without spaces."""
        ...

    def verifies(self, data: bytes, mac: str) -> bool:
        """Whether `mac` is the signature of the data under one of the installation's keys."""
        ...

    def open(self, sealed: bytes, address: bytes) -> bytes:
        """The plain bytes of an encrypted secret; `address` is that of its content. Raises ValueError when it cannot be
        decrypted.
        """
        ...


@dataclass(frozen=True, slots=True)
class SavedSnapshot:
    """Where a snapshot is on disk: the addresses of its root, its access table and its candidate side in hexadecimal.
    `mac` and `rollout_mac` sign them as in the database. `rollout` is empty while no rollout is open.
    """

    lineage: str
    epoch: int
    root: str
    access: str
    mac: str
    rollout: str = ""
    rollout_mac: str = ""


@dataclass(frozen=True, slots=True)
class SavedDirectory:
    """What was served, as it is saved on disk.

    environments: in the order in which a client's is chosen.
    snapshots: where the snapshot of each environment is; one without a snapshot was never built.
    tokens: those of data planes, by their hash, so that a server without database still knows its clients (D20).
    saved_at: Unix time, shown to people; it does not count when directories are compared.
    """

    environments: tuple[EnvironmentChoice, ...]
    snapshots: Mapping[str, SavedSnapshot]
    tokens: Mapping[str, ClientToken] = field(default_factory=dict)
    saved_at: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Part:
    """One blob of a snapshot (root, access table, chunk, candidate side) with the contents that its entries name: each
    plain, or encrypted (sealed).
    """

    blob: bytes
    plain: Mapping[bytes, bytes] = field(default_factory=dict)
    sealed: Mapping[bytes, bytes] = field(default_factory=dict)


def encode_directory(directory: SavedDirectory, keys: Keys) -> bytes:
    """The bytes of the file that says what was served: one line with format and signature, then JSON."""
    said = {
        "saved_at": directory.saved_at,
        "environments": [asdict(choice) for choice in directory.environments],
        "snapshots": {
            key: {name: value for name, value in asdict(snapshot).items() if name not in _OF_ROLLOUT}
            for key, snapshot in directory.snapshots.items()
        },
        "tokens": {digest: asdict(token) for digest, token in directory.tokens.items()},
    }
    # Apart, because a process of the version before reads what it knows of and ignores this (rollouts.md R2).
    rollouts = {
        key: {name: getattr(snapshot, name) for name in _OF_ROLLOUT}
        for key, snapshot in directory.snapshots.items()
        if snapshot.rollout
    }
    body = json.dumps({**said, "rollouts": rollouts} if rollouts else said, separators=(",", ":")).encode()
    return b"%s %d %s\n%s" % (_DIRECTORY_MAGIC, FORMAT, keys.sign(_SIGNED + body).encode(), body)


def decode_directory(data: bytes, keys: Keys) -> SavedDirectory:
    """What was served, from the bytes of its file, whose signature is verified. Raises CacheRefused."""
    line, _, body = data.partition(b"\n")
    words = line.split(b" ")
    if len(words) != 3 or words[0] != _DIRECTORY_MAGIC:
        raise CacheRefused("the directory is not one of ours, or cut off")
    if words[1] != b"%d" % FORMAT:
        raise CacheRefused(f"the directory has format {words[1][:20]!r}; this process reads {FORMAT}")
    if not keys.verifies(_SIGNED + body, words[2].decode(errors="replace")):
        raise CacheRefused("the directory's signature does not hold: it was altered, or signed under a foreign key")
    try:
        said = json.loads(body)
        return SavedDirectory(
            environments=tuple(
                EnvironmentChoice(
                    each["key"], tuple(Selector(**selector) for selector in each["selectors"]), tuple(each["node_ids"])
                )
                for each in said["environments"]
            ),
            snapshots={
                key: SavedSnapshot(**snapshot, **said.get("rollouts", {}).get(key, {}))
                for key, snapshot in said["snapshots"].items()
            },
            tokens={digest: ClientToken(**token) for digest, token in said["tokens"].items()},
            saved_at=said["saved_at"],
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CacheRefused(f"the directory cannot be read: {error!r}") from error


def encode_part(part: Part) -> bytes:
    """The bytes of a part's file: the blob, then each content; equal parts give equal bytes."""
    pieces = [_PART_MAGIC, b"%c" % FORMAT, *_record(_BLOB, content_hash(part.blob), part.blob)]
    for kind, contents in ((_PLAIN, part.plain), (_SEALED, part.sealed)):
        for address in sorted(contents):
            pieces += _record(kind, address, contents[address])
    return b"".join(pieces)


def decode_part(data: bytes, address: bytes, keys: Keys) -> Part:
    """The part that has this address, from the bytes of its file. Every byte is verified: plain ones by their hashes,
    secrets by decrypting them. Raises CacheRefused.
    """
    start = len(_PART_MAGIC) + 1
    if data[: len(_PART_MAGIC)] != _PART_MAGIC or len(data) < start:
        raise CacheRefused(f"{address.hex()} is not a part, or cut off")
    if data[start - 1] != FORMAT:
        raise CacheRefused(f"{address.hex()} has format {data[start - 1]}; this process reads {FORMAT}")
    blobs: list[bytes] = []
    found: dict[bytes, dict[bytes, bytes]] = {_PLAIN: {}, _SEALED: {}}
    for kind, its_address, content in _records(data, start, address):
        if kind == _BLOB and its_address == address == content_hash(content):
            blobs.append(content)
        elif (kind == _PLAIN and content_hash(content) == its_address) or (
            kind == _SEALED and _opens(keys, content, its_address)
        ):
            found[kind][its_address] = content
        else:
            raise CacheRefused(f"{address.hex()} was altered at {its_address.hex()}, or sealed under a foreign key")
    if len(blobs) != 1:
        raise CacheRefused(f"{address.hex()} holds {len(blobs)} blobs")
    return Part(blobs[0], found[_PLAIN], found[_SEALED])


def _record(kind: bytes, address: bytes, data: bytes) -> tuple[bytes, ...]:
    return kind, address, len(data).to_bytes(_LENGTH_BYTES, "big"), data


def _records(data: bytes, start: int, name: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    head = 1 + HASH_BYTES + _LENGTH_BYTES
    while start < len(data):
        content = start + head
        length = int.from_bytes(data[content - _LENGTH_BYTES : content], "big")
        if content + length > len(data):
            raise CacheRefused(f"{name.hex()} is cut off")
        yield data[start : start + 1], data[start + 1 : start + 1 + HASH_BYTES], data[content : content + length]
        start = content + length


def _opens(keys: Keys, sealed: bytes, address: bytes) -> bool:
    try:
        keys.open(sealed, address)
    except ValueError:
        return False
    return True
