"""The publish protocol in miniature: two builders, two replicas, a database, and everything that can go wrong.

One environment. Its catalogue is one letter; a change writes another. What a step of a real process does in one
transaction, or to one reference, is one step here; between any two steps anything else may happen, a process may die,
and hints get lost: a replica's look is always possible and never certain, so hints need no place in the model.

The steps are those of `controlplane.builder.services.build`, `controlplane.snapshots.services.snapshot_publish`,
`controlplane.snapshots.retention.snapshots_prune`, `controlplane.snapshots.lineages.lineage_check` and
`adsserver.store.loader.Loader`. `Flaws` switches off what they rely on, one by one: a model that cannot fail proves
nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Flag, auto
from itertools import pairwise

from tests.protocol.publish.explorer import Model, Step

LETTERS = "AB"
KEPT = 1  # snapshots that are not forgotten
SAME = "="  # a generation that nothing was written at


class Flaws(Flag):
    """Mistakes that the real code does not make."""

    NONE = 0
    NO_FENCE = auto()  # a build publishes whatever was built meanwhile
    TORN_READ = auto()  # generation and content are read at two moments
    TWO_TRANSACTIONS = auto()  # the generation is marked as built before the snapshot is written
    PRUNE_BESIDE_PUBLISH = auto()  # chunks are forgotten without the publish lock
    GO_BACK = auto()  # a replica takes whatever it read, however old
    NO_LINEAGE = auto()  # nobody notices that the database went back
    NUMBERS_ALONE = auto()  # a build that read a lost history is not told from one that read this one


@dataclass(frozen=True, slots=True)
class Row:
    """A snapshot in the database."""

    lineage: int
    epoch: int
    generation: int
    letter: str


@dataclass(frozen=True, slots=True)
class Database:
    """What is committed. `history` has what was written at each generation: capitals before a restore, small letters
    after it, so that the same generation of another history is another change. `rows` are newest last; `chunks` are the
    letters whose bytes are stored.
    """

    history: str = "A"
    built: int = 0
    lineage: int = 0
    epoch: int = 0
    rows: tuple[Row, ...] = ()
    chunks: frozenset[str] = frozenset()

    @property
    def generation(self) -> int:
        """Counts what was written."""
        return len(self.history)

    def letter(self, generation: int) -> str:
        """What the catalogue said at a generation."""
        return self.history[:generation].rstrip(SAME)[-1].upper()

    def change(self, generation: int) -> str:
        """What was written at a generation; nothing at those that nobody wrote."""
        return self.history[generation - 1 : generation]

    @property
    def head(self) -> Row | None:
        """The newest snapshot of the lineage, as `snapshot_heads` finds it."""
        newest = (row for row in self.rows if (row.lineage, row.epoch) == (self.lineage, self.epoch))
        return next(newest, None)


@dataclass(frozen=True, slots=True, order=True)
class Builder:
    """A build under way: what it read, and, inside its transaction, which chunks it found stored."""

    at: str = "idle"
    generation: int = 0
    letter: str = ""
    change: str = ""
    lineage: int = 0
    found: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Replica:
    """What is served now, `(lineage, epoch, letter)`, what is on its disk, and the row that is being loaded."""

    served: tuple[int, int, str] | None = None
    disk: tuple[int, int, str] | None = None
    loading: tuple[int, int, str] | None = None


@dataclass(frozen=True, slots=True)
class World:
    """Everything. `writes` and `backups` are what people may still do; `backup` is what a restore would put back."""

    database: Database
    builders: tuple[Builder, ...]
    replicas: tuple[Replica, ...]
    writes: int
    backups: int
    backup: Database | None = None
    restored: bool = False

    @property
    def locked(self) -> bool:
        """Somebody is inside a transaction that publishes: the environment's row is theirs."""
        return any(builder.at == "locked" for builder in self.builders)


IDLE = Builder()


def world(*, builders: int, replicas: int, writes: int, backups: int = 0) -> World:
    """The first moment: something was written and nothing is built."""
    return World(Database(), (IDLE,) * builders, (Replica(),) * replicas, writes, backups)


def steps(now: World, flaws: Flaws) -> Iterator[Step[World]]:
    """Everything that may happen next."""
    yield from _people(now)
    for number, builder in enumerate(now.builders):
        yield from _build(now, number, builder, flaws)
    for number, replica in enumerate(now.replicas):
        yield from _load(now, number, replica, flaws)
    yield from _prune(now, flaws)


def _people(world: World) -> Iterator[Step[World]]:
    database = world.database
    if world.writes and not world.locked:
        for letter in LETTERS.lower() if world.restored else LETTERS:
            written = replace(database, history=database.history + letter)
            yield Step("write", replace(world, database=written, writes=world.writes - 1), faulty=True)
    if world.backups and not world.locked:
        yield Step("back up", replace(world, backup=database, backups=world.backups - 1), faulty=True)
    if world.backup is not None and world.backup != database:
        # Whatever was in a transaction has lost it.
        builders = tuple(IDLE if each.at == "locked" else each for each in world.builders)
        back = replace(world, database=world.backup, builders=builders, backup=None, restored=True)
        yield Step("restore", back, faulty=True)


def _build(world: World, number: int, builder: Builder, flaws: Flaws) -> Iterator[Step[World]]:
    database = world.database

    def put(changed: Builder, stored: Database = database) -> World:
        builders = tuple(changed if place == number else each for place, each in enumerate(world.builders))
        return replace(world, builders=builders, database=stored)

    if builder.at != "idle":
        yield Step("builder dies", put(IDLE), faulty=True)
    generation = database.generation
    match builder.at:
        case "idle" if generation > database.built:
            change, lineage = database.change(generation), database.lineage
            if Flaws.TORN_READ in flaws:
                yield Step("read generation", put(Builder("half", generation, "", change, lineage)))
            else:
                letter = database.letter(generation)
                yield Step("read", put(Builder("read", generation, letter, change, lineage)))
        case "half":
            yield Step("read letter", put(replace(builder, letter=database.letter(generation), at="read")))
        case "read" if not world.locked:
            yield Step("lock", put(replace(builder, at="locked", found=builder.letter in database.chunks)))
        case "locked" if _fenced(builder, database, flaws):
            yield Step("fenced", put(IDLE))
        case "locked":
            yield _publish(builder, database, put, flaws)
        case "marked":
            yield Step("write snapshot", put(IDLE, _published(builder, database)))


def _fenced(builder: Builder, database: Database, flaws: Flaws) -> bool:
    another = (builder.lineage, builder.change) != (database.lineage, database.change(builder.generation))
    if another and Flaws.NUMBERS_ALONE not in flaws:
        return True
    return builder.generation <= database.built and Flaws.NO_FENCE not in flaws


def _publish(
    builder: Builder, database: Database, put: Callable[[Builder, Database], World], flaws: Flaws
) -> Step[World]:
    head = database.head
    built = replace(database, built=builder.generation)
    if head is not None and head.letter == builder.letter:
        return Step("unchanged", put(IDLE, built))
    if Flaws.TWO_TRANSACTIONS in flaws:
        return Step("mark as built", put(replace(builder, at="marked"), built))
    return Step("publish", put(IDLE, _published(builder, built)))


def _published(builder: Builder, database: Database) -> Database:
    row = Row(database.lineage, database.epoch + 1, builder.generation, builder.letter)
    chunks = database.chunks if builder.found else database.chunks | {builder.letter}
    return replace(database, epoch=row.epoch, rows=(*database.rows, row), chunks=chunks)


def _load(world: World, number: int, replica: Replica, flaws: Flaws) -> Iterator[Step[World]]:
    database, head = world.database, world.database.head

    def put(changed: Replica, stored: Database = database) -> World:
        replicas = tuple(changed if place == number else each for place, each in enumerate(world.replicas))
        return replace(world, replicas=replicas, database=stored)

    if replica.served is not None or replica.loading is not None:
        yield Step("replica dies", put(Replica(disk=replica.disk)), faulty=True)
    if replica.served is None and replica.loading is None and replica.disk is not None:
        yield Step("serve from disk", put(replace(replica, served=replica.disk)), faulty=True)
    if replica.loading is not None:
        if replica.loading[2] in database.chunks:
            done = replace(replica, served=replica.loading, loading=None)
            yield Step("serve", put(done))
        else:
            yield Step("chunk is gone", put(replace(replica, loading=None)))
        return
    if replica.served is not None and replica.disk != replica.served:
        yield Step("keep on disk", put(replace(replica, disk=replica.served)))
    held = replica.served
    if held is not None and Flaws.NO_LINEAGE not in flaws and not world.locked and _lost(database, held):
        renewed = replace(database, lineage=database.lineage + 1, history=database.history + SAME)
        yield Step("renew lineage", put(replica, renewed))
    if head is not None:
        found = (head.lineage, head.epoch, head.letter)
        newer = held is None or found[0] != held[0] or found[1] > held[1]
        if newer or (Flaws.GO_BACK in flaws and found != held):
            yield Step("look", put(replace(replica, loading=found)))


def _lost(database: Database, held: tuple[int, int, str]) -> bool:
    lineage, epoch, letter = held
    if lineage != database.lineage:
        return False
    newest = max((row for row in database.rows if row.lineage == lineage), key=lambda row: row.epoch, default=None)
    return newest is None or newest.epoch < epoch or (newest.epoch == epoch and newest.letter != letter)


def _prune(world: World, flaws: Flaws) -> Iterator[Step[World]]:
    database = world.database
    if world.locked and Flaws.PRUNE_BESIDE_PUBLISH not in flaws:
        return
    kept = database.rows[-KEPT:]
    needed = frozenset(row.letter for row in kept)
    if kept != database.rows or database.chunks != needed:
        yield Step("prune", replace(world, database=replace(database, rows=kept, chunks=needed)), faulty=True)


def model(flaws: Flaws = Flaws.NONE) -> Model[World]:
    """The protocol with these mistakes, and the rules that it has to keep."""
    return Model(lambda world: steps(world, flaws), _broken, _converged, _ordered)


def _broken(world: World, step: Step[World]) -> str | None:
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
