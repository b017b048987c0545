"""Taking back one change: which write does it, and what a change keeps so that it can be. Pure.

What a change of resources or access did is read from its revisions and access edits; of the others it keeps in
`Change.undo` what it found and what it left.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from controlplane.common.errors import Conflict
from xdscore.findings import Finding, Severity

OwnerMoved = tuple[str, str, str, str]
"""A resource whose owner a change moved: (type word, name, owner before, owner after)."""


@dataclass(frozen=True, slots=True)
class Undoes:
    """The change that a write takes back: its public id, and the reason for taking it back."""

    change: str
    reason: str

    @property
    def message(self) -> str:
        """The message of the change that does the taking back, for lists of changes."""
        return f"take back change {self.change[:8]}: {self.reason}"[:1000]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of an environment's row that a change wrote, with their values `before` and `after` it."""

    before: Mapping[str, object]
    after: Mapping[str, object]

    def as_json(self) -> dict[str, object]:
        """The columns as the JSON object that `Change.undo` stores."""
        return {"columns": {"before": dict(self.before), "after": dict(self.after)}}


@dataclass(frozen=True, slots=True)
class QuarantineMoved:
    """A revision that a change put into quarantine (`opened`) or released."""

    type: str
    name: str
    revision: int
    opened: bool

    @property
    def subject(self) -> str:
        """The revision in words, such as "r3 of the cluster 'pay'"."""
        return f"r{self.revision} of the {self.type} '{self.name}'"


def quarantines_as_json(moved: Sequence[QuarantineMoved]) -> dict[str, object]:
    """Moves of revisions into or out of quarantine, as the JSON object that `Change.undo` stores."""
    return {"quarantines": [asdict(each) for each in moved]}


@dataclass(frozen=True, slots=True)
class GoesBack:
    """What a rollback or undo adds to a write of resources.

    `hold`: the reason for which the environment is on hold after the write; empty: none is set (decisions U5).
    `columns`: a hold to put back as `columns.before` has it, if it still is as `columns.after` has it.
    `to_generation`: of a rollback, the generation to go back to.
    `undoes`: of an undo, the change that is taken back.
    """

    hold: str = ""
    columns: Columns | None = None
    to_generation: int | None = None
    undoes: Undoes | None = None


GOES_ON: Final = GoesBack()
"""A write that takes nothing back."""

# What a change that made an environment keeps: it cannot be taken back, and says so in words of its own.
CREATED: Mapping[str, object] = {"created": True}


WROTE_BOTH: Final[Mapping[str, object]] = {"access": True}
"""What a change keeps that wrote rules or groups beside resources: its access edits are taken back with these."""


def wrote_both(undo: Mapping[str, object] | None) -> bool:
    """Whether `Change.undo` says that the change wrote rules or groups beside resources."""
    return bool((undo or {}).get("access"))


def owners_as_json(owners: Iterable[OwnerMoved]) -> dict[str, object]:
    """The changes of owners as the JSON object that `Change.undo` stores; an empty object where there are none."""
    kept = [list(each) for each in owners]
    return {"owners": kept} if kept else {}


def owners_of(undo: Mapping[str, object] | None) -> tuple[OwnerMoved, ...]:
    """The changes of owners that `Change.undo` holds; empty where it holds none."""
    kept = (undo or {}).get("owners", [])
    return tuple((word, name, before, after) for word, name, before, after in kept)  # type: ignore[attr-defined]  # as_json


def columns_of(undo: Mapping[str, object] | None) -> Columns | None:
    """The columns of an environment that `Change.undo` holds; None where it holds none."""
    kept = (undo or {}).get("columns")
    return Columns(kept["before"], kept["after"]) if isinstance(kept, dict) else None


def quarantines_of(undo: Mapping[str, object] | None) -> tuple[QuarantineMoved, ...]:
    """The moves of revisions into quarantine, or all out of it, that `Change.undo` holds; empty where it holds none.
    Versions that moved one at a time wrote it by itself.
    """
    held = undo or {}
    kept = held.get("quarantines", [held["quarantine"]] if "quarantine" in held else [])
    return tuple(QuarantineMoved(**each) for each in kept)  # type: ignore[attr-defined]  # quarantines_as_json


@dataclass(frozen=True, slots=True)
class WrittenResource:
    """One resource that a change wrote.

    `word`, `name`: its type and name.
    `before`: the number of the revision before the change; 0 where there was no resource.
    `deleted`: the change deleted the resource.
    `now`: the number of the newest revision.
    `stands`: the resource still is as the change left it, whoever wrote it last.
    `author`, `change`: who wrote the newest revision, and in which change.
    """

    word: str
    name: str
    before: int
    deleted: bool
    now: int
    stands: bool
    author: str
    change: str

    @property
    def way_back(self) -> str:
        """What undoing the change does to the resource, as the end of a sentence."""
        if not self.before:
            return "is deleted"
        return f"is there again, as r{self.before} was" if self.deleted else f"becomes what r{self.before} was"


@dataclass(frozen=True, slots=True)
class Way:
    """Whether and how a change can be undone: `steps` are sentences that say what undoing does; `obstacles`, where
    there are any, are all reasons why it cannot be undone. `since`: the ids of later changes that stand in the way.
    """

    steps: tuple[str, ...] = ()
    obstacles: tuple[Finding, ...] = ()
    since: tuple[str, ...] = ()

    def beside(self, other: "Way") -> "Way":
        """How a change can be undone that is undone in both of these ways at once."""
        since = tuple(dict.fromkeys((*self.since, *other.since)))
        return Way((*self.steps, *other.steps), (*self.obstacles, *other.obstacles), since)

    def go(self, change: str) -> None:
        """Raise Conflict with all obstacles; return where there is none. `change`: the public id of the change to
        undo.
        """
        if self.obstacles:
            raise Conflict(
                f"Change {change[:8]} cannot be taken back: what it wrote is not as it left it, or is in use. "
                "Nothing was changed.",
                findings=self.obstacles,
            )


def resources_way(written: Sequence[WrittenResource]) -> Way:
    """How a change of resources can be undone: each resource becomes what it was before the change. `written`: all
    resources that the change wrote.
    """
    return Way(
        tuple(f"The {each.word} '{each.name}' {each.way_back}." for each in written),
        tuple(
            obstacle(
                f"The {each.word} '{each.name}' was written again since: r{each.now} by {each.author} in change "
                f"{each.change[:8]}.",
                hint="Take that change back first, or restore the revision you want in the resource's history.",
                word=each.word,
                name=each.name,
            )
            for each in written
            if not each.stands
        ),
        tuple(dict.fromkeys(each.change for each in written if not each.stands)),
    )


def columns_way(columns: Columns, now: Mapping[str, object], changed_by: Mapping[str, tuple[str, str]]) -> Way:
    """How a change of an environment's settings can be undone. `now`: the values of the columns now; `changed_by`: for
    each column written since, the author and id of the last change that did.
    """
    steps = tuple(_restored(column, value) for column, value in columns.before.items())
    obstacles, since = [], []
    for column, value in columns.after.items():
        if now.get(column) == value:
            continue
        author, change = changed_by.get(column, ("", ""))
        by = f": by {author} in change {change[:8]}" if change else ""
        since += [change] if change else []
        obstacles.append(
            obstacle(
                f"{_setting(column)} was changed again since{by}.",
                hint="Take that change back first, or set the policy you want on the environment's page.",
            )
        )
    return Way(steps, tuple(obstacles), tuple(dict.fromkeys(since)))


def obstacle(detail: str, *, hint: str = "", word: str = "", name: str = "") -> Finding:
    """A finding that says why a change cannot be undone. `word`, `name`: the type and name of the resource it is
    about.
    """
    return Finding(
        code=Conflict.code, severity=Severity.ERROR, detail=detail, hint=hint, resource_type=word, resource_name=name
    )


def _setting(column: str) -> str:
    return "The hold" if column == "hold_reason" else f"The setting '{column.replace('_', ' ')}'"


def _restored(column: str, value: object) -> str:
    if column == "hold_reason":
        return f"The environment is on hold again: {value}" if value else "The hold is released."
    if isinstance(value, bool):
        return f"{_setting(column)} is turned {'on' if value else 'off'} again."
    return f"{_setting(column)} becomes {value if isinstance(value, str | int) else 'what it was'} again."
