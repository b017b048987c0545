"""The list of changes: who wrote what, and what became of it."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.api.answers import json_answer, moment
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page
from controlplane.api.query import Query
from controlplane.api.schema import CHANGE_FILTERS, CURSOR, described, page_of
from controlplane.api.shapes.changes import ChangeRowOut
from controlplane.api.views.base import ApiView, Needs, seen_environments
from controlplane.catalog.change_log import changes_seen
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.filtering import ChangeFilter
from controlplane.clients.clock import database_now
from controlplane.status.change_lines import ChangeLine, change_lines

_FILTERS = ("environment", "kind", "author", "owner", "text", "resource", "findings", "since", "until")


class ChangeListView(ApiView):
    """List the changes of the environments that the caller may read as a whole."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="change_list",
        summary="List changes, newest first",
        parameters=[*CURSOR, *CHANGE_FILTERS],
        responses=described(200, page_of(ChangeRowOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of changes, newest first."""
        query = Query(request, (*CURSOR_PARAMETERS, *_FILTERS))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        after = query.parsed("after", _cursor, 0, wanted="must be taken from `next`")
        environment = query.text("environment", at_most=63)
        since, until = query.span(database_now)
        wanted = ChangeFilter(
            kind=query.parsed("kind", _kind, None, wanted=f"must be one of {', '.join(_KINDS)}"),
            author=query.text("author", at_most=150),
            owner=query.text("owner", at_most=150),
            text=query.text("text", at_most=150),
            resource=query.text("resource", at_most=1_100),
            since=since,
            until=until,
            findings=query.found(),
        )
        query.done()
        keys = seen_environments(request, environment)
        found = changes_seen(environment_keys=keys, wanted=wanted, before=after or None, limit=limit + 1)
        last = str(found[limit - 1].pk) if len(found) > limit else ""
        rows = [_row_json(each) for each in change_lines(found[:limit])]
        return json_answer(cursor_page(request, rows, limit, last))


_KINDS = {each.value: each for each in ChangeKind}


def _kind(text: str) -> ChangeKind | None:
    return _KINDS.get(text)


def _cursor(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _row_json(line: ChangeLine) -> dict[str, object]:
    change = line.change
    return {
        "id": str(change.public_id),
        "environment": change.environment.key,
        "kind": change.kind,
        "generation": change.generation,
        "author": change.author,
        "author_id": change.principal or None,
        "message": change.message,
        "owner": change.owner,
        "request_id": change.request_id,
        "created_at": moment(change.at),
        "edit_count": line.edits,
        "status": line.status.value,
        "refused_by": line.refused,
        "lost_by": line.lost,
        "undoes": change.undoes or None,
        "undone_by": str(line.undone_by.public_id) if line.undone_by is not None else None,
    }


urlpatterns = [
    path("changes", ChangeListView.as_view()),
]
