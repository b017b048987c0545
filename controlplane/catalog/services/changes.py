"""Writes resources: one atomic change, however many edits it holds (architecture.md, "Follow a change").

Parsing and validation happened before (decisions D30): the transaction only compares and writes, so that SQLite's
one writer is never held while somebody's YAML is read.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.catalog.choices import BlobKind, ChangeKind
from controlplane.catalog.expiry import expiries_to_json
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.marking import Mark, labels_as_json
from controlplane.catalog.models import Change, Environment, Reference, Resource, Revision, RevisionProof
from controlplane.catalog.references import needs_of
from controlplane.catalog.services.advising import advice
from controlplane.catalog.services.blobs import blobs_write
from controlplane.catalog.services.cases import Rewriting, cases_accept, cases_foresee
from controlplane.catalog.services.expecting import is_present
from controlplane.catalog.services.freezing import barrier_findings, barriers_pass, review_pass
from controlplane.catalog.services.guarding import loss_accept, loss_foresee
from controlplane.catalog.services.holding import hold_told
from controlplane.catalog.services.marking import marks_write
from controlplane.catalog.services.planning import (
    BATCH,
    NO_TERMS,
    Key,
    Plan,
    Prepared,
    Terms,
    plan,
    prepare,
)
from controlplane.catalog.services.staged_writes import Staging, staging_of, staging_store
from controlplane.catalog.services.writing import change_start, environment_lock
from controlplane.catalog.undoing import GOES_ON, WROTE_BOTH, Columns, GoesBack, owners_as_json
from controlplane.catalog.values import ChangeMade, ChangePlanned, Edit, finding_to_json
from controlplane.common.errors import NotFound
from controlplane.common.principal_ids import Actor
from controlplane.journal.services import audit_record
from xdscore.access import AccessTable
from xdscore.findings import Finding
from xdscore.schema.leniency import is_spelling

_MAX_POINTER = 1_024  # the column

Tables = tuple[AccessTable, AccessTable]
"""The access rules before and after a write."""


@dataclass(frozen=True, slots=True)
class Aside:
    """What a change writes beside resources: access rules and client groups, of which another room knows.

    `tables`: the access rules before and after it; `store`: writes it, as part of the change that it is given;
    `findings`: what is worth knowing of it.
    """

    tables: Tables
    store: Callable[[Change], None]
    findings: tuple[Finding, ...] = ()


Beside = Callable[[Environment], Aside | None]
"""Says what a change writes beside resources, once its environment is locked; None for nothing."""


def _nothing(_environment: Environment) -> None:
    return None


ALONE: Final[Beside] = _nothing
"""A change that writes resources alone."""


def change_apply(  # noqa: PLR0913 - what a change says of itself, as `change_start` has it
    *,
    environment_key: str,
    edits: Sequence[Edit],
    actor: Principal,
    message: str = "",
    terms: Terms = NO_TERMS,
    back: GoesBack = GOES_ON,
    beside: Beside = ALONE,
    marks: Sequence[Mark] = (),
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade:
    """Make all edits as one change, or none. An edit makes no revision where the resource already is as it asks.
    `terms`: the conditions of the write; `back`: what a rollback or undo adds to it; `beside`: what else it writes;
    `marks`: owners and labels of resources, which make no revision.

    Raises Forbidden (the actor may not write each of them), NotFound (environment, or a resource to delete), Conflict
    (the environment is on hold, or moved on from its base), WriteFrozen, WriteUnreviewed, LossRefused (connected
    clients would lose something that `consent` does not accept), CasesBroken (route cases would not hold any more),
    PreconditionFailed and InputInvalid (one name edited twice, prune without owner, too many resources; with `strict`,
    a reference to nothing).
    """
    prepared = prepare(edits, environment_key, terms)
    with transaction.atomic(durable=True):
        return change_write(
            environment=environment_lock(key=environment_key),
            prepared=prepared,
            actor=actor,
            message=message,
            terms=terms,
            back=back,
            beside=beside,
            marks=marks,
            request_id=request_id,
            consent=consent,
        )


def change_write(  # noqa: PLR0913 - what a change says of itself, as `change_start` has it
    *,
    environment: Environment,
    prepared: Sequence[Prepared],
    actor: Principal,
    author: Actor | None = None,
    message: str = "",
    terms: Terms = NO_TERMS,
    back: GoesBack = GOES_ON,
    beside: Beside = ALONE,
    marks: Sequence[Mark] = (),
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade:
    """Make all prepared edits as one change, or none, within the caller's transaction, which has locked the
    environment. `author`: who wrote what is written, where that is not `actor`, whose rights count. Raises what
    `change_apply` raises.
    """
    planned = plan(environment, prepared, terms, actor, marks)
    staging = staging_of(environment, planned, [edit.key for edit in prepared], terms)
    held, held_after = environment.hold_reason, _hold_after(environment, back)
    aside = beside(environment)
    of_contents = bool(planned.effective or staging.promoted or held != held_after)
    if not of_contents and not planned.marked and aside is None:
        return ChangeMade(environment.key, None, environment.generation)
    # Owners and labels reach no client: a write of these alone breaks no freeze, and needs no review.
    is_asked = of_contents or aside is not None
    broken = _barriers_pass(environment, actor, consent, back, aside, request_id) if is_asked else ""
    prospect = planned.prospect(environment.key)
    tables = aside.tables if aside is not None else None
    loss = loss_accept(replace(prospect, tables=tables), consent, told=planned.told)
    rewriting = rewriting_of(environment, planned, tables)
    cases = cases_accept(rewriting, consent, actor, told=planned.told, request_id=request_id)
    undo = owners_as_json(planned.owners_moved(terms.owner)) | labels_as_json(planned.marked)
    if held != held_after:
        hold_told(environment=environment.key, before=held, after=held_after, actor=actor)
        environment.hold_reason = held_after
        environment.save(update_fields=["hold_reason"])
        undo |= Columns({"hold_reason": held}, {"hold_reason": held_after}).as_json()
    kind = _kind(of_contents=of_contents, of_labels=bool(planned.marked), of_access=aside is not None)
    if kind is ChangeKind.RESOURCES and aside is not None:
        undo |= WROTE_BOTH
    said = (*_advice(environment, planned), *(aside.findings if aside is not None else ()), *cases.findings)
    change = change_start(
        environment=environment,
        kind=kind,
        actor=author or actor,
        message=message,
        reason=broken,
        owner=terms.owner or "",
        back_to=back.to_generation,
        undo=undo,
        undoes=back.undoes,
        request_id=request_id,
        loss=loss,
        findings=(*planned.findings_of_write, *said),
    )
    edited = planned.outcomes
    _write(environment, change, planned, staging, terms.owner)
    if aside is not None:
        aside.store(change)
    cases.store(change)
    audit_record(
        actor=actor,
        verb="change.saved",
        subject=str(change.public_id),
        environment=environment.key,
        request_id=request_id,
        detail=_saved(change.generation, len(edited), len(planned.marked), message) | {"hold": back.hold},
    )
    if terms.because:
        audit_record(
            actor=actor,
            verb="rollout.skipped",
            subject=str(change.public_id),
            environment=environment.key,
            request_id=request_id,
            detail={"reason": terms.because},
        )
    findings = (*planned.findings, *said)
    return ChangeMade(environment.key, change, change.generation, edited, findings, loss)


def _kind(*, of_contents: bool, of_labels: bool, of_access: bool) -> ChangeKind:
    """What a change is about that writes contents of resources, labels and owners, or access rules and groups. One of
    resources may have written the others, too.
    """
    if of_contents or (of_labels and of_access):
        return ChangeKind.RESOURCES
    return ChangeKind.ACCESS if of_access else ChangeKind.LABELS


def _saved(generation: int, edits: int, marked: int, message: str) -> dict[str, object]:
    """What the audit log says of a change: how many resources it edited, and of how many it set labels or the owner."""
    found: dict[str, object] = {"generation": generation, "edits": edits, "message": message}
    return found | ({"marked": marked} if marked else {})


def _barriers_pass(
    environment: Environment, actor: Principal, consent: Consent, back: GoesBack, aside: Aside | None, request_id: str
) -> str:
    """Let a write go on past a freeze and the review, as far as it may; returns what the change's message says of that.
    What leads back passes both, except that the review is asked about rules and groups on their way back, too: that may
    open as much as it closes.
    """
    if back.to_generation is None and back.undoes is None:
        return barriers_pass(environment, actor, consent, request_id=request_id)
    return review_pass(environment, actor, consent, request_id=request_id) if aside is not None else ""


def change_plan(
    *,
    environment_key: str,
    edits: Sequence[Edit],
    asker: Principal | None,
    terms: Terms = NO_TERMS,
    marks: Sequence[Mark] = (),
    tables: Tables | None = None,
) -> ChangePlanned:
    """What `change_apply` would do now, without doing it. `asker`: who would; None: whoever looks may read the whole
    environment, and nobody's right to write is asked. Raises what `change_apply` raises, except LossRefused,
    WriteFrozen and WriteUnreviewed: the loss is part of the result, and the two others are among its findings. Opens no
    transaction. `tables`: the access rules before and after, where the same change writes these too.
    """
    prepared = prepare(edits, environment_key, terms)
    environment = Environment.objects.filter(key=environment_key).first()
    if environment is None:
        raise NotFound(f"There is no environment '{environment_key}'.")
    planned = plan(environment, prepared, terms, asker, marks)
    loss = loss_foresee(replace(planned.prospect(environment_key), tables=tables))
    cases = cases_foresee(rewriting_of(environment, planned, tables), told=planned.told)
    findings = (*planned.findings, *_advice(environment, planned), *cases.findings, *barrier_findings(environment))
    table = tables[1] if tables is not None else None
    told = loss if planned.told else loss.in_numbers
    return ChangePlanned(environment_key, planned.outcomes, findings, told, table, len(cases.broken), planned.marked)


def rewriting_of(environment: Environment, planned: Plan, tables: Tables | None = None) -> Rewriting:
    """What a planned write makes of what route cases are judged by. `tables`: the access rules before and after, where
    it writes these too.
    """
    puts = {edit.key: edit.parsed.any_bytes if edit.parsed is not None else None for edit in planned.effective}
    existed = frozenset(key for key in puts if is_present(planned.current.get(key)))
    return Rewriting(environment, puts, existed, tables)


def _advice(environment: Environment, planned: Plan) -> tuple[Finding, ...]:
    """What is worth knowing of the write because of who is connected, where the writer may be told that."""
    written = [edit.parsed for edit in planned.effective if edit.parsed is not None]
    return advice(environment.key, written) if planned.told else ()


def _hold_after(environment: Environment, back: GoesBack) -> str:
    """The reason for which the environment is on hold after the write; empty where it is not on hold."""
    held = environment.hold_reason
    if back.columns is not None and held == back.columns.after.get("hold_reason"):
        return str(back.columns.before.get("hold_reason", ""))
    return back.hold or held


def _write(environment: Environment, change: Change, planned: Plan, staging: Staging, owner: str | None) -> None:
    """Store the contents, resources, revisions and references of the planned edits, and what of them is staged."""
    edits = planned.effective
    _contents_write(edits)
    resources = planned.current | _resources_create(environment, planned)
    heads_before = {key: resource.head_id for key, resource in planned.current.items()}
    for edit in edits:
        _move_on(resources[edit.key], change, edit, owner, is_staged=edit.key in staging.staged)
    revisions = [_revision(resources[edit.key], change, edit) for edit in edits]
    Revision.objects.bulk_create(revisions, batch_size=BATCH)
    pairs = zip(revisions, edits, strict=True)
    references = (row for revision, edit in pairs for row in _references(revision, edit))
    Reference.objects.bulk_create(references, batch_size=BATCH)
    _heads_set(revisions, staging.staged)
    _resources_update([revision.resource for revision in revisions])
    marks_write(planned.marked, resources)
    staging_store(staging, change, planned, resources, heads_before)


def _contents_write(edits: Sequence[Prepared]) -> None:
    """Store the bytes of each edit that is not a deletion."""
    for kind in (BlobKind.RESOURCE, BlobKind.SECRET):
        of_kind = [edit for edit in edits if edit.parsed is not None and edit.blob_kind is kind]
        blobs_write(kind=kind, blobs={edit.address.hex(): edit.stored for edit in of_kind})


def _resources_create(environment: Environment, planned: Plan) -> dict[Key, Resource]:
    """Create the rows of the resources that were never written before; returns them by type and name."""
    new = [edit.key for edit in planned.effective if edit.key not in planned.current]
    rows = (Resource(environment=environment, type=word, name=name) for word, name in new)
    return {(row.type, row.name): row for row in Resource.objects.bulk_create(rows, batch_size=BATCH)}


def _move_on(resource: Resource, change: Change, edit: Prepared, owner: str | None, *, is_staged: bool) -> None:
    """Set the fields of a resource as the edit says, except those that point to the new revision; saves nothing.
    `is_staged`: the stable side keeps what it has, and what that falls back to (rollouts.md R6).
    """
    resource.counter += 1
    resource.deleted = edit.parsed is None
    resource.touched = change.generation
    if resource.deleted:
        if not is_staged:
            resource.proven = None  # what was deleted does not come back as a fallback
    elif (becomes := edit.owner(owner)) is not None:
        resource.owner = becomes


def _heads_set(revisions: Sequence[Revision], staged: Collection[Key]) -> None:
    """Make each revision the newest of its resource, and the proven one too where a client acknowledged the same
    content before. Stores the proofs; does not save the resources. `staged`: the names whose revision becomes what is
    fallen back to only once it is promoted (rollouts.md R6).
    """
    known_good = _proven_contents(revisions)
    proven = [revision for revision in revisions if (revision.resource_id, revision.blob_id) in known_good]
    for revision in revisions:
        revision.resource.head = revision
    for revision in proven:
        if (revision.resource.type, revision.resource.name) not in staged:
            revision.resource.proven = revision
    RevisionProof.objects.bulk_create((RevisionProof(revision=revision) for revision in proven), batch_size=BATCH)


def _resources_update(resources: Sequence[Resource]) -> None:
    """Save the fields of these resources, all of which have rows."""
    # Every row is there and locked, so each insertion conflicts and updates: five times as fast as bulk_update, whose
    # CASE expressions Django builds and resolves one by one, and it is SQLite's only writer that would wait.
    Resource.objects.bulk_create(
        resources,
        update_conflicts=True,
        unique_fields=["environment", "type", "name"],
        update_fields=["counter", "deleted", "owner", "touched", "head", "proven"],
        batch_size=BATCH // 4,
    )


def _proven_contents(revisions: Sequence[Revision]) -> set[tuple[int, str | None]]:
    """The (resource id, content address) of each of these revisions whose content a client acknowledged in an earlier
    revision of the same resource.
    """
    known: set[tuple[int, str | None]] = set()
    size = BATCH // 2  # each revision is two variables of the statement
    for start in range(0, len(revisions), size):
        batch = revisions[start : start + size]
        proven = Revision.objects.filter(
            resource__in={revision.resource_id for revision in batch},
            blob__in={revision.blob_id for revision in batch if revision.blob_id is not None},
            proof__isnull=False,
        )
        known.update(proven.values_list("resource_id", "blob_id"))
    return known


def _revision(resource: Resource, change: Change, edit: Prepared) -> Revision:
    if edit.parsed is None:
        return Revision(resource=resource, number=resource.counter, change=change, blob=None)
    return Revision(
        resource=resource,
        number=resource.counter,
        change=change,
        blob_id=edit.address.hex(),
        version=edit.version,
        size=len(edit.parsed.any_bytes),
        eds_name=edit.parsed.eds_name,
        claims="\n".join(edit.parsed.claims),
        ttl_ms=edit.parsed.ttl_ms,
        findings=[finding_to_json(finding) for finding in edit.parsed.findings if not is_spelling(finding)],
        expiries=expiries_to_json(edit.parsed) or None,
        expires_at=min((each.end for _, each in edit.parsed.expiries), default=None),
    )


def _references(revision: Revision, edit: Prepared) -> Iterator[Reference]:
    """A row for each resource that the revision refers to; none for a deletion."""
    if edit.parsed is not None:
        for (word, name), pointer in needs_of(edit.parsed).items():
            yield Reference(revision=revision, to_type=word, to_name=name, pointer=pointer[:_MAX_POINTER])
