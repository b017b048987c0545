"""Judges a rollout before any client has it: by what its side would have, without the changes that wait behind it."""

from collections.abc import Collection, Mapping

from controlplane.catalog.models import Environment, StagedName
from controlplane.catalog.selectors import blob_plaintext
from controlplane.routecases.models import RouteCase
from controlplane.routecases.rows import case_draft
from controlplane.routecases.values import CaseRun
from controlplane.routecases.walking import cases_walked, moved_by
from controlplane.routecases.written import WrittenNow
from xdscore.routing.values import Key

_MAX_TOLD = 10


def cases_broken_by_rollout(*, environment_id: int, names: Collection[Key]) -> tuple[str, ...]:
    """A sentence for each of the first blocking cases that would not hold on the candidate side of a rollout which has
    these names, and hold on the stable side and by what is written. Where nothing is staged beside them, the candidate
    side is what is written, by which cases are judged already.
    """
    every = list(
        StagedName.objects.filter(resource__environment=environment_id).select_related("resource", "stable__blob")
    )
    waiting = [row for row in every if (row.resource.type, row.resource.name) not in names]
    if not waiting:
        return ()
    behind = _stable_contents(waiting)
    moved = moved_by(behind, frozenset())
    cases = RouteCase.objects.filter(environment=environment_id, blocking=True, holds=True).order_by("name")
    touched = [row for row in cases if not moved.isdisjoint(row.uses)]
    failing = [run for run in _walked(environment_id, touched, behind) if not run.holds]
    if not failing:
        return ()
    failed = {run.id: run for run in failing}
    rows = [row for row in touched if row.pk in failed]
    held = [run.id for run in _walked(environment_id, rows, _stable_contents(every)) if run.holds]
    return tuple(_sentence(failed[number]) for number in held[:_MAX_TOLD])


def _walked(environment_id: int, rows: list[RouteCase], puts: Mapping[Key, bytes | None]) -> tuple[CaseRun, ...]:
    environment = Environment.objects.get(pk=environment_id)
    return cases_walked([(row.pk, case_draft(row)) for row in rows], WrittenNow(environment, puts))


def _stable_contents(rows: list[StagedName]) -> dict[Key, bytes | None]:
    """What the stable side has of these names; None where it has nothing."""
    return {
        (row.resource.type, row.resource.name): blob_plaintext(row.stable.blob)
        if row.stable is not None and row.stable.blob is not None
        else None
        for row in rows
    }


def _sentence(run: CaseRun) -> str:
    return f"route case '{run.draft.name}' would not hold: {run.draft.asks} {run.end.said}"
