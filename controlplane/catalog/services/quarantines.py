"""Takes one revision out of service, puts it back, and records which revisions clients have proven (decisions D1)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from django.db import models, transaction
from django.utils import timezone

from controlplane.accounts.principal import SYSTEM, Principal
from controlplane.catalog.choices import ChangeKind, QuarantineCause
from controlplane.catalog.guarding import NO_CONSENT, Consent, Prospect, quarantines_together
from controlplane.catalog.models import Environment, Quarantine, Resource, Revision, RevisionProof, StagedName
from controlplane.catalog.services.guarding import loss_accept
from controlplane.catalog.services.staged_rows import UNPROMOTED
from controlplane.catalog.services.staging import staged_stop, stopped_release
from controlplane.catalog.services.writing import change_start, environment_lock
from controlplane.catalog.undoing import QuarantineMoved, Undoes, quarantines_as_json
from controlplane.catalog.values import ChangeMade, ProvenContent
from controlplane.catalog.withholding import Withholding, marks_of, with_marks
from controlplane.common.errors import Conflict, NotFound
from controlplane.journal.services import audit_record, event_append
from xdscore.findings import Finding, Severity

NOBODY: Mapping[str, tuple[str, ...]] = MappingProxyType({})
# Of a quarantine: its revision is the newest, or what the stable side has while the newest is staged.
_CURRENT = models.Q(revision__resource__head=models.F("revision")) | models.Q(
    revision__resource__staged__stable=models.F("revision")
)
_BATCH = 500
_NAME_CHARS = 300


@dataclass(frozen=True, slots=True)
class Opening:
    """A revision to put into quarantine. `incident`: the public id of the one about it; empty without one.
    `refused_by`: by kind of client, the hashes (`client_mark`) of those that refused it.
    """

    word: str
    name: str
    revision: int
    incident: str = ""
    refused_by: Mapping[str, Iterable[str]] = field(default_factory=dict)


def quarantine_open(  # noqa: PLR0913 - what one row of the table says
    *,
    environment_key: str,
    word: str,
    name: str,
    revision: int,
    cause: QuarantineCause,
    reason: str,
    actor: Principal,
    incident: str = "",
    request_id: str = "",
    refused_by: Mapping[str, Iterable[str]] = NOBODY,
    consent: Consent = NO_CONSENT,
    undoes: Undoes | None = None,
) -> ChangeMade:
    """Put one revision into quarantine, as `quarantines_open` does several."""
    return quarantines_open(
        environment_key=environment_key,
        openings=(Opening(word, name, revision, incident, refused_by),),
        cause=cause,
        reason=reason,
        actor=actor,
        request_id=request_id,
        consent=consent,
        undoes=undoes,
    )


@transaction.atomic(durable=True)
def quarantines_open(
    *,
    environment_key: str,
    openings: Sequence[Opening],
    cause: QuarantineCause,
    reason: str,
    actor: Principal,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
    undoes: Undoes | None = None,
) -> ChangeMade:
    """Put these revisions into quarantine, by one change: the last proven one is served instead. Where there is none,
    nothing is served to the kinds of clients that refuse it or, if no client ever acknowledged it, to anybody. Of a
    revision that is staged, both sides have what the stable side has, until somebody releases it (rollouts.md R7).

    `undoes`: the change that this write takes back. For a revision in quarantine already, only those that refused it
    are added. Raises NotFound, Conflict with each of which a newer revision took its place meanwhile (on the stable
    side, where a newer one is staged), and LossRefused where connected clients would have nothing of it any more.
    """
    environment = environment_lock(key=environment_key)
    rows = [_revision(environment_key, each.word, each.name, each.revision) for each in openings]
    _current_check(rows)
    opened: list[tuple[Opening, Revision]] = []
    prospects: list[Prospect] = []
    for each, row in zip(openings, rows, strict=True):
        existing = Quarantine.objects.filter(revision=row, released_at=None).first()
        if existing is not None:
            _add_refusers(existing, row, environment, each.refused_by)
            continue
        _touch(row, environment)
        quarantine = Quarantine.objects.create(
            revision=row,
            cause=cause.value,
            incident=each.incident,
            reason=reason,
            opened_by=actor.name,
            refused_by=with_marks({}, each.refused_by),
        )
        _choose_fallback(row.resource)
        staged_stop(row, environment.generation + 1)  # that of the change, which comes next
        prospects.append(_prospect(quarantine, row, environment))
        opened.append((each, row))
    if not opened:
        return ChangeMade(environment_key, None, environment.generation)
    loss = loss_accept(quarantines_together(prospects), consent)
    moved = [QuarantineMoved(each.word, each.name, each.revision, opened=True) for each, _ in opened]
    change = change_start(
        environment=environment,
        kind=ChangeKind.QUARANTINE,
        actor=actor,
        message=f"quarantine of {_of(moved)}: {reason}"[:1000],
        undo=quarantines_as_json(moved),
        undoes=undoes,
        request_id=request_id,
        loss=loss,
    )
    for each, row in opened:
        audit_record(
            actor=actor,
            verb="quarantine.opened",
            subject=f"{each.word}/{each.name}",
            environment=environment_key,
            request_id=request_id,
            detail={"revision": each.revision, "cause": cause.value, "reason": reason, "incident": each.incident},
        )
        _told("quarantine.opened", environment_key, row, actor=actor, reason=reason, incident=each.incident)
    return ChangeMade(environment_key, change, change.generation, loss=loss)


def _current_check(rows: Sequence[Revision]) -> None:
    """Raise Conflict unless each revision is current, with a finding for each that is not."""
    passed = [row for row in rows if not _is_current(row)]
    if not passed:
        return
    said = [
        f"r{row.number} of the {row.resource.type} '{row.resource.name}' is not current any more: "
        f"r{row.resource.counter} is."
        for row in passed
    ]
    findings = tuple(
        Finding(Conflict.code, Severity.ERROR, detail).about(row.resource.type, row.resource.name)
        for detail, row in zip(said, passed, strict=True)
    )
    raise Conflict(f"{said[0]} Nothing changed.", findings=findings if len(rows) > 1 else ())


def _of(moved: Sequence[QuarantineMoved]) -> str:
    """What is moved into or out of quarantine, for the message of the change."""
    first = moved[0]
    return f"{first.type} '{first.name}' r{first.revision}" if len(moved) == 1 else f"{len(moved)} resources"


def _prospect(quarantine: Quarantine, row: Revision, environment: Environment) -> Prospect:
    """What clients could lose by this quarantine: the name, where no older revision can be served instead and some
    client acknowledged this one. A revision that no client acknowledged takes nothing from anybody, nor does one that
    the stable side does not have.
    """
    if StagedName.objects.filter(resource__head=row).exists():
        return Prospect(environment.key)
    stands_in = Resource.objects.filter(pk=row.resource_id, proven__isnull=False).exists()
    if stands_in or not RevisionProof.objects.filter(revision=row).exists():
        return Prospect(environment.key)
    refused = marks_of(quarantine.refused_by)
    return Prospect(
        environment.key,
        frozenset({(row.resource.type, row.resource.name)}),
        kinds=Withholding(refused, {}, acknowledged=True).withheld_from,
        refusers=frozenset(mark for marks in refused.values() for mark in marks),
    )


@transaction.atomic(durable=True)
def quarantine_refused(
    *,
    environment_key: str,
    word: str,
    name: str,
    revision: int,
    refused_by: Mapping[str, Iterable[str]],
    joining: Collection[str],
) -> bool:
    """Note that more clients refuse a revision in quarantine; returns whether that was news. Raises NotFound.

    `refused_by`: by kind of client, the hashes (`client_mark`) of those that refuse it. `joining`: the kinds that may
    be added to those that do not get it; another kind is only what a client says of itself, and one is not believed
    (N4).
    """
    environment = environment_lock(key=environment_key)
    row = _revision(environment_key, word, name, revision)
    quarantine = Quarantine.objects.filter(revision=row, released_at=None).first()
    if quarantine is None:
        return False
    known = {kind: marks for kind, marks in refused_by.items() if kind in joining or kind in quarantine.refused_by}
    return _add_refusers(quarantine, row, environment, known)


def _add_refusers(
    quarantine: Quarantine, row: Revision, environment: Environment, refused_by: Mapping[str, Iterable[str]]
) -> bool:
    before = marks_of(quarantine.refused_by)
    refused = with_marks(before, refused_by)
    if refused == before:
        return False
    quarantine.refused_by = refused
    quarantine.save(update_fields=["refused_by"])
    if row.resource.proven_id is None and not StagedName.objects.filter(resource__head=row).exists():
        # Otherwise an older revision is served to everybody, whoever refuses this one.
        what = f"{row.resource.type} '{row.resource.name}' r{row.number}"
        _rebuild(row, environment, f"quarantine of {what}: refused by {', '.join(sorted(refused))}")
    return True


@transaction.atomic(durable=True)
def quarantine_probed(*, environment_key: str, word: str, name: str, version: str, kind: str, mark: str) -> bool:
    """Note that a client that was let try content in quarantine acknowledged it; returns whether that was news.

    Clients of its `kind` get the content again, and once every kind that refused it has taken it, the quarantine ends.
    `mark`: the hash (`client_mark`) of the client's verified identity; one that refused the content does not count.
    Raises NotFound for an unknown environment.
    """
    environment = environment_lock(key=environment_key)
    quarantine = (
        Quarantine.objects.select_related("revision__resource")
        .filter(
            _CURRENT,
            released_at=None,
            revision__resource__environment=environment,
            revision__resource__type=word,
            revision__resource__name=name,
            revision__version=version,
        )
        .exclude(cause=QuarantineCause.ROLLOUT.value)
        .first()
    )
    if quarantine is None:
        return False
    before, refused = marks_of(quarantine.accepted_by), marks_of(quarantine.refused_by)
    accepted = with_marks(before, {kind: [] if mark in refused.get(kind, ()) else [mark]})
    if accepted == before or not accepted[kind]:
        return False
    row = quarantine.revision
    quarantine.accepted_by = accepted
    quarantine.save(update_fields=["accepted_by"])
    if Withholding(refused, accepted).over:
        reason = f"clients of every kind that refused it have taken it since, {kind} the last"
        _release((row,), environment, reason, SYSTEM)
    else:
        _rebuild(row, environment, f"quarantine of {word} '{name}' r{row.number}: {kind} has taken it")
    return True


def quarantine_release(
    *,
    environment_key: str,
    word: str,
    name: str,
    revision: int,
    reason: str,
    actor: Principal,
    request_id: str = "",
    undoes: Undoes | None = None,
) -> ChangeMade:
    """Release one revision from quarantine, as `quarantines_release` does several."""
    return quarantines_release(
        environment_key=environment_key,
        revisions=((word, name, revision),),
        reason=reason,
        actor=actor,
        request_id=request_id,
        undoes=undoes,
    )


@transaction.atomic(durable=True)
def quarantines_release(
    *,
    environment_key: str,
    revisions: Sequence[tuple[str, str, int]],
    reason: str,
    actor: Principal,
    request_id: str = "",
    undoes: Undoes | None = None,
) -> ChangeMade:
    """Release these revisions (type word, name, number) from quarantine by one change, so that they are served again;
    does nothing with those that are not in quarantine. `undoes`: the change that this write takes back. Raises
    NotFound.
    """
    environment = environment_lock(key=environment_key)
    rows = [_revision(environment_key, *each) for each in revisions]
    return _release(rows, environment, reason, actor, request_id, undoes)


def _release(
    rows: Sequence[Revision],
    environment: Environment,
    reason: str,
    actor: Principal,
    request_id: str = "",
    undoes: Undoes | None = None,
) -> ChangeMade:
    now = timezone.now()
    in_quarantine = Quarantine.objects.filter(released_at=None)
    released = [
        row for row in rows if in_quarantine.filter(revision=row).update(released_at=now, released_by=actor.name)
    ]
    if not released:
        return ChangeMade(environment.key, None, environment.generation)
    for row in released:
        _touch(row, environment)
        _choose_fallback(row.resource)
    moved = [QuarantineMoved(row.resource.type, row.resource.name, row.number, opened=False) for row in released]
    change = change_start(
        environment=environment,
        kind=ChangeKind.QUARANTINE,
        actor=actor,
        message=f"release of {_of(moved)}: {reason}"[:1000],
        undo=quarantines_as_json(moved),
        undoes=undoes,
        request_id=request_id,
    )
    for row in released:
        stopped_release(environment, row, change.generation)
        audit_record(
            actor=actor,
            verb="quarantine.released",
            subject=f"{row.resource.type}/{row.resource.name}",
            environment=environment.key,
            request_id=request_id,
            detail={"revision": row.number, "reason": reason},
        )
        _told("quarantine.released", environment.key, row, actor=actor, reason=reason)
    return ChangeMade(environment.key, change, change.generation)


def _rebuild(row: Revision, environment: Environment, message: str) -> None:
    """Start a change without edits, so that the environment is built again: what is served of a revision in quarantine
    differs from now on.
    """
    _touch(row, environment)
    change_start(environment=environment, kind=ChangeKind.QUARANTINE, actor=SYSTEM, message=message[:1000])


def proofs_record(*, proven: Iterable[ProvenContent]) -> int:
    """Store that clients acknowledged these contents; returns how many revisions no client had acknowledged before.

    A proof counts for every revision of the resource with this content. The newest proven revision that is in no
    quarantine becomes the one to fall back to. This is no change: what is served depends on it only in a quarantine.
    """
    by_environment: dict[str, list[ProvenContent]] = {}
    for item in proven:
        by_environment.setdefault(item.environment, []).append(item)
    return sum(_proofs_record_in(key, items) for key, items in by_environment.items())


def _proofs_record_in(environment_key: str, items: list[ProvenContent]) -> int:
    count = 0
    for start in range(0, len(items), _BATCH):
        batch = {(item.word, item.name, item.version) for item in items[start : start + _BATCH]}
        with transaction.atomic(durable=True):
            # The lock makes the order of this and of a build's read certain, which `Resource.touched` relies on.
            environment = Environment.objects.select_for_update().filter(key=environment_key).first()
            if environment is None:
                return count
            rows = Revision.objects.filter(
                resource__environment__key=environment_key,
                resource__name__in={name for _, name, _ in batch},
                version__in={version for _, _, version in batch},
                proof=None,
            ).select_related("resource", "resource__proven")
            proven = [row for row in rows if (row.resource.type, row.resource.name, row.version) in batch]
            RevisionProof.objects.bulk_create((RevisionProof(revision=row) for row in proven), ignore_conflicts=True)
            _advance_fallback(proven, environment)
            count += len(proven)
    return count


def _advance_fallback(proven: list[Revision], environment: Environment) -> None:
    newest: dict[int, Revision] = {}
    quarantined = set(
        Quarantine.objects.filter(revision__in=proven, released_at=None).values_list("revision_id", flat=True)
    )
    promoted = Revision.objects.filter(pk__in=[row.pk for row in proven]).exclude(UNPROMOTED)
    fallbacks = set(promoted.values_list("pk", flat=True)) if proven else set()
    for row in proven:
        if row.pk not in fallbacks:
            continue
        if row.pk in quarantined:
            if row.resource.head_id == row.pk and row.resource.proven_id is None:
                # Withheld from everybody until now, it is withheld from the kinds that refuse it alone (F18a).
                what = f"{row.resource.type} '{row.resource.name}' r{row.number}"
                _rebuild(row, environment, f"quarantine of {what}: a client acknowledged it")
            continue
        best = newest.get(row.resource_id)
        if best is None or best.number < row.number:
            newest[row.resource_id] = row
    for resource_id, row in newest.items():
        current = row.resource.proven
        if current is None or current.number < row.number:
            Resource.objects.filter(pk=resource_id).update(proven=row, touched=environment.generation + 1)


def _choose_fallback(resource: Resource) -> None:
    """Let the resource fall back to its newest proven revision that is in no quarantine.

    Some clients may have acknowledged what others refuse: while that is in quarantine, the proven revision before it
    counts. A revision from before a deletion never does, nor does one that no rollout promoted (rollouts.md R6).
    """
    revisions = Revision.objects.filter(resource=resource).exclude(UNPROMOTED)
    deletion = revisions.filter(blob=None).order_by("-number").values_list("number", flat=True).first() or 0
    open_quarantines = Quarantine.objects.filter(revision=models.OuterRef("pk"), released_at=None)
    usable = revisions.filter(~models.Exists(open_quarantines), proof__isnull=False, number__gt=deletion)
    Resource.objects.filter(pk=resource.pk).update(proven=usable.order_by("-number").first())


def _is_current(row: Revision) -> bool:
    """Whether the revision is the newest of its resource, or what the stable side has while the newest is staged."""
    return row.resource.head_id == row.pk or StagedName.objects.filter(resource=row.resource, stable=row).exists()


def _touch(row: Revision, environment: Environment) -> None:
    """Have the next build read the resource of this revision again."""
    Resource.objects.filter(pk=row.resource_id).update(touched=environment.generation + 1)


def _told(kind: str, environment_key: str, row: Revision, *, actor: Principal, reason: str, incident: str = "") -> None:
    name = row.resource.name[:_NAME_CHARS]
    event_append(
        kind=kind,
        environment=environment_key,
        subject=f"{row.resource.type}/{row.resource.name}",
        payload={
            "type": row.resource.type,
            "name": name,
            "revision": row.number,
            "actor": actor.name,
            "reason": reason,
            "incident": incident,
        },
    )


def _revision(environment_key: str, word: str, name: str, number: int) -> Revision:
    row = (
        Revision.objects.select_related("resource")
        .filter(resource__environment__key=environment_key, resource__type=word, resource__name=name, number=number)
        .first()
    )
    if row is None:
        raise NotFound(f"There is no revision r{number} of the {word} '{name}' in '{environment_key}'.")
    return row
