"""What changed from snapshot to snapshot, so that a version that a client was sent says which contents it stands for.

A version is a function of what it shows (`engine.versions`): from that of the current state and the changes that led to
it, those of the states before follow, as far back as changes are remembered (data model decision 1: what a client was
told is derived, not stored).
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from adsserver.engine.told import ABSENT, Absent
from adsserver.engine.versions import mark, version_text
from xdscore.resource_types import RESOURCE_TYPES, ResourceType
from xdscore.snapshot import Content, Served, Snapshot

# Snapshots and changed names that are remembered of one environment: some minutes of steady edits.
MAX_STEPS = 64
MAX_CHANGES = 10_000

Shown = Content | Absent
Change = tuple[Shown, Shown]
"""The content of a name before a step and after it."""


@dataclass(frozen=True, slots=True)
class SnapshotStep:
    """The changes of one snapshot, by type word and name; and whether its access rules differ from those of the
    snapshot before.
    """

    changes: Mapping[str, Mapping[str, Change]]
    other_rules: bool


@dataclass(frozen=True, slots=True)
class Past:
    """What changed from snapshot to snapshot up to `snapshot`, the oldest change first. Immutable."""

    snapshot: Snapshot
    steps: tuple[SnapshotStep, ...] = ()

    def then(self, snapshot: Snapshot) -> "Past":
        """The past of the next snapshot, which has one step more. A snapshot of another lineage has a past without
        steps.
        """
        if snapshot.lineage != self.snapshot.lineage:
            return Past(snapshot)
        steps = deque((*self.steps, _step(self.snapshot, snapshot)))
        size = sum(map(_size, steps))
        while len(steps) > MAX_STEPS or size > MAX_CHANGES:
            size -= _size(steps.popleft())
        return Past(snapshot, tuple(steps))

    def changes(self, kind: ResourceType, names: frozenset[str] | None) -> Iterator[tuple[int, Mapping[str, Change]]]:
        """The steps, newest first, each as its number (the oldest is 1) and what it changed of these names (None: of
        all).

        Ends at a step that changed access rules: what they let whom see before is not remembered.
        """
        for number in range(len(self.steps), 0, -1):
            step = self.steps[number - 1]
            if step.other_rules:
                return
            changed = step.changes.get(kind.word, {})
            yield number, changed if names is None else {name: changed[name] for name in names & changed.keys()}


@dataclass(frozen=True, slots=True)
class Timeline:
    """For one subscription: the number of the step after which its state had each version, and the number of the step
    that changed each name last. Step 0 is what was there before the first.
    """

    versions: Mapping[str, int] = field(default_factory=dict)
    last_changes: Mapping[str, int] = field(default_factory=dict)

    def shows_current(self, version: str, name: str) -> bool | None:
        """Whether the state with this version contains the present content of this name; None when the version is
        unknown.
        """
        step = self.versions.get(version)
        if step is None:
            return None
        return self.last_changes.get(name, 0) <= step


def timeline(
    total: int,
    past: Past,
    kind: ResourceType,
    names: frozenset[str] | None,
    answered: frozenset[str],
    may_read: Callable[[str], bool],
) -> Timeline:
    """The timeline of a subscription whose state, as it is served now, has marks that add up to `total`, and which sees
    these names (None: all).

    `may_read` says whether access rules allow a name. `answered`: names for which an error is sent where they have no
    content. The timeline ends at a step in which one of these came or went, because what the error said before is not
    remembered.
    """
    versions = {version_text(total): len(past.steps)}
    last_changes: dict[str, int] = {}
    for number, all_changed in past.changes(kind, names):
        changed = {name: change for name, change in all_changed.items() if may_read(name)}
        for name in changed:
            last_changes.setdefault(name, number)
        if any(isinstance(shown, Absent) for name in answered & changed.keys() for shown in changed[name]):
            break
        total += sum(mark(name, before) - mark(name, after) for name, (before, after) in changed.items())
        # A version that came back stands for the newest state that has it, which shows the same.
        versions.setdefault(version_text(total), number - 1)
    return Timeline(versions, last_changes)


def _step(before: Snapshot, after: Snapshot) -> SnapshotStep:
    changes = {kind.word: changed for kind in RESOURCE_TYPES if (changed := _changed(kind, before, after))}
    return SnapshotStep(changes, other_rules=before.access != after.access)


def _changed(kind: ResourceType, before: Snapshot, after: Snapshot) -> dict[str, Change]:
    old, new = before.type_state(kind).served, after.type_state(kind).served
    changed: dict[str, Change] = {}
    for name, entry in new.items():
        known = old.get(name)
        if known is not entry and (known is None or known.content.version != entry.content.version):
            changed[name] = (_content(known), entry.content)
    changed.update((name, (entry.content, ABSENT)) for name, entry in old.items() if name not in new)
    return changed


def _content(served: Served | None) -> Shown:
    return served.content if served is not None else ABSENT


def _size(step: SnapshotStep) -> int:
    return sum(map(len, step.changes.values()))
