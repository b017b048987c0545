"""Answers how each of a page of resources stands, which resources stand so and how many, and how environments and
changes stand that hold them. Values only, never rows.

Nothing of it is kept: it is read from the catalogue, the newest build and the open incidents each time, in a number of
queries that does not grow with the page.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from django.db.models import BooleanField, Count, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet

from controlplane.builder.selectors import ChangeProgress, HeldBackName, covered_at, held_names, held_rows
from controlplane.catalog.choices import StagedState
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.selectors import EnvironmentState
from controlplane.catalog.standing import (
    HeadRow,
    Key,
    QuarantineRow,
    heads_of,
    in_quarantine,
    on_their_way,
    revisions_unbuilt,
    rows_named_like,
)
from controlplane.incidents.refusals import (
    NO_REFUSALS,
    NOTHING_OPEN,
    OpenRefusal,
    Refusals,
    incidents_open_named,
    open_counts,
    refusals_of,
)
from controlplane.incidents.settling import Delivery
from controlplane.status.changes import ChangeFacts, Outcome, Progress, change_status
from controlplane.status.derivation import status_of, word_of
from controlplane.status.environments import EnvironmentFacts, EnvironmentStatus, environment_status
from controlplane.status.values import Facts, HeldBack, Marks, OnItsWay, Quarantine, Refusal, ResourceStatus, Status


@dataclass(frozen=True, slots=True)
class Standing:
    """The status of a resource. `held`: why the newest build does not serve the resource as written, with findings;
    None where it does.
    """

    status: ResourceStatus
    held: HeldBackName | None


def standings_of(*, environment_key: str, keys: Collection[Key]) -> Mapping[Key, Standing]:
    """The status of each of these resources, by (type word, name); those that do not exist are left out. At most seven
    queries.
    """
    heads = heads_of(environment_key=environment_key, keys=keys)
    held = held_names(environment_key=environment_key, keys=heads.keys())
    covered = covered_at(environment_key=environment_key, generations={head.generation for head in heads.values()})
    versions = {key: head.version for key, head in heads.items()}
    refusals = refusals_of(environment_key=environment_key, versions=versions)
    return {
        key: Standing(
            status_of(_facts(head, covered.get(head.generation), held.get(key), refusals.get(key, NO_REFUSALS))),
            held.get(key),
        )
        for key, head in heads.items()
    }


def with_status(rows: QuerySet[Resource], *, environment_key: str, status: Status) -> QuerySet[Resource]:
    """The rows among `rows`, which are of one environment, of resources with this status. The rule is that of
    `derivation.status_of`, as a database condition.

    The database collects what is in trouble, which is little, and looks each row up there; so the cost does not grow
    with the number of sound resources beyond that of reading them.
    """
    return rows.filter(_where(environment_key)[status])


def status_counts(*, environment_keys: Collection[str]) -> Mapping[str, Mapping[Status, int]]:
    """The number of resources with each status, by environment key. Two queries: one counts all resources, the other
    reads those that may be in trouble; the rest counts as published.
    """
    rows = Resource.objects.filter(environment__key__in=list(environment_keys), deleted=False).order_by()
    everything = dict(rows.values_list("environment__key").annotate(count=Count("pk")))
    counts = {key: Counter({Status.PUBLISHED: everything.get(key, 0)}) for key in environment_keys}
    troubled = _marked(rows.filter(pk__in=_troubled(environment_keys)))
    for key, *marks, count in troubled.values_list("environment__key", *_MARKS).annotate(count=Count("pk")):
        counts[key][Status.PUBLISHED] -= count
        counts[key][word_of(Marks(*marks))] += count
    return counts


def statuses_in_trouble(*, environment_key: str) -> Mapping[Key, Status]:
    """The status of each resource of an environment that does not stand as "published", by (type word, name). One
    query, which costs what is in trouble and not what is sound.
    """
    rows = Resource.objects.filter(environment__key=environment_key, deleted=False).order_by()
    troubled = _marked(rows.filter(pk__in=_troubled([environment_key])))
    found = (
        (word, name, word_of(Marks(*marks))) for word, name, *marks in troubled.values_list("type", "name", *_MARKS)
    )
    return {(word, name): status for word, name, status in found if status is not Status.PUBLISHED}


def statuses_named(*, names: Collection[tuple[str, Key]]) -> Mapping[tuple[str, Key], Status]:
    """The status of each of these resources, by (environment key, (type word, name)); those that do not exist are left
    out. One query, for lists that show only the word.
    """
    rows = Resource.objects.filter(
        environment__key__in={environment for environment, _ in names},
        deleted=False,
        type__in={word for _, (word, _) in names},
        name__in={name for _, (_, name) in names},
    )
    found = _marked(rows).values_list("environment__key", "type", "name", *_MARKS)
    return {
        (key, (word, name)): word_of(Marks(*marks)) for key, word, name, *marks in found if (key, (word, name)) in names
    }


def statuses_written(*, environment_key: str, generations: Collection[int]) -> Mapping[int, frozenset[Status]]:
    """The statuses of the resources that each change wrote, by the generation of the change. Resources that were
    written again since are left out. One query.
    """
    rows = Resource.objects.filter(
        environment__key=environment_key, deleted=False, head__change__generation__in=list(generations)
    )
    found: dict[int, set[Status]] = {}
    told = _marked(rows.order_by()).values_list("head__change__generation", *_MARKS).distinct()
    for generation, *marks in told:
        found.setdefault(generation, set()).add(word_of(Marks(*marks)))
    return {generation: frozenset(statuses) for generation, statuses in found.items()}


def environment_statuses(*, environments: Collection[EnvironmentState]) -> Mapping[str, EnvironmentStatus]:
    """The status of each of these environments, by key. Four queries, whatever the environments hold."""
    keys = [each.key for each in environments]
    if not keys:
        return {}
    counts, incidents = status_counts(environment_keys=keys), open_counts(environment_keys=keys)
    rows = on_their_way().filter(resource__environment__key__in=keys).values_list("resource__environment__key")
    staged = dict(rows.annotate(count=Count("pk")))
    return {
        each.key: environment_status(
            EnvironmentFacts(
                counts=counts[each.key],
                losses=open_here.losses,
                unnamed=open_here.unnamed,
                hold=each.policy.hold,
                unbuilt=each.generation > each.built_generation,
                staged=staged.get(each.key, 0),
                unattended=open_here.unattended,
            )
        )
        for each in environments
        for open_here in [incidents.get(each.key, NOTHING_OPEN)]
    }


def progress_of(progress: ChangeProgress, delivery: Delivery) -> Progress:
    """How far a change has come. `progress`: with its build; `delivery`: with the clients, which matters once it is
    published.
    """
    return Progress.SETTLED if delivery.settled else Progress(progress.state.value)


def change_statuses(
    *,
    environment_key: str,
    changes: Mapping[Change, Progress],
    refused: Mapping[str, int],
    lost: Mapping[str, int],
    undone: Collection[int],
) -> Mapping[str, Outcome | Progress]:
    """The status of each of these changes of one environment, by the change's public id. One query.

    `changes`: the changes, each with how far it has come.
    `refused`, `lost`: how many clients refuse something of each change, or lost something by it (`refused_and_lost`).
    `undone`: the generations of the changes that were taken back (`undone_by`).
    """
    written = statuses_written(environment_key=environment_key, generations=[each.generation for each in changes])
    return {
        str(each.public_id): change_status(
            ChangeFacts(
                progress,
                written.get(each.generation, frozenset()),
                lost=str(each.public_id) in lost,
                refused=refused.get(str(each.public_id), 0) > 0,
                undone=each.generation in undone,
            )
        )
        for each, progress in changes.items()
    }


def _where(environment_key: str) -> Mapping[Status, Q]:
    """For each status, the database condition that rows of the environment's resources with that status meet. Each row
    meets exactly one.
    """
    keys = [environment_key]
    quarantined = Q(head__in=in_quarantine().values("revision"))
    unbuilt = Q(head__in=revisions_unbuilt(environment_keys=keys).values("pk"))
    refused = Q(pk__in=rows_named_like(incidents_open_named(environment_keys=keys), version="version"))
    held, rejected = _held(keys), _held(keys, rejected=True)
    staged = Q(pk__in=on_their_way().values("pk"))
    out_of_service = quarantined & rejected & ~unbuilt
    return {
        Status.QUARANTINED: out_of_service & _held(keys, rejected=True, served=True),
        Status.WITHHELD: out_of_service & _held(keys, rejected=True, served=False),
        Status.REFUSED: refused & ~out_of_service,
        Status.WAITING: ~refused
        & (unbuilt | (quarantined & ~rejected) | (rejected & ~quarantined) | (staged & ~quarantined & ~held)),
        Status.STALLED: ~refused & ~unbuilt & ~quarantined & _held(keys, rejected=False),
        Status.PUBLISHED: ~refused & ~unbuilt & ~quarantined & ~held & ~staged,
    }


def _held(environment_keys: Collection[str], *, rejected: bool | None = None, served: bool | None = None) -> Q:
    return Q(pk__in=rows_named_like(held_rows(environment_keys=environment_keys, rejected=rejected, served=served)))


def _troubled(environment_keys: Collection[str]) -> QuerySet[Any]:
    """The ids of all resources whose status may be another than "published", and of few others. Queries begin with
    these, so that they need not look at every resource.
    """
    keys = environment_keys
    return (
        revisions_unbuilt(environment_keys=keys)
        .values_list("resource")
        .union(
            in_quarantine().values_list("revision__resource"),
            on_their_way().values_list("pk"),
            rows_named_like(incidents_open_named(environment_keys=keys)),
            rows_named_like(held_rows(environment_keys=keys)),
            all=True,
        )
    )


_MARKS: Final = tuple(field.name for field in fields(Marks))


def _marked(rows: QuerySet[Resource]) -> QuerySet[Resource]:
    """The rows of these resources with each field of `Marks` as a column more."""
    same = {"environment": OuterRef("environment"), "type": OuterRef("type"), "name": OuterRef("name")}
    refusing = incidents_open_named().filter(**same, version=OuterRef("head__version"))
    held, rejected = held_rows().filter(**same), held_rows(rejected=True).filter(**same)
    unbuilt = Q(head__change__generation__gt=F("environment__built_generation"))
    return rows.annotate(
        unbuilt=ExpressionWrapper(unbuilt, output_field=BooleanField()),
        quarantined=Exists(in_quarantine().filter(revision=OuterRef("head"))),
        held=Exists(held),
        rejected=Exists(rejected),
        served=Exists(rejected.filter(served=True)),
        refused=Exists(refusing),
        on_its_way=Exists(on_their_way().filter(pk=OuterRef("pk"))),
    )


def _facts(head: HeadRow, covered: datetime | None, held: HeldBackName | None, refusals: Refusals) -> Facts:
    """The facts about a newest revision. `covered`: when the first build that covered it ended; None where that record
    is deleted, and then the time when the revision was written is taken, which was seconds earlier.
    """
    quarantine = head.quarantine
    return Facts(
        revision=head.revision,
        written_at=head.written_at,
        covered_at=(covered or head.written_at) if head.covered else None,
        acknowledged_at=head.acknowledged_at,
        fallback=head.stable or head.fallback,
        quarantine=_quarantine(quarantine, held) if quarantine is not None and quarantine.released_at is None else None,
        released_at=quarantine.released_at if quarantine is not None else None,
        held=HeldBack(held.reason, held.served, held.rejected, held.since or head.written_at) if held else None,
        refusal=_refusal(refusals.current),
        earlier=_refusal(refusals.earlier),
        suspicion=_refusal(refusals.suspicion),
        staged=_on_its_way(head),
    )


def _on_its_way(head: HeadRow) -> OnItsWay | None:
    if head.staged in {None, StagedState.STOPPED}:
        return None
    return OnItsWay(head.staged is StagedState.CANDIDATE, head.stable)


def _quarantine(row: QuarantineRow, held: HeldBackName | None) -> Quarantine:
    """The quarantine of a newest revision. `held`: why the name is held back, which tells the kinds of clients from
    which alone it is withheld; None where it is not held back.
    """
    return Quarantine(row.reason, row.opened_at, withheld_from=held.kinds if held is not None else ())


def _refusal(found: OpenRefusal | None) -> Refusal | None:
    if found is None:
        return None
    return Refusal(found.incident, found.clients, found.sent, found.revision, found.first_at)
