"""Goes through every state that a model can reach, and looks at each step (reliability P1, P2, P5, P11).

What a state is, what may happen next and what must hold, the model says: `model` has the publish protocol,
`rollout_model` has rollouts.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

_World = TypeVar("_World", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Step(Generic[_World]):
    """A step and where it leads. `faulty`: something went wrong, or somebody wrote; without such steps all settles."""

    name: str
    to: _World
    faulty: bool = False


@dataclass(frozen=True, slots=True)
class Model(Generic[_World]):
    """What is explored.

    steps: everything that may happen next in a world.
    broken: the rule that a step from a world breaks; None where it breaks none.
    converged: whether a world in which nothing happens any more is as it is to be.
    ordered: the world that stands for all that differ from it only by which of several alike is which.
    """

    steps: Callable[[_World], Iterator[Step[_World]]]
    broken: Callable[[_World, Step[_World]], str | None]
    converged: Callable[[_World], bool]
    ordered: Callable[[_World], _World]


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that does not hold, and the shortest way there."""

    rule: str
    way: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explored:
    """How far it went and what it found first."""

    states: int
    moves: int
    finding: Finding | None


def explore(first: _World, model: Model[_World]) -> Explored:
    """Breadth first, so that what is found is found by the shortest way."""
    came: dict[_World, tuple[_World, str] | None] = {first: None}
    waiting = deque([first])
    settling: dict[_World, list[_World]] = {}
    moves = 0
    while waiting:
        world = waiting.popleft()
        calm = settling[world] = []
        for step in model.steps(world):
            moves += 1
            to = model.ordered(step.to)
            if (rule := model.broken(world, step)) is not None:
                return Explored(len(came), moves, Finding(rule, (*_way(came, world), step.name)))
            if not step.faulty:
                calm.append(to)
            if to not in came:
                came[to] = (world, step.name)
                waiting.append(to)
    stuck = _never_settles(settling, model.converged)
    finding = Finding("P11: converges once nothing goes wrong", (*_way(came, stuck),)) if stuck is not None else None
    return Explored(len(came), moves, finding)


def _never_settles(settling: Mapping[_World, list[_World]], converged: Callable[[_World], bool]) -> _World | None:
    """A state from which calm steps go round in circles, or end where not everything is as it is to be."""
    left = {world: len(set(after)) for world, after in settling.items()}
    before: dict[_World, list[_World]] = {world: [] for world in settling}
    for world, after in settling.items():
        for to in set(after):
            before[to].append(world)
    ended = deque(world for world, count in left.items() if count == 0)
    for world in ended:
        if not converged(world):
            return world
    while ended:
        for earlier in before[ended.popleft()]:
            left[earlier] -= 1
            if left[earlier] == 0:
                ended.append(earlier)
    return next((world for world, count in left.items() if count), None)


def _way(came: Mapping[_World, tuple[_World, str] | None], world: _World) -> Iterator[str]:
    steps_back: list[str] = []
    while (last := came[world]) is not None:
        world, name = last
        steps_back.append(name)
    yield from reversed(steps_back)
