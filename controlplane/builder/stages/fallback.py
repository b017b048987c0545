"""Which content of each name is served: its head, what it falls back to, or nothing (law 1, decisions D1, D12).

A head gives way when it is in quarantine, when it needs what does not exist, when it wants what another resource has,
or when Envoy, where it is asked (`builder.deep`), refuses it. It gives way to the last revision that a client has
acknowledged; where none was, the name is withheld, and says so. Going back can bring a resource into the way of
another, so the stage repeats until nothing moves; every step goes back, so it ends.

What a client has acknowledged never moves because of somebody else: deleting a route must not take away the listener
that works with it. It is served on, and a finding tells what it misses.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from controlplane.builder.stages.conflicts import Claimant, Conflicts, shared_by_proven, who_yields
from controlplane.builder.stages.references import References, judge_references
from controlplane.catalog.heads import Head
from xdscore.resource_types import by_word
from xdscore.snapshot import Entry, EntryKey, Served, WithheldName


class Cause(Enum):
    """Why a head is not served. The value is the code of the finding that says so."""

    REJECTED = "XDS5001"
    MISSING_REFERENCE = "XDS2002"
    CLAIMED = "XDS2004"
    ENVOY = "XDS2007"
    TYPE = "XDS2009"


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A name whose head is not served: it runs an older revision (`served`), or nothing.

    `reason` ends the sentence clients read: "Cluster 'pay' is withheld: rejected by clients." (texts.md section 8,
    XDS2106). It names no other resource, because the client may not know of it. `kinds`: its head is served after all,
    but to clients of these kinds.
    """

    key: EntryKey
    cause: Cause
    reason: str
    served: bool
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolution:
    """The decision of a build about every name: its entry, which names do not serve their head, and the findings.
    `broken`: the types that could not be built, with the name of the error (`isolation`).
    """

    entries: Mapping[EntryKey, Entry]
    held: tuple[HeldBack, ...]
    references: References
    conflicts: Conflicts
    shared: Conflicts
    refused: Mapping[EntryKey, str]
    broken: Mapping[str, str] = field(default_factory=dict)


REJECTED = "rejected by clients"
REFUSED = "an Envoy that checked it refused it"
NOTHING_REFUSED: Mapping[EntryKey, str] = {}


def resolve(heads: Mapping[EntryKey, Head], refused: Mapping[EntryKey, str] = NOTHING_REFUSED) -> Resolution:
    """Decide for every name of an environment what is served: its head, an older revision, or nothing with a reason.
    `refused` are heads that Envoy does not take, with its words.
    """
    references = judge_references(heads)
    yielding: dict[EntryKey, tuple[Cause, str]] = {}
    for key, head in heads.items():
        if head.quarantined:
            yielding[key] = (Cause.REJECTED, REJECTED)
    for key, targets in references.missing.items():
        if not heads[key].acknowledged:
            yielding.setdefault(key, (Cause.MISSING_REFERENCE, _missing(targets)))
    for key in refused:
        yielding.setdefault(key, (Cause.ENVOY, REFUSED))
    claiming = [head for head in heads.values() if head.claims or head.proven_claims]
    conflicts = _settle_claims(claiming, yielding)
    entries = {key: head.entry for key, head in heads.items()}
    held: list[HeldBack] = []
    for key in sorted(yielding):
        cause, reason = yielding[key]
        fallback = heads[key].fallback
        entries[key] = Served(fallback, fallback) if fallback is not None else _withheld(heads[key], cause, reason)
        held.append(HeldBack(key, cause, reason, served=fallback is not None, kinds=_kinds(entries[key])))
    shared = shared_by_proven(_claimants(claiming, yielding))
    return Resolution(entries, tuple(held), references, conflicts, shared, refused)


def _withheld(head: Head, cause: Cause, reason: str) -> WithheldName:
    """The entry of a withheld name: what is published where no older revision stands in for its head."""
    if cause is Cause.REJECTED and head.withholding is not None and head.content is not None:
        return head.withholding.entry(head.content, reason)
    return WithheldName(reason)


def _kinds(entry: Entry) -> tuple[str, ...]:
    return entry.kinds if isinstance(entry, WithheldName) else ()


def _settle_claims(claiming: Sequence[Head], yielding: dict[EntryKey, tuple[Cause, str]]) -> Conflicts:
    """Let resources yield until no claim is contested, adding them to `yielding`; the claims that each yielded, and to
    whom.
    """
    conflicts: dict[EntryKey, tuple[tuple[str, EntryKey], ...]] = {}
    while moved := who_yields(_claimants(claiming, yielding)):
        for key, lost in moved.items():
            yielding[key] = (Cause.CLAIMED, _claimed(key, lost))
        conflicts |= moved
    return conflicts


def _claimants(claiming: Iterable[Head], yielding: Container[EntryKey]) -> Iterator[Claimant]:
    """Every resource that claims something for itself, with the claims of the revision that would be served now."""
    for head in claiming:
        if head.key not in yielding:
            yield Claimant(head.key, head.claims, proven=head.acknowledged, since=head.revision)
        elif head.fallback is not None:
            yield Claimant(head.key, head.proven_claims, proven=True, since=head.revision)


def _missing(targets: tuple[EntryKey, ...]) -> str:
    titles = sorted({by_word[word].title for word, _ in targets})
    return f"it refers to a {titles[0]} that does not exist"


def _claimed(key: EntryKey, lost: tuple[tuple[str, EntryKey], ...]) -> str:
    what = lost[0][0].partition(" ")[0]  # address, pipe or domain
    return f"another {by_word[key[0]].title} has its {what} already"
