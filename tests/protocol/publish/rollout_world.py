"""What there is in the miniature of rollouts that `rollout_model` walks through, and the mistakes it can be given."""

from dataclasses import dataclass
from enum import Flag, auto
from typing import Final

STEPS: Final = 2
OPEN: Final = ("running", "paused")
GOOD, BAD = "g", "b"
"""Which clients take, and which they refuse: the last letter of a content."""


class Flaws(Flag):
    """Mistakes that the real code does not make."""

    NONE = 0
    OPENS_BESIDE = auto()  # who opens a rollout does not look whether one is open
    NO_FENCE = auto()  # a worker acts upon what it saw, whatever is there now
    NAMES_UNSEEN = auto()  # only the rollout is looked at again, not what it holds
    NUMBERS_ALONE = auto()  # what it holds is told by numbers, which another history has, too
    LINEAGE_UNSEEN = auto()  # a worker that saw it before the restore was noticed does not look at that again
    RESTORE_GOES_ON = auto()  # a rollout goes on in a database that was put back
    PAUSES_NOTHING = auto()  # a rollout with nothing left is paused, too, in a database that was put back
    ROLLBACK_STAGED = auto()  # a rollback waits for a rollout like any write
    ADVANCE_WITHOUT = auto()  # a person advances what has nothing left since a rollback
    OFF_FORGETS = auto()  # what waits is left when rollouts are switched off
    TAKES_BACK_BY_HALVES = auto()  # the end of the side and the quarantine are two transactions


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A rollout in the database. `noted`: the content that its evidence is about. `evidence`: the moment since which
    answers are waited for; empty: none yet. `rolled_back`: whether the environment was rolled back while it was open;
    only the rules look at that.
    """

    id: str
    lineage: int
    noted: str
    generation: int
    state: str = "running"
    step: int = 0
    evidence: str = ""
    last_advance: int = 0
    rolled_back: bool = False

    @property
    def open(self) -> bool:
        """Whether it is not over."""
        return self.state in OPEN


@dataclass(frozen=True, slots=True, order=True)
class Published:
    """The newest snapshot. `candidate`: what the cohort is served; `table`: the rollout's id and step."""

    lineage: int
    epoch: int
    stable: str
    candidate: str
    table: tuple[str, int]


NO_TABLE: Final = ("", -1)


@dataclass(frozen=True, slots=True)
class Database:
    """What is committed.

    `number`, `head`: of the newest revision, and its content. `stable`: the content that the stable side is to have.
    `state`: how far the head has come; empty: everybody is to have it. `table`: of the candidate side.
    `back_at`: the generation of the last rollback. `promoted`: all contents that everybody was ever to have.
    `mark`: a stroke in a history that began with a restore. Contents, ids and moments of another history are others,
    though their numbers may be the same.
    """

    mode: bool = True
    generation: int = 1
    built: int = 0
    lineage: int = 0
    number: int = 1
    head: str = "1g"
    stable: str = "1g"
    state: str = ""
    table: tuple[str, int] = NO_TABLE
    back_at: int = 0
    rows: tuple[Row, ...] = ()
    promoted: frozenset[str] = frozenset({"1g"})
    published: Published | None = None

    mark: str = ""

    @property
    def open(self) -> Row | None:
        """The open rollout, the first one where a mistake made two."""
        return next((row for row in self.rows if row.open), None)


@dataclass(frozen=True, slots=True, order=True)
class Seen:
    """What a worker saw, and what follows from it."""

    plan: str
    mode: bool
    lineage: int
    row: Row | None
    table: tuple[str, int]
    name: tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class World:
    """Everything. `acts` and `backups` are what people may still do; `backup` is what a restore would put back; `held`
    is the snapshot that an ADS process has.
    """

    database: Database
    workers: tuple[Seen | None, ...]
    acts: int
    backups: int = 0
    backup: Database | None = None
    held: Published | None = None


def world(*, workers: int, acts: int, backups: int = 0) -> World:
    """The first moment: rollouts are on, and everybody has what there is."""
    return World(Database(), (None,) * workers, acts, backups)


def put_back(*, workers: int, acts: int) -> World:
    """The moment after a restore: a rollout is open that had ended, and an ADS process has a newer snapshot."""
    first = ("r1", 0)
    row = Row("r1", lineage=0, noted="2g", generation=3, evidence="now")
    published = Published(lineage=0, epoch=2, stable="1g", candidate="2g", table=first)
    database = Database(
        generation=3, built=3, number=2, head="2g", state="candidate", table=first, rows=(row,), published=published,
        mark="'",
    )  # fmt: skip
    held = Published(lineage=0, epoch=3, stable="2g", candidate="2g", table=NO_TABLE)
    return World(database, (None,) * workers, acts, held=held)
