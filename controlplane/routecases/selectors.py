"""Reads of route cases, and what judging them by what is written now finds."""

from collections.abc import Collection, Sequence

from django.db import models

from controlplane.catalog.models import Environment
from controlplane.common.errors import InputInvalid, NotFound
from controlplane.routecases.models import RouteCase
from controlplane.routecases.rows import case_draft
from controlplane.routecases.values import CaseRun, RouteCaseDraft, RouteCaseState, end_from_json
from controlplane.routecases.walking import cases_walked
from controlplane.routecases.written import WrittenNow


def case_list(*, environment_key: str, holds: bool | None = None) -> models.QuerySet[RouteCase]:
    """The cases of an environment by name, or of them those that hold, or fail; `case_state` turns each row into a
    value.
    """
    rows = RouteCase.objects.filter(environment__key=environment_key).select_related("since").order_by("name")
    return rows if holds is None else rows.filter(holds=holds)


def case_get(*, environment_key: str, case_id: int) -> RouteCaseState:
    """The case of an environment with this id. Raises NotFound."""
    return case_state(case_row(environment_key=environment_key, case_id=case_id))


def case_row(*, environment_key: str, case_id: int) -> RouteCase:
    """The row of the case of an environment with this id. Raises NotFound."""
    row = case_list(environment_key=environment_key).filter(pk=case_id).first()
    if row is None:
        raise NotFound(f"There is no route case {case_id} in '{environment_key}'.")
    return row


def case_state(row: RouteCase) -> RouteCaseState:
    """The case that is stored in this row, and how it stands."""
    return RouteCaseState(
        id=row.pk,
        draft=case_draft(row),
        revision=row.revision,
        created_by=row.created_by,
        created_at=row.created_at,
        author=row.author,
        updated_at=row.updated_at,
        end=end_from_json(row.end),
        holds=row.holds,
        since=str(row.since.public_id) if row.since is not None else "",
    )


def cases_run(*, environment_key: str, ids: Collection[int] | None = None) -> tuple[CaseRun, ...]:
    """What judging the kept cases of an environment by what is written now finds, by name; of those with these ids
    alone, where they are given. Stores nothing. Raises NotFound, and InputInvalid for ids of no case.
    """
    environment = environment_row(environment_key)
    rows = list(case_list(environment_key=environment_key))
    if ids is not None:
        unknown = sorted(set(ids) - {row.pk for row in rows})
        if unknown:
            named = ", ".join(map(str, unknown[:10]))
            raise InputInvalid(f"There are no route cases with these ids in '{environment_key}': {named}.")
        rows = [row for row in rows if row.pk in ids]
    return cases_walked([(row.pk, case_draft(row)) for row in rows], WrittenNow(environment))


def drafts_run(*, environment_key: str, drafts: Sequence[RouteCaseDraft]) -> tuple[CaseRun, ...]:
    """What judging these cases, which need not be kept, by what is written now finds; in order. Raises NotFound."""
    written = WrittenNow(environment_row(environment_key))
    return cases_walked([(None, draft) for draft in drafts], written)


def environment_row(environment_key: str) -> Environment:
    """The row of the environment with this key. Raises NotFound."""
    environment = Environment.objects.filter(key=environment_key).first()
    if environment is None:
        raise NotFound(f"There is no environment '{environment_key}'.")
    return environment
