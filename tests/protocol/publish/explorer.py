"""Goes through every state that a model can reach, and looks at each step (reliability P1, P2, P5, P11)."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from tests.protocol.publish.model import Flaws, Replica, Step, World, steps


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


def explore(first: World, flaws: Flaws = Flaws.NONE) -> Explored:
    """Breadth first, so that what is found is found by the shortest way."""
    came: dict[World, tuple[World, str] | None] = {first: None}
    waiting = deque([first])
    settling: dict[World, list[World]] = {}
    moves = 0
    while waiting:
        world = waiting.popleft()
        calm = settling[world] = []
        for step in steps(world, flaws):
            moves += 1
            to = _ordered(step.to)
            if (rule := _broken(world, step)) is not None:
                return Explored(len(came), moves, Finding(rule, (*_way(came, world), step.name)))
            if not step.faulty:
                calm.append(to)
            if to not in came:
                came[to] = (world, step.name)
                waiting.append(to)
    stuck = _never_settles(settling)
    finding = Finding("P11: converges once nothing goes wrong", (*_way(came, stuck),)) if stuck is not None else None
    return Explored(len(came), moves, finding)


def _broken(world: World, step: Step) -> str | None:
    database = step.to.database
    rows = database.rows
    if any(later.epoch != row.epoch + 1 for row, later in pairwise(rows)):
        return "P2: epochs follow each other"
    if any(later.generation <= row.generation for row, later in pairwise(rows)):
        return "P2: a later epoch is of a later generation"
    if any(row.letter != database.letter(row.generation) for row in rows):
        return "P3: a snapshot holds what was written at its generation"
    if any(row.letter not in database.chunks for row in rows):
        return "P3: what a snapshot needs is stored with it"
    for before, after in zip(world.replicas, step.to.replicas, strict=True):
        if (
            before.served
            and after.served
            and before.served[0] == after.served[0]
            and after.served[1] < before.served[1]
        ):
            return "P5: a replica does not go back within a lineage"
    return None


def _never_settles(settling: Mapping[World, list[World]]) -> World | None:
    """A state from which calm steps go round in circles, or end where replicas do not serve what is written."""
    left = {world: len(set(after)) for world, after in settling.items()}
    before: dict[World, list[World]] = {world: [] for world in settling}
    for world, after in settling.items():
        for to in set(after):
            before[to].append(world)
    ended = deque(world for world, count in left.items() if count == 0)
    for world in ended:
        if not _converged(world):
            return world
    while ended:
        for earlier in before[ended.popleft()]:
            left[earlier] -= 1
            if left[earlier] == 0:
                ended.append(earlier)
    return next((world for world, count in left.items() if count), None)


def _converged(world: World) -> bool:
    database = world.database
    served = {replica.served for replica in world.replicas}
    head = database.head
    if head is None or database.built != database.generation:
        return False
    return head.letter == database.letter(database.generation) and served == {(head.lineage, head.epoch, head.letter)}


def _ordered(world: World) -> World:
    """Builders are alike, and so are replicas: which is which makes no other state."""
    builders, replicas = tuple(sorted(world.builders)), tuple(sorted(world.replicas, key=_key))
    return replace(world, builders=builders, replicas=replicas)


def _key(replica: Replica) -> tuple[tuple[int, int, str], ...]:
    nothing = (-1, -1, "")
    return (replica.served or nothing, replica.disk or nothing, replica.loading or nothing)


def _way(came: Mapping[World, tuple[World, str] | None], world: World) -> Iterator[str]:
    steps_back: list[str] = []
    while (last := came[world]) is not None:
        world, name = last
        steps_back.append(name)
    yield from reversed(steps_back)
