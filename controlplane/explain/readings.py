"""Contents read into messages, kept for the next question: a route configuration may have ten thousand routes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.catalog.contents import plaintexts_at
from controlplane.catalog.manifests import manifest_lines
from controlplane.common.remembered import Remembered
from xdscore.resource_types import by_word
from xdscore.routing.values import Given, Key
from xdscore.schema.pool import Schema
from xdscore.schema.types_registry import schema

# Of serialised bytes; what is made of them takes about ten times as much. Ten thousand routes have about one megabyte.
_MAX_KEPT_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Stored:
    """A content of a resource: its address, and its ttl in milliseconds, 0 without one."""

    key: Key
    address: str
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a content says. `weight`: its bytes; of one that holds secrets, so many that it is not kept."""

    given: Given
    weight: int


# What a content says depends on the schema that it is read by, too.
_kept: Final = Remembered[tuple[Schema, Stored], _Reading](_MAX_KEPT_BYTES, lambda reading: reading.weight)


def readings_of(contents: Collection[Stored]) -> Mapping[Key, Given]:
    """What each of these contents says; contents that cannot be read are left out. Whether they may be seen was decided
    before.
    """
    now = schema()
    found = _kept.those_of([(now, each) for each in contents], _read)
    return {stored.key: reading.given for (_, stored), reading in found.items()}


def _read(wanted: Collection[tuple[Schema, Stored]]) -> Mapping[tuple[Schema, Stored], _Reading]:
    blobs = {
        address: (content, sealed)
        for address, content, sealed in plaintexts_at(addresses={stored.address for _, stored in wanted})
    }
    found: dict[tuple[Schema, Stored], _Reading] = {}
    for each in wanted:
        content, sealed = blobs.get(each[1].address, (b"", False))
        given = _given(each[1], content)
        if given is not None:
            found[each] = _Reading(given, _MAX_KEPT_BYTES + 1 if sealed else len(content))
    return found


def _given(stored: Stored, content: bytes) -> Given | None:
    word, name = stored.key
    lines = manifest_lines(by_word[word], name, content, stored.ttl_ms)
    return Given(lines.message, lines=lines, made={}) if lines is not None else None
