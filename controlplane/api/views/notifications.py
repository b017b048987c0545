"""Notifications: the inbox."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from controlplane.accounts.selectors import person_or_token
from controlplane.api.answers import json_answer, moment
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page
from controlplane.api.query import Query
from controlplane.api.schema import CURSOR, described, page_of
from controlplane.api.shapes.notifications import NotificationOut
from controlplane.api.views.base import ApiView, Needs, principal_of, seen_environments
from controlplane.notify.selectors import notification_list

_FOR_ME = OpenApiParameter("for_me", OpenApiTypes.BOOL, description="Only what concerns you alone: `true` or `false`.")


class NotificationListView(ApiView):
    """List the notifications of the environments that the caller may see."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="notification_list",
        summary="List notifications, the newest first",
        parameters=[*CURSOR, _FOR_ME],
        responses=described(200, page_of(NotificationOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of notifications, newest first."""
        query = Query(request, (*CURSOR_PARAMETERS, "environment", "for_me"))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        before = query.whole("after", 0, minimum=0, maximum=2**62)
        environment = query.text("environment", at_most=63)
        alone = query.flag("for_me")
        query.done()
        found = notification_list(
            environment_keys=seen_environments(request, environment),
            reader=person_or_token(principal_of(request)),
            alone=alone,
            before=before or None,
            limit=limit + 1,
        )
        last = str(found[limit - 1].number) if len(found) > limit else ""
        rows = [
            {
                "id": each.id,
                "at": moment(each.at),
                "kind": each.kind,
                "environment": each.environment,
                "subject": each.subject,
                "severity": each.severity,
                "title": each.title,
                "text": each.text,
                "link": each.link,
            }
            for each in found[:limit]
        ]
        return json_answer(cursor_page(request, rows, limit, last))


urlpatterns = [
    path("notifications", NotificationListView.as_view()),
]
