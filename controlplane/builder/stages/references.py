"""Judges what the resources of an environment need of each other: names that do not exist, names that nobody asks for.

What is missing is the catalogue's rule (`catalog.references`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nsmallest

from controlplane.catalog.heads import Head
from controlplane.catalog.references import Authorities, absent_of
from xdscore.schema.references import NAMED_TYPES
from xdscore.snapshot import EntryKey

# An environment may hold thousands that nobody names; the first ones are told, and how many there are.
MAX_UNUSED = 100


@dataclass(frozen=True, slots=True)
class References:
    """The references between resources. `missing`: what each resource needs and nobody has; `foreign`: what another
    control plane has, by its authority (xdstp); `unused`: the first names that no resource names, of `unused_count`.
    """

    missing: Mapping[EntryKey, tuple[EntryKey, ...]]
    foreign: Mapping[EntryKey, tuple[EntryKey, ...]]
    unused: tuple[EntryKey, ...]
    unused_count: int


def judge_references(heads: Mapping[EntryKey, Head]) -> References:
    """Compare the names that every head refers to with the names that exist."""
    present = {key for key, head in heads.items() if head.content is not None}
    authorities = Authorities(present)
    missing: dict[EntryKey, tuple[EntryKey, ...]] = {}
    foreign: dict[EntryKey, tuple[EntryKey, ...]] = {}
    named: set[EntryKey] = set()
    for key, head in heads.items():
        targets = head.references
        if not targets:
            continue
        named.update(targets)
        if present.issuperset(targets):
            continue
        absent = absent_of(targets, present, authorities)
        if absent.missing:
            missing[key] = absent.missing
        if absent.foreign:
            foreign[key] = absent.foreign
    unused = [key for key in present - named if key[0] in NAMED_TYPES]
    return References(missing, foreign, tuple(nsmallest(MAX_UNUSED, unused)), len(unused))
