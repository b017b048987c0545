"""What a row of a route case holds, as values, and what of it is written."""

from typing import Any

from controlplane.routecases.models import RouteCase
from controlplane.routecases.values import CaseRun, RouteCaseDraft, draft_from_json
from xdscore.version import VERSION


def case_draft(row: RouteCase) -> RouteCaseDraft:
    """The case that is stored in this row, as it was written."""
    return draft_from_json(
        {
            **row.request,
            "name": row.name,
            "listener": row.listener,
            "client": row.client,
            "expect": row.expect,
            "blocking": row.blocking,
            "note": row.note,
        }
    )


def draft_columns(draft: RouteCaseDraft) -> dict[str, Any]:
    """The columns of a row that hold what was written."""
    return {
        "name": draft.name,
        "request": draft.request_json,
        "listener": draft.listener,
        "client": draft.client_json,
        "expect": draft.expect.as_json(),
        "blocking": draft.blocking,
        "note": draft.note,
    }


def end_columns(run: CaseRun) -> dict[str, Any]:
    """The columns of a row that hold how the case stands."""
    return {"end": run.end.as_json(), "uses": sorted(run.uses), "holds": run.holds, "judged_by": VERSION}
