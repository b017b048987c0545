"""The candidate side of a snapshot as an ADS process serves it: made of the stable side and the stored difference.

Nothing in here reads anything: `snapshot_reading` does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from adsserver.engine.versions import remember_marks
from xdscore.rollout_part import CandidatePart
from xdscore.snapshot import Content, Entry, EntryKey, Served, Snapshot, TypeState, WithheldName, with_candidate

_ByType = Mapping[str, Mapping[str, Entry | None]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """The candidate side of one snapshot as it was read: its part, and the stored bytes of that, by address. Both are
    empty while no rollout is open, and where the side is refused.

    `unreadable`: the addresses of its contents that could not be decrypted, each with the reason. `refused`: why the
    stable side is served to everybody although a rollout is open.
    """

    part: CandidatePart | None = None
    stored: Mapping[bytes, bytes] = field(default_factory=dict)
    unreadable: Mapping[bytes, str] = field(default_factory=dict)
    refused: str = ""


NO_CANDIDATE = Candidate()


def with_sides(
    stable: Snapshot, candidate: Candidate, former: Snapshot | None, former_part: CandidatePart | None
) -> tuple[Snapshot, CandidatePart | None]:
    """The snapshot `stable` with its candidate side, and what that is made of: `stable` alone and None where there is
    none. `former` and `former_part`: the snapshot that it replaces, and what the candidate side of that was made of.

    Where a content could not be decrypted, clients of the candidate side are served what the stable side has of the
    name (law 1).
    """
    part = candidate.part
    if part is None:
        return stable, None
    lost = candidate.unreadable.keys()
    diff = {
        key: entry
        for key, entry in part.diff.items()
        if entry is None or lost.isdisjoint(content.blob for content in contents_in(entry))
    }
    # Streams look whom they count as only when the table is another object.
    table = former_part.table if former_part is not None and former_part.table == part.table else part.table
    alike: Mapping[str, TypeState] = {}
    if former is not None and former.candidate is not None and former_part is not None:
        alike = _alike(stable, former, former.candidate, _by_type(diff), _by_type(former_part.diff))
    snapshot = with_candidate(stable, table, diff, alike)
    if snapshot.candidate is not None:
        remember_marks(snapshot.candidate, stable)
    return snapshot, CandidatePart(table, diff)


def _alike(
    stable: Snapshot, former: Snapshot, candidate: Snapshot, now: _ByType, was: _ByType
) -> Mapping[str, TypeState]:
    """The states of types that the former candidate side has, and that are the same in the next one, by their words:
    neither the stable side nor the difference from it is another, as when a rollout goes on to its next step.
    """
    return {
        word: candidate.types[word]
        for word in now.keys() & stable.types.keys()
        if stable.types[word] is former.types[word] and now[word] == was.get(word)
    }


def _by_type(diff: Mapping[EntryKey, Entry | None]) -> _ByType:
    found: dict[str, dict[str, Entry | None]] = {}
    for (word, name), entry in diff.items():
        found.setdefault(word, {})[name] = entry
    return found


def known_entries(part: CandidatePart) -> Iterator[tuple[EntryKey, Entry]]:
    """The entries of a candidate side that differ from the stable side, without names of which it knows nothing."""
    return ((key, entry) for key, entry in part.diff.items() if entry is not None)


def contents_in(entry: Entry) -> tuple[Content, ...]:
    """Every content of the entry that some client may be sent."""
    match entry:
        case Served(content=content, proven=None) | WithheldName(content=Content() as content):
            return (content,)
        case Served(content=content, proven=Content() as proven):
            return (content, proven)
        case _:
            return ()
