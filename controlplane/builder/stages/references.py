"""Judges what resources need of each other: names that do not exist, names that nobody asks for.

Existence is all that counts. A name that is withheld exists: who refers to it is served, because one bad thing stops no
good thing (architecture.md law 1), and a client that asks for the withheld one learns why.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest

from controlplane.catalog.heads import Head
from xdscore.names import xdstp_authority
from xdscore.resource_types import CLUSTER, ENDPOINT, EXTENSION, ROUTE, SECRET
from xdscore.snapshot import EntryKey

# Clients come to the others by themselves: listeners and clusters by wildcard, the rest by names of their own.
_ASKED_FOR_BY_OTHERS = frozenset(kind.word for kind in (CLUSTER, ENDPOINT, ROUTE, SECRET, EXTENSION))
_XDSTP = "xdstp://"
# An environment may hold thousands that nobody names; the first ones are told, and how many there are.
MAX_UNUSED = 100


@dataclass(frozen=True, slots=True)
class References:
    """What was found. `missing`: what each resource needs and nobody has; `foreign`: what another control plane has, by
    its authority (xdstp); `unused`: the first names that no resource names, of `unused_count`.
    """

    missing: Mapping[EntryKey, tuple[EntryKey, ...]]
    foreign: Mapping[EntryKey, tuple[EntryKey, ...]]
    unused: tuple[EntryKey, ...]
    unused_count: int


def judge_references(heads: Mapping[EntryKey, Head]) -> References:
    """Compare what every head needs with what there is."""
    present = {key for key, head in heads.items() if head.content is not None}
    authorities = _Authorities(present)
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
        absent = [target for target in targets if target not in present]
        here = tuple(target for target in absent if not authorities.have_elsewhere(target))
        if here:
            missing[key] = here
        if len(here) < len(absent):
            foreign[key] = tuple(target for target in absent if authorities.have_elsewhere(target))
    unused = [key for key in present - named if key[0] in _ASKED_FOR_BY_OTHERS]
    return References(missing, foreign, tuple(nsmallest(MAX_UNUSED, unused)), len(unused))


class _Authorities:
    """The xdstp authorities under which an environment publishes something; read from its names when first asked."""

    def __init__(self, names: Iterable[EntryKey]) -> None:
        self._names = names

    @cached_property
    def ours(self) -> frozenset[str]:
        return frozenset(xdstp_authority(name) for _, name in self._names if name.startswith(_XDSTP))

    def have_elsewhere(self, target: EntryKey) -> bool:
        """Whether the name belongs to an authority of which this environment has nothing: clients ask another server
        for it, by their bootstrap (xRFC TP1).
        """
        name = target[1]
        return name.startswith(_XDSTP) and xdstp_authority(name) not in self.ours
