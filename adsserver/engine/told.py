"""What a client can have been told about a name: content, an error, or nothing."""

from collections.abc import Mapping
from enum import Enum

from xdscore.errors import ResourceError
from xdscore.snapshot import Content


class Absent(Enum):
    """The value that stands for nothing: a name never told, not shown, or not there."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT

Told = Content | ResourceError | Absent

UNKNOWN_COPY = Content(blob=b"", version="", size=0)
"""The client may hold something of this name, nobody knows what: after a NACK (B12). No real version is empty."""


def reported(version: str) -> Content:
    """The content a client says it holds, of which it names only the version (E5)."""
    return Content(blob=b"", version=version, size=0)


def differing(held: Mapping[str, str], known: Mapping[str, str]) -> dict[str, Told]:
    """What a client holds in another version than is `known`, and what it does not hold of that."""
    behind: dict[str, Told] = dict.fromkeys(known.keys() - held.keys(), ABSENT)
    behind.update((name, reported(version)) for name, version in held.items() if known.get(name) != version)
    return behind


def same(one: Told, other: Told) -> bool:
    """Whether a client that was told `one` need not be told `other` (D6, F11)."""
    if isinstance(one, Content) and isinstance(other, Content):
        # B10: the version changes exactly when the content does.
        return one.version == other.version
    return one == other
