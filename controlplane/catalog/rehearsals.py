"""Answers what is rehearsed: the open rehearsal of an environment, and what it has of its names (rollouts.md
"Rehearsal"). Reads only; `services.rehearsing` opens and ends rehearsals.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from django.db import models
from django.db.models.functions import Now

from controlplane.catalog.heads import Head
from controlplane.catalog.models import Rehearsal, RehearsedName
from controlplane.database.aliases import READER
from xdscore.findings import Finding
from xdscore.sides import RolloutTable
from xdscore.snapshot import Content, EntryKey

OVER: Final = models.Q(ends_at__lte=Now())
"""Of a rehearsal: its deadline has passed, by the clock of the database."""
# Beyond the row id of every revision: what is rehearsed counts as written last.
_AFTER_ALL: Final = 2**62


@dataclass(frozen=True, slots=True)
class RehearsedView:
    """What a rehearsal has of one name. `address`: the hash of the content; empty where the name is deleted. `version`:
    on the wire. `needs`: the resources that the content refers to. `held`: why nobody can be sent it; empty where
    somebody can.
    """

    key: EntryKey
    address: str
    version: str
    needs: tuple[EntryKey, ...]
    held: str

    @property
    def deleted(self) -> bool:
        """Whether the rehearsal deletes the name."""
        return not self.address


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a write of what is rehearsed would be told: its `findings`, those about route cases last, and how many
    blocking route cases it would break.
    """

    findings: tuple[Finding, ...] = ()
    broken: int = 0


@dataclass(frozen=True, slots=True)
class OpenRehearsal:
    """A rehearsal of an environment, as a build sees it. `over`: its deadline has passed."""

    id: str
    table: RolloutTable
    heads: Mapping[EntryKey, Head]
    over: bool


def any_rehearsal(environment: models.OuterRef) -> models.Exists:
    """The condition that a rehearsal is open in an environment."""
    return models.Exists(Rehearsal.objects.filter(environment=environment, closed_at=None))


def rehearsal_read(*, environment_id: int) -> OpenRehearsal | None:
    """The open rehearsal of an environment, read from the alias READER; None where none is open."""
    rows = Rehearsal.objects.using(READER).filter(environment_id=environment_id, closed_at=None)
    row = rows.annotate(over=models.Case(models.When(OVER, then=True), default=False)).first()
    if row is None:
        return None
    names = RehearsedName.objects.using(READER).filter(rehearsal=row).order_by("pk")
    table = RolloutTable.from_json(row.table)
    return OpenRehearsal(str(row.public_id), table, _heads(names), row.over)


def rehearsal_is_open(*, environment_key: str) -> bool:
    """Whether a rehearsal is open in an environment."""
    return Rehearsal.objects.filter(environment__key=environment_key, closed_at=None).exists()


def rehearsal_open_id(*, environment_key: str) -> str:
    """The public id of the open rehearsal of an environment; empty where none is open."""
    rows = Rehearsal.objects.filter(environment__key=environment_key, closed_at=None)
    found = rows.values_list("public_id", flat=True).first()
    return str(found) if found is not None else ""


def rehearsals_overdue() -> tuple[int, ...]:
    """The row ids of the environments with a rehearsal that is open beyond its deadline. One query."""
    return tuple(Rehearsal.objects.filter(OVER, closed_at=None).order_by("pk").values_list("environment", flat=True))


def rehearsed_names(*, rehearsal: str) -> tuple[RehearsedView, ...]:
    """What the rehearsal with this public id has of each of its names, by type and name."""
    rows = RehearsedName.objects.filter(rehearsal__public_id=rehearsal).order_by("type", "name")
    return tuple(
        RehearsedView(
            (row.type, row.name),
            row.blob_id or "",
            row.version,
            tuple((word, name) for word, name in row.needs),
            row.held,
        )
        for row in rows
    )


def _heads(rows: Iterable[RehearsedName]) -> Mapping[EntryKey, Head]:
    return {(row.type, row.name): _head(row, _AFTER_ALL + number) for number, row in enumerate(rows)}


def _head(row: RehearsedName, revision: int) -> Head:
    content = None
    if row.blob_id is not None:
        content = Content(bytes.fromhex(row.blob_id), row.version, row.size, row.eds_name)
    return Head(
        key=(row.type, row.name),
        content=content,
        revision=revision,
        references=tuple((word, name) for word, name in row.needs),
        claims=tuple(row.claims.split("\n")) if row.claims else (),
    )
