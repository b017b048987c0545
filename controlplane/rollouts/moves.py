"""What follows from a verdict: whom to ask besides, the next step, everybody, or back. Pure; `services` act.

The judge knows clients and answers, this knows steps and resources: what a rollout still holds, and what cannot do
without something that is taken back (rollouts.md R7).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from controlplane.catalog.rollout_settings import OnFailure
from controlplane.rollouts.facts import Ask, Verdict
from controlplane.rollouts.values import Key, Outcome


@dataclass(frozen=True, slots=True)
class Needs:
    """What the resources of a rollout need of each other.

    new: the names that the stable side has nothing of. deleted: those that the candidate side has nothing of.
    then: what the candidate content of each name refers to; now: what its stable content refers to. Only names of the
        rollout count.
    """

    new: frozenset[Key] = frozenset()
    deleted: frozenset[Key] = frozenset()
    then: Mapping[Key, Collection[Key]] = field(default_factory=dict)
    now: Mapping[Key, Collection[Key]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Position:
    """Where a rollout is: its step, from 0, of how many; what it still holds; what failing means."""

    step: int
    steps: int
    names: frozenset[Key]
    on_failure: OnFailure = OnFailure.REVERT
    needs: Needs = Needs()


@dataclass(frozen=True, slots=True)
class Stay:
    """Nothing is to be done now."""


@dataclass(frozen=True, slots=True)
class AskMore:
    """More clients are to be asked."""

    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """The next step begins."""


@dataclass(frozen=True, slots=True)
class Promote:
    """Everybody may have what the rollout still holds, and it is over."""


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Only a person can say how it goes on."""


@dataclass(frozen=True, slots=True)
class TakeBack:
    """What goes back: `names`. `over`: whether the rollout ends with that."""

    names: frozenset[Key]
    over: bool


Move = Stay | AskMore | Step | Promote | AskPerson | TakeBack


def move_of(verdict: Verdict, position: Position) -> Move:
    """What follows from a verdict for a rollout at this position."""
    match verdict.outcome:
        case Outcome.PASS:
            return Promote() if position.step + 1 >= position.steps else Step()
        case Outcome.FAIL:
            return _failed(verdict, position)
        case Outcome.INCONCLUSIVE:
            return AskPerson()
        case None:
            return AskMore(verdict.asks) if verdict.asks else Stay()


def _failed(verdict: Verdict, position: Position) -> TakeBack:
    blamed = verdict.blamed & position.names
    if position.on_failure is OnFailure.ABORT or not blamed or not verdict.blamed <= position.names:
        # Where nobody is blamed, or what is blamed follows from something that is not known, all is taken back (R7).
        return TakeBack(position.names, over=True)
    names = with_dependants(blamed, position.names, position.needs)
    return TakeBack(names, over=names == position.names)


def with_dependants(taken: frozenset[Key], names: frozenset[Key], needs: Needs) -> frozenset[Key]:
    """The names `taken` with those of `names` that cannot do without them: what refers to a name that will not be there
    any more, and the deletion of what a name that goes back needs again.
    """
    found = set(taken)
    while True:
        gone = found & needs.new
        wanted = {target for key in found for target in needs.now.get(key, ())}
        more = {key for key in names - found if not gone.isdisjoint(needs.then.get(key, ()))}
        more |= needs.deleted & wanted & names - found
        if not more:
            return frozenset(found)
        found |= more
