"""Derives how an environment stands as a whole from how its resources do: facts in, one word and why out. Pure.

The only place that decides it: home, the pages of environments and snapshots, REST, `xdsctl environments` and the
metrics say what stands here, and none of them "all published" of an environment where anything is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from controlplane.status.values import Status


class Headline(StrEnum):
    """The status of an environment in one word. Where several apply, the first in this order is given."""

    LOST = "lost"  # connected clients lost what they had by a change, and nobody has resolved that
    WITHHELD = "withheld"  # the next four: at least one resource stands so (`Status`)
    REFUSED = "refused"  # or clients refuse a response, and nobody knows for which resource
    QUARANTINED = "quarantined"
    STALLED = "stalled"
    HELD = "held"  # it is on hold: changes of resources are refused
    WAITING = "waiting"  # something was written that no build has covered
    EMPTY = "empty"  # it has no resources
    PUBLISHED = "published"  # every resource is served as written


@dataclass(frozen=True, slots=True)
class EnvironmentFacts:
    """The facts about an environment from which its status is derived.

    `counts`: how many of its resources have each status.
    `losses`: how many open incidents are about something that clients lost.
    `unnamed`: how many open incidents name no resource.
    `unattended`: how many open incidents nobody looks after yet; the status does not depend on it.
    `hold`: why it is on hold; empty where it is not.
    `unbuilt`: whether something was written that no build has covered: a resource, a deletion, an access rule or a
        policy.
    `staged`: how many names, deleted ones among them, wait for a rollout or are in the open one.
    """

    counts: Mapping[Status, int] = field(default_factory=dict)
    losses: int = 0
    unnamed: int = 0
    hold: str = ""
    unbuilt: bool = False
    staged: int = 0
    unattended: int = 0


@dataclass(frozen=True, slots=True)
class EnvironmentStatus:
    """The status of an environment in one word, why it is so (one or more sentences), how many resources have each
    status, how many open incidents are losses, and how many nobody looks after yet.
    """

    status: Headline
    reason: str
    counts: Mapping[Status, int]
    losses: int
    unattended: int = 0

    @property
    def resources(self) -> int:
        """The number of resources in the environment."""
        return sum(self.counts.values())

    @property
    def unserved(self) -> int:
        """The number of resources that are not served as they were written."""
        return sum(self.counts[each] for each in (Status.WITHHELD, Status.QUARANTINED, Status.STALLED))


def environment_status(facts: EnvironmentFacts) -> EnvironmentStatus:
    """The status that follows from the facts about an environment. Its `reason` tells everything that is wrong, worst
    first.
    """
    counts = {status: facts.counts.get(status, 0) for status in Status}
    total = sum(counts.values())
    true = {
        Headline.LOST: facts.losses > 0,
        Headline.WITHHELD: counts[Status.WITHHELD] > 0,
        Headline.REFUSED: counts[Status.REFUSED] > 0 or facts.unnamed > 0,
        Headline.QUARANTINED: counts[Status.QUARANTINED] > 0,
        Headline.STALLED: counts[Status.STALLED] > 0,
        Headline.HELD: bool(facts.hold),
        Headline.WAITING: counts[Status.WAITING] > 0 or facts.unbuilt or facts.staged > 0,
        Headline.EMPTY: total == 0,
        Headline.PUBLISHED: True,
    }
    word = next(each for each in Headline if true[each])
    return EnvironmentStatus(word, _reason(facts, counts, total), counts, facts.losses, facts.unattended)


def _reason(facts: EnvironmentFacts, counts: Mapping[Status, int], total: int) -> str:
    told = [
        _losses(facts.losses),
        _of(counts[Status.WITHHELD], total, "withheld"),
        _of(counts[Status.REFUSED], total, "refused by clients"),
        _unnamed(facts.unnamed),
        _of(counts[Status.QUARANTINED], total, "quarantined"),
        _of(counts[Status.STALLED], total, "stalled"),
        f"On hold: {facts.hold.rstrip('.')}." if facts.hold else "",
        _staged(facts.staged),
        # What waits for a rollout and stands in the way of nothing else is counted as waiting, too.
        _waiting(max(0, counts[Status.WAITING] - facts.staged), total, unbuilt=facts.unbuilt),
    ]
    whole = " ".join(each for each in told if each)
    if whole or total == 0:
        return whole or "It has no resources yet."
    return "Its only resource is published." if total == 1 else f"All {total} resources are published."


def _losses(count: int) -> str:
    if not count:
        return ""
    return f"{count} loss{'es' if count > 1 else ''} {_is(count)} open: clients do not have what they had."


def _unnamed(count: int) -> str:
    if not count:
        return ""
    return (
        f"Clients refuse a response, and nobody knows for which resource: {count} incident{'s' if count > 1 else ''}."
    )


def _staged(count: int) -> str:
    return (
        f"{count} name{'s' if count > 1 else ''} {_is(count)} on the way to all clients by a rollout." if count else ""
    )


def _waiting(count: int, total: int, *, unbuilt: bool) -> str:
    if count:
        return f"{_share(count, total)} {'wait' if count > 1 else 'waits'} for the next build."
    return "What was written last waits for the next build." if unbuilt else ""


def _of(count: int, total: int, what: str) -> str:
    return f"{_share(count, total)} {_is(count)} {what}." if count else ""


def _share(count: int, total: int) -> str:
    return f"{count} of {total} resource{'s' if total > 1 else ''}"


def _is(count: int) -> str:
    return "are" if count > 1 else "is"
