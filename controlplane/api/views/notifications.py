"""Notifications: the inbox, and the channels they go out on."""

from uuid import UUID

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import empty_answer, json_answer, moment, moment_or_none
from controlplane.api.bodies import document_of, values_of
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page
from controlplane.api.paths import path_to
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import CURSOR, body_of_shape, described, page_of
from controlplane.api.shapes.notifications import (
    ChannelIn,
    ChannelMadeOut,
    ChannelOut,
    ChannelsOut,
    ChannelTestOut,
    DeliveriesOut,
    NotificationOut,
)
from controlplane.api.views.base import ApiView, Needs, principal_of, seen_environments
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.selectors import ChannelView as ChannelValue
from controlplane.notify.selectors import channel_get, channel_list, delivery_list, notification_list
from controlplane.notify.services import channel_create, channel_delete, channel_resume, channel_test
from controlplane.notify.services.channels import NewChannel


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


class ChannelListView(ApiView):
    """List and create the channels that notifications are sent to."""

    needs = {"GET": Role.ADMIN, "POST": Role.ADMIN}
    tells_secret = frozenset({"POST"})

    @extend_schema(
        operation_id="channel_list",
        summary="List the channels of notifications",
        responses=described(200, ChannelsOut, 401, 403, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """All notification channels."""
        Query(request, ()).done()
        return json_answer({"results": [_channel_json(each) for each in channel_list()]})

    @extend_schema(
        operation_id="channel_create",
        summary="Create a channel; its secret is shown once",
        request=body_of_shape(ChannelIn),
        responses=described(201, ChannelMadeOut, 400, 401, 403, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request) -> HttpResponse:
        """Create a channel; only this answer tells the secret that signs its messages."""
        Query(request, ()).done()
        values = values_of(document_of(request), ChannelIn)
        wanted = NewChannel(
            values["name"],
            ChannelKind(values["kind"]),
            values["target"],
            tuple(values.get("environments", ())),
            tuple(values.get("kinds", ())),
        )
        made, secret = channel_create(wanted=wanted, actor=principal_of(request), request_id=request_id())
        body = {**_channel_json(channel_get(public_id=made.public_id)), "secret": secret}
        return json_answer(body, status=201, headers={"Location": path_to("channels", str(made.public_id))})


class ChannelView(ApiView):
    """Read and delete one notification channel."""

    needs = {"GET": Role.ADMIN, "DELETE": Role.ADMIN}

    @extend_schema(
        operation_id="channel_get",
        summary="Read a channel",
        responses=described(200, ChannelOut, 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, channel_id: UUID) -> HttpResponse:
        """The notification channel as it is now."""
        Query(request, ()).done()
        return json_answer(_channel_json(channel_get(public_id=channel_id)))

    @extend_schema(
        operation_id="channel_delete",
        summary="Delete a channel with its delivery log",
        responses=described(204, None, 401, 403, 404, 422, 503),
    )
    def delete(self, request: Request, channel_id: UUID) -> HttpResponse:
        """Delete the notification channel."""
        Query(request, ()).done()
        channel_delete(public_id=channel_id, actor=principal_of(request), request_id=request_id())
        return empty_answer(204)


class DeliveryListView(ApiView):
    """List the last deliveries of one channel."""

    needs = {"GET": Role.ADMIN}

    @extend_schema(
        operation_id="delivery_list",
        summary="List the last deliveries of a channel",
        responses=described(200, DeliveriesOut, 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, channel_id: UUID) -> HttpResponse:
        """The channel's last hundred deliveries, newest first."""
        Query(request, ()).done()
        rows = [
            {
                "id": each.id,
                "title": each.title,
                "state": each.state.value,
                "attempts": each.attempts,
                "tried_at": moment_or_none(each.tried_at),
                "next_at": moment_or_none(each.next_at),
                "answer": each.answer,
            }
            for each in delivery_list(public_id=channel_id)
        ]
        return json_answer({"results": rows})


class ChannelTestView(ApiView):
    """Send a sample message to a channel now."""

    needs = {"POST": Role.ADMIN}

    @extend_schema(
        operation_id="channel_test",
        summary="Send a sample to a channel and say how it was taken",
        request=None,
        responses=described(200, ChannelTestOut, 401, 403, 404, 422, 503),
    )
    def post(self, request: Request, channel_id: UUID) -> HttpResponse:
        """Send a sample message to the channel, and wait for its answer."""
        Query(request, ()).done()
        sent = channel_test(public_id=channel_id)
        return json_answer({"ok": sent.ok, "answer": sent.answer})


class ChannelResumeView(ApiView):
    """Resume a channel that was paused because deliveries failed."""

    needs = {"POST": Role.ADMIN}

    @extend_schema(
        operation_id="channel_resume",
        summary="Send to a paused channel again",
        request=None,
        responses=described(200, ChannelOut, 401, 403, 404, 422, 503),
    )
    def post(self, request: Request, channel_id: UUID) -> HttpResponse:
        """End the channel's pause, so that notifications are sent to it again."""
        Query(request, ()).done()
        channel_resume(public_id=channel_id, actor=principal_of(request), request_id=request_id())
        return json_answer(_channel_json(channel_get(public_id=channel_id)))


def _channel_json(value: ChannelValue) -> dict[str, object]:
    return {
        "id": value.id,
        "name": value.name,
        "kind": value.kind.value,
        "target": value.target,
        "environments": list(value.environments),
        "kinds": list(value.kinds),
        "failures": value.failures,
        "paused_at": moment_or_none(value.paused_at),
        "paused_reason": value.paused_reason,
    }


urlpatterns = [
    path("notifications", NotificationListView.as_view()),
    path("channels", ChannelListView.as_view()),
    path("channels/<uuid:channel_id>", ChannelView.as_view()),
    path("channels/<uuid:channel_id>/deliveries", DeliveryListView.as_view()),
    path("channels/<uuid:channel_id>/test", ChannelTestView.as_view()),
    path("channels/<uuid:channel_id>/resume", ChannelResumeView.as_view()),
]
EXAMPLES = {
    "channel_create": {
        "name": "on call",
        "kind": "webhook",
        "target": "https://hooks.example/parley",
        "environments": ["default"],
    },
}
