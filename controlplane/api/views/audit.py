"""The audit log: who did what to what. Read only."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer, moment
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page
from controlplane.api.query import Query
from controlplane.api.schema import AUDIT_FILTERS, CURSOR, described, page_of
from controlplane.api.shapes.people import AuditEventOut
from controlplane.api.views.base import ApiView, Needs, principal_of, seen_environments
from controlplane.clients.clock import database_now
from controlplane.journal.models import AuditEvent
from controlplane.journal.selectors import audit_list

_PARAMETERS = (*CURSOR_PARAMETERS, "environment", "actor", "actor_id", "verb", "request_id", "since", "until")


class AuditView(ApiView):
    """Read the audit log of the environments that the caller may see. Entries that belong to no environment are shown
    to administrators of all environments.
    """

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="audit_list",
        summary="Read the audit log, newest first",
        parameters=[*CURSOR, *AUDIT_FILTERS],
        responses=described(200, page_of(AuditEventOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of audit entries, newest first."""
        query = Query(request, _PARAMETERS)
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        after = query.whole("after", 0, minimum=1, maximum=2**63 - 1)
        environment = query.text("environment", at_most=63)
        actor, principal = (query.text(name, at_most=150) for name in ("actor", "actor_id"))
        verb, asked_by = (query.text(name, at_most=150) for name in ("verb", "request_id"))
        since, until = query.span(database_now)
        query.done()
        environments = list(seen_environments(request, environment))
        if not environment and principal_of(request).may(Role.ADMIN, None):
            environments.append("")
        found = audit_list(
            environments=environments,
            before=after or None,
            actor=actor,
            principal=principal,
            verb=verb,
            request_id=asked_by,
            since=since,
            until=until,
            limit=limit + 1,
        )
        last = str(found[limit - 1].pk) if len(found) > limit else ""
        return json_answer(cursor_page(request, [_event_json(each) for each in found[:limit]], limit, last))


def _event_json(event: AuditEvent) -> dict[str, object]:
    return {
        "id": event.pk,
        "at": moment(event.at),
        "actor": event.actor,
        "actor_id": event.principal or None,
        "verb": event.verb,
        "subject": event.subject,
        "environment": event.environment or None,
        "request_id": event.request_id,
        "detail": event.detail,
    }


urlpatterns = [
    path("audit", AuditView.as_view()),
]
