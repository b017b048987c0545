"""What was written, by generation, held against what clients received: which version came late, never, or again after
a newer one; and which was written after a newer request had been answered. Pure.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a name that was written. `value`: tells it from all others; `generation`: of its change, by which
    versions of a name follow each other; `sent`, `answered`: when its request began and when its answer came.
    """

    name: str
    value: int
    generation: int
    sent: float
    answered: float


@dataclass(frozen=True, slots=True)
class Sight:
    """A version that a client received, and when."""

    client: int
    name: str
    value: int
    at: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of all versions. `lost`: a sentence for each name of which a client does not have the last
    version; `back`: for each time that a client received an older version after a newer one.

    `late_s`: for each version and client, how long after its answer the client had it or a newer one, the latest last.
    `latest`: what is known of that version, in words. `overtaken`: how many versions have a higher generation than one
    of the same name whose request was sent later: they arrived late, and stay rightly.
    """

    lost: tuple[str, ...]
    back: tuple[str, ...]
    late_s: tuple[float, ...]
    latest: str
    overtaken: int


def verdict(written: Iterable[Version], seen: Iterable[Sight], clients: Sequence[int]) -> Verdict:
    """Hold what these clients received against what was written. What they received besides was there before."""
    received: defaultdict[tuple[int, str], list[Sight]] = defaultdict(list)
    for each in sorted(seen, key=lambda sight: sight.at):
        received[each.client, each.name].append(each)
    versions: defaultdict[str, list[Version]] = defaultdict(list)
    for version in sorted(written, key=lambda version: version.generation):
        versions[version.name].append(version)
    lost: list[str] = []
    back: list[str] = []
    late: list[tuple[float, str]] = []
    for name, of_name in versions.items():
        place = {version.value: number for number, version in enumerate(of_name)}
        for client in clients:
            sights = [(place[each.value], each.at) for each in received[client, name] if each.value in place]
            newest: list[int] = []  # of what it has had so far, with each sight
            for number, at in sights:
                if newest and number < newest[-1]:
                    back.append(f"client {client} received {of_name[number]} at {at:.3f}, after {of_name[newest[-1]]}")
                newest.append(max(number, newest[-1] if newest else -1))
            if not sights or sights[-1][0] != len(of_name) - 1:
                has = of_name[sights[-1][0]] if sights else "none of them"
                lost.append(f"client {client} has {has}, not {of_name[-1]}")
            for number, version in enumerate(of_name):
                found = bisect_left(newest, number)
                if found < len(newest):
                    seconds = max(0.0, sights[found][1] - version.answered)
                    late.append((seconds, f"{version}, had by client {client} at {sights[found][1]:.3f}"))
    late.sort()
    return Verdict(
        tuple(lost),
        tuple(back),
        tuple(seconds for seconds, _ in late),
        late[-1][1] if late else "",
        _overtaken(versions),
    )


def _overtaken(versions: "dict[str, list[Version]]") -> int:
    found = 0
    for of_name in versions.values():
        sent = float("-inf")
        for version in of_name:
            found += version.sent < sent
            sent = max(sent, version.sent)
    return found
