"""The two sides of an environment as heads to resolve, and their difference as what is stored (rollouts.md, "Words").

Both sides are resolved by the same stage (`fallback`), so each is complete by itself: references hold on both.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from controlplane.builder.stages.fallback import REJECTED, Cause, HeldBack, Resolution
from controlplane.catalog.choices import StagedState
from controlplane.catalog.heads import Head, Staged
from xdscore.snapshot import Entry, EntryKey, Served, WithheldName

Heads = Mapping[EntryKey, Head]
Entries = Mapping[EntryKey, Entry]


def stable_heads(heads: Heads, staged: Collection[EntryKey]) -> Heads:
    """The heads of the stable side: of each name in `staged`, the revision that this side has in the place of the
    newest one; none of a name that is new. Without any, `heads` itself.
    """
    if not staged:
        return heads
    found = dict(heads)
    for key in staged:
        _place(found, key, _stable(heads[key]))
    return found


def candidate_heads(heads: Heads, staged: Collection[EntryKey], stable: Entries) -> Heads:
    """The heads of the candidate side: the newest revision of each name that the open rollout has, and otherwise what
    the stable side has. `stable`: what is served on that side, to which a candidate falls back, whether or not any
    client acknowledged it (rollouts.md R6).
    """
    found = dict(heads)
    for key in staged:
        head = heads[key]
        is_candidate = head.staged is not None and head.staged.state is StagedState.CANDIDATE
        _place(found, key, _candidate(head, stable.get(key)) if is_candidate else _stable(head))
    return found


def candidates_of(heads: Heads, staged: Collection[EntryKey]) -> frozenset[EntryKey]:
    """The names among `staged` whose newest revision the open rollout has."""
    return frozenset(key for key in staged if _state(heads[key]) is StagedState.CANDIDATE)


def with_rehearsed(heads: Heads, rehearsed: Heads, stable: Entries) -> Heads:
    """The heads with what a rehearsal has of its names, as candidates in front of what the stable side has (rollouts.md
    "Rehearsal"). Without any, `heads` itself.

    `stable`: what is served on that side. Where a name is rehearsed as it is served there, its content stays the same
    to clients; a name that is nowhere is not deleted.
    """
    if not rehearsed:
        return heads
    found = dict(heads)
    for key, head in rehearsed.items():
        before, served = heads.get(key), stable.get(key)
        if head.content is None and before is None and served is None:
            continue
        content = head.content
        if content is not None and isinstance(served, Served) and served.content.blob == content.blob:
            content = served.content
        found[key] = replace(head, content=content, staged=Staged(before, StagedState.CANDIDATE))
    return found


def with_stopped(resolution: Resolution, heads: Heads, staged: Collection[EntryKey]) -> Resolution:
    """The resolution of the stable side, in which each name that a rollout took back is held back: its newest revision
    is in quarantine and served to nobody (rollouts.md R7).
    """
    stopped = [key for key in staged if _state(heads[key]) is StagedState.STOPPED]
    if not stopped:
        return resolution
    held = {each.key: each for each in resolution.held}
    for key in stopped:
        served = isinstance(resolution.entries.get(key), Served)
        held[key] = HeldBack(key, Cause.REJECTED, REJECTED, served=served)
    return replace(resolution, held=tuple(held[key] for key in sorted(held)))


def with_stable(resolution: Resolution, candidates: Collection[EntryKey], stable: Entries) -> Resolution:
    """The resolution of the candidate side, in which each of `candidates` whose newest revision is held back has what
    the stable side has, so that there is nothing to send for it. A name that is new stays withheld.
    """
    entries = dict(resolution.entries)
    for each in resolution.held:
        before = stable.get(each.key)
        if each.key in candidates and isinstance(before, Served | WithheldName):
            entries[each.key] = before
    return replace(resolution, entries=entries)


def diff(stable: Entries, candidate: Entries) -> Mapping[EntryKey, Entry | None]:
    """The entries in which the candidate side differs from the stable one. None stands for a name of which the
    candidate side knows nothing.
    """
    found: dict[EntryKey, Entry | None] = {}
    for key, entry in candidate.items():
        other = stable.get(key)
        if other is not entry and other != entry:
            found[key] = entry
    found.update((key, None) for key in stable if key not in candidate)
    return found


def _state(head: Head) -> StagedState | None:
    return head.staged.state if head.staged is not None else None


def _stable(head: Head) -> Head | None:
    return head.staged.stable if head.staged is not None else head


def _candidate(head: Head, stable: Entry | None) -> Head:
    """The head of a candidate that falls back to what the stable side serves of it."""
    served = stable.content if isinstance(stable, Served) else None
    before = _stable(head)
    claims: tuple[str, ...] = ()
    if served is not None and before is not None:
        claims = before.claims if served == before.content else before.proven_claims
    return replace(head, proven=served, proven_quarantined=False, proven_claims=claims, staged=None)


def _place(heads: dict[EntryKey, Head], key: EntryKey, head: Head | None) -> None:
    if head is None:
        heads.pop(key, None)
    else:
        heads[key] = head
