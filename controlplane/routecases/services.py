"""Writes route cases. Each write locks the environment, so that a case and what it is judged by are of one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction
from django.utils import timezone

from controlplane.accounts.principal import Principal
from controlplane.catalog.models import Environment
from controlplane.catalog.services import environment_lock
from controlplane.catalog.values import Existing, Expectation
from controlplane.common.errors import Conflict, PreconditionFailed
from controlplane.journal.services import audit_record
from controlplane.routecases.models import RouteCase
from controlplane.routecases.rows import case_draft, draft_columns, end_columns
from controlplane.routecases.selectors import case_row, case_state
from controlplane.routecases.values import MAX_CASES, CaseRun, RouteCaseDraft, RouteCaseState
from controlplane.routecases.walking import cases_walked
from controlplane.routecases.written import WrittenNow


class Written(StrEnum):
    """What became of a case that was written."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class CaseWritten:
    """What became of one of several cases that were written together, and the end that it has."""

    written: Written
    run: CaseRun


@transaction.atomic(durable=True)
def case_create(
    *, environment_key: str, draft: RouteCaseDraft, actor: Principal, request_id: str = ""
) -> RouteCaseState:
    """Keep a case, which is judged at every change from now on. It may fail now: then it waits for the change that
    mends it. Raises NotFound, and Conflict when its name is taken, or there are too many.
    """
    environment = environment_lock(key=environment_key)
    cases = RouteCase.objects.filter(environment=environment)
    if cases.filter(name=draft.name).exists():
        raise Conflict(f"There is a route case '{draft.name}' in '{environment_key}' already. Nothing was changed.")
    _refuse_too_many(environment, cases.count() + 1)
    row = _create(environment, _run(environment, draft), actor, request_id)
    return case_state(row)


@transaction.atomic(durable=True)
def case_update(
    *,
    environment_key: str,
    case_id: int,
    draft: RouteCaseDraft,
    expect: Expectation = Existing.ANY,
    actor: Principal,
    request_id: str = "",
) -> RouteCaseState:
    """Replace a case by `draft`; writes nothing where it is so already. `expect`: the condition on its revision. Raises
    NotFound, PreconditionFailed, and Conflict when another case has its name.
    """
    environment = environment_lock(key=environment_key)
    row = case_row(environment_key=environment_key, case_id=case_id)
    _check(row, expect)
    if case_draft(row) == draft:
        return case_state(row)
    if RouteCase.objects.filter(environment=environment, name=draft.name).exclude(pk=row.pk).exists():
        raise Conflict(f"There is a route case '{draft.name}' in '{environment_key}' already. Nothing was changed.")
    _update(row, _run(environment, draft), actor, request_id)
    return case_state(row)


@transaction.atomic(durable=True)
def case_delete(
    *,
    environment_key: str,
    case_id: int,
    expect: Expectation = Existing.ANY,
    actor: Principal,
    request_id: str = "",
) -> RouteCaseState:
    """Delete a case; returns it as it was. `expect`: the condition on its revision. Raises NotFound and
    PreconditionFailed.
    """
    environment_lock(key=environment_key)
    row = case_row(environment_key=environment_key, case_id=case_id)
    _check(row, expect)
    gone = case_state(row)
    _audit(row, Written.DELETED, actor, request_id, {"before": gone.draft.as_json()})
    row.delete()
    return gone


@transaction.atomic(durable=True)
def cases_apply(
    *,
    environment_key: str,
    drafts: Sequence[RouteCaseDraft],
    actor: Principal,
    dry_run: bool = False,
    request_id: str = "",
) -> tuple[CaseWritten, ...]:
    """Keep all these cases, or none: each is created, or replaces the case with its name. In order. `dry_run`: say what
    would become of each, and store nothing. Raises NotFound, and Conflict when a name is given twice, or there would be
    too many.
    """
    environment = environment_lock(key=environment_key)
    names = [draft.name for draft in drafts]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise Conflict(f"The name '{twice[0]}' is given to several cases. Nothing was changed.")
    rows = {row.name: row for row in RouteCase.objects.filter(environment=environment)}
    _refuse_too_many(environment, len(rows.keys() | set(names)))
    runs = cases_walked([(None, draft) for draft in drafts], WrittenNow(environment))
    written = tuple(CaseWritten(_fate(rows.get(run.draft.name), run.draft), run) for run in runs)
    if dry_run:
        return written
    for each in written:
        if each.written is Written.CREATED:
            _create(environment, each.run, actor, request_id)
        elif each.written is Written.UPDATED:
            _update(rows[each.run.draft.name], each.run, actor, request_id)
    return written


def _fate(row: RouteCase | None, draft: RouteCaseDraft) -> Written:
    if row is None:
        return Written.CREATED
    return Written.UNCHANGED if case_draft(row) == draft else Written.UPDATED


def _run(environment: Environment, draft: RouteCaseDraft) -> CaseRun:
    [run] = cases_walked([(None, draft)], WrittenNow(environment))
    return run


def _create(environment: Environment, run: CaseRun, actor: Principal, request_id: str) -> RouteCase:
    now = timezone.now()
    row = RouteCase.objects.create(
        environment=environment,
        **draft_columns(run.draft),
        **end_columns(run),
        created_by=actor.name,
        created_at=now,
        author=actor.name,
        updated_at=now,
    )
    _audit(row, Written.CREATED, actor, request_id, {"after": run.draft.as_json()})
    return row


def _update(row: RouteCase, run: CaseRun, actor: Principal, request_id: str) -> None:
    before = case_draft(row)
    columns = {**draft_columns(run.draft), **end_columns(run)}
    if row.holds is not run.holds or before.expect != run.draft.expect:
        row.since = None  # since it was written
    for column, value in columns.items():
        setattr(row, column, value)
    row.revision += 1
    row.author, row.updated_at = actor.name, timezone.now()
    row.save()
    _audit(row, Written.UPDATED, actor, request_id, {"before": before.as_json(), "after": run.draft.as_json()})


def _check(row: RouteCase, expect: Expectation) -> None:
    """Raise PreconditionFailed where the condition does not hold of the case."""
    if expect in (Existing.ANY, Existing.PRESENT):
        return
    if isinstance(expect, Existing) or row.revision not in expect:
        raise PreconditionFailed(
            f"The route case {row.pk} is at revision r{row.revision}; the request expected otherwise. Nothing was "
            "changed.",
            etag=f'"r{row.revision}"',
        )


def _refuse_too_many(environment: Environment, count: int) -> None:
    if count > MAX_CASES:
        raise Conflict(
            f"'{environment.key}' would have {count:,} route cases; at most {MAX_CASES:,} are allowed. Nothing was "
            "changed."
        )


def _audit(row: RouteCase, written: Written, actor: Principal, request_id: str, detail: Mapping[str, object]) -> None:
    audit_record(
        actor=actor,
        verb=f"route_case.{written.value}",
        subject=f"route_case/{row.pk}",
        environment=row.environment.key,
        request_id=request_id,
        detail={"name": row.name, **detail},
    )
