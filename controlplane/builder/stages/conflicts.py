"""Judges what two resources cannot both have: the address of two listeners, a domain of one route configuration.

A client has acknowledged what is proven, so that gives way to nobody; of the others, who came first stays.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdscore.snapshot import EntryKey


@dataclass(frozen=True, slots=True)
class Claimant:
    """A resource as it would be served. `since` numbers revisions in the order of their writing."""

    key: EntryKey
    claims: tuple[str, ...]
    proven: bool
    since: int

    @property
    def rank(self) -> tuple[bool, int, EntryKey]:
        """The place in the order of precedence; of two claimants, the lower rank keeps the claim."""
        return (not self.proven, self.since, self.key)


Conflicts = Mapping[EntryKey, tuple[tuple[str, EntryKey], ...]]
"""For each resource, every claim that it lost or shares, and the resource that has it."""


def who_yields(claimants: Iterable[Claimant]) -> Conflicts:
    """The resources that certainly cannot have what they claim, with who has it: whoever stands in their way stays.

    Empty when nobody has to yield. Who yields may, as an older revision, want something else: ask again then.
    """
    contested = _contested(claimants)
    losing = {key: conflicts for key, conflicts in _losers(contested).items() if conflicts}
    return {
        key: certain
        for key, conflicts in losing.items()
        if (certain := tuple(each for each in conflicts if each[1] not in losing))
    }


def shared_by_proven(claimants: Iterable[Claimant]) -> Conflicts:
    """The claims that several proven resources share: clients took each, so maybe no client has both, and both stay."""
    found: dict[EntryKey, list[tuple[str, EntryKey]]] = {}
    for claim, holders in _contested(claimants).items():
        proven = [each for each in holders if each.proven]
        for later in proven[1:]:
            found.setdefault(later.key, []).append((claim, proven[0].key))
    return {key: tuple(conflicts) for key, conflicts in found.items()}


def _losers(contested: Mapping[str, list[Claimant]]) -> dict[EntryKey, list[tuple[str, EntryKey]]]:
    losing: dict[EntryKey, list[tuple[str, EntryKey]]] = {}
    for claim, holders in contested.items():
        for later in holders[1:]:
            if not later.proven:
                losing.setdefault(later.key, []).append((claim, holders[0].key))
    return losing


def _contested(claimants: Iterable[Claimant]) -> dict[str, list[Claimant]]:
    """The claimants of each claim that more than one makes, in order of rank."""
    wanted: dict[str, list[Claimant]] = {}
    for each in claimants:
        for claim in each.claims:
            wanted.setdefault(claim, []).append(each)
    return {
        claim: sorted(holders, key=lambda each: each.rank)
        for claim, holders in sorted(wanted.items())
        if len(holders) > 1
    }
