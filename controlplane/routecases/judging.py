"""Judges writes by the cases of their environment: only by those that the write can touch (`walking` says why these).

That is one query for an environment without cases. The ways of the cases that are left go by what is stored with the
write's contents in its place; the caller has locked the environment, so that nothing of it moves meanwhile.
"""

from collections.abc import Sequence
from dataclasses import replace

from controlplane.access.selectors import access_table_read
from controlplane.catalog.models import Change
from controlplane.catalog.services.cases import NOTHING_JUDGED, CasesJudged, Rewriting
from controlplane.routecases.findings import Judged, judged_findings
from controlplane.routecases.models import RouteCase
from controlplane.routecases.rows import case_draft, end_columns
from controlplane.routecases.values import CaseRun, end_from_json
from controlplane.routecases.walking import cases_walked, moved_by
from controlplane.routecases.written import WrittenNow
from xdscore.access import AccessTable, Effect
from xdscore.names import canonical
from xdscore.version import VERSION


def cases_judge(rewriting: Rewriting) -> CasesJudged:
    """How the cases of an environment would stand after a write: a finding for each that fails or comes to hold."""
    touched = _touched(rewriting)
    if not touched:
        return NOTHING_JUDGED
    puts = {(word, canonical(name)): content for (word, name), content in rewriting.puts.items()}
    before, after = _tables(rewriting)
    runs = _walked(touched, WrittenNow(rewriting.environment, puts, after))
    # What is stored was found by the same ways; that a case held is looked up again before anything is refused for it.
    doubtful = [row for row, run in zip(touched, runs, strict=True) if row.holds and not run.holds]
    again = {run.id: run.end for run in _walked(doubtful, WrittenNow(rewriting.environment, table=before))}
    judged = [Judged(again.get(row.pk) or end_from_json(row.end), run) for row, run in zip(touched, runs, strict=True)]
    return CasesJudged(
        findings=judged_findings(judged),
        broken=tuple(each.run.draft.name for each in judged if each.refuses),
        store=lambda change: _store(touched, runs, change),
    )


def _tables(rewriting: Rewriting) -> tuple[AccessTable | None, AccessTable | None]:
    """The access rules before and after the write; None where those in force stay."""
    if rewriting.tables is not None or rewriting.default is None:
        return rewriting.tables or (None, None)
    environment = rewriting.environment
    table = access_table_read(environment_id=environment.pk, default=Effect(environment.default_effect))
    return table, replace(table, default=rewriting.default)


def _touched(rewriting: Rewriting) -> list[RouteCase]:
    """The cases whose ends the write can move."""
    moved = moved_by(rewriting.puts, rewriting.existed)
    rows = RouteCase.objects.filter(environment=rewriting.environment).order_by("name")
    return [
        row
        for row in rows
        if not moved.isdisjoint(row.uses)
        or (row.client and rewriting.of_access)
        or row.judged_by != VERSION  # another version may have looked at other things
    ]


def _walked(rows: Sequence[RouteCase], written: WrittenNow) -> tuple[CaseRun, ...]:
    return cases_walked([(row.pk, case_draft(row)) for row in rows], written)


def _store(rows: Sequence[RouteCase], runs: Sequence[CaseRun], change: Change) -> None:
    """Keep how the cases stand, where that is not stored already."""
    moved: list[RouteCase] = []
    for row, run in zip(rows, runs, strict=True):
        if row.holds is not run.holds:
            row.since = change
        columns = end_columns(run)
        if any(getattr(row, column) != value for column, value in columns.items()):
            for column, value in columns.items():
                setattr(row, column, value)
            moved.append(row)
    RouteCase.objects.bulk_update(moved, ["end", "uses", "holds", "judged_by", "since"], batch_size=100)
