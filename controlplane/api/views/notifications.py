"""Notifications: the inbox."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.api.answers import json_answer, moment
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page
from controlplane.api.query import Query
from controlplane.api.schema import CURSOR, described, page_of
from controlplane.api.shapes.notifications import NotificationOut
from controlplane.api.views.base import ApiView, Needs, seen_environments
from controlplane.notify.selectors import notification_list


class NotificationListView(ApiView):
    """List the notifications of the environments that the caller may see."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="notification_list",
        summary="List notifications, the newest first",
        parameters=CURSOR,
        responses=described(200, page_of(NotificationOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of notifications, newest first."""
        query = Query(request, (*CURSOR_PARAMETERS, "environment"))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        before = query.whole("after", 0, minimum=0, maximum=2**62)
        environment = query.text("environment", at_most=63)
        query.done()
        found = notification_list(
            environment_keys=seen_environments(request, environment), before=before or None, limit=limit + 1
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
