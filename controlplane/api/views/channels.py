"""The channels that notifications go out on: made, changed, tried, paused, and what was sent there."""

from collections.abc import Mapping
from typing import Any
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
from controlplane.api.shapes.channels import (
    DELIVERY_FILTERS,
    ChannelIn,
    ChannelMadeOut,
    ChannelOut,
    ChannelPatchIn,
    ChannelsOut,
    ChannelTestOut,
    DeliveryOut,
)
from controlplane.api.shapes.facts import ReasonIn
from controlplane.api.views.base import ApiView, principal_of
from controlplane.notify.catalogue import OF_CHANNELS
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import DeliveryState
from controlplane.notify.selectors import ChannelView as ChannelValue
from controlplane.notify.selectors import DeliveryView as DeliveryValue
from controlplane.notify.selectors import channel_get, channel_list, delivery_list
from controlplane.notify.services import (
    channel_create,
    channel_delete,
    channel_pause,
    channel_resume,
    channel_test,
    channel_update,
)


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
        wanted = NewChannel(values["name"], ChannelKind(values["kind"]), **_rest_of(values))
        made, secret = channel_create(wanted=wanted, actor=principal_of(request), request_id=request_id())
        body = {**_channel_json(channel_get(public_id=made.public_id)), "secret": secret}
        return json_answer(body, status=201, headers={"Location": path_to("channels", str(made.public_id))})


class ChannelView(ApiView):
    """Read, change and delete one notification channel."""

    needs = {"GET": Role.ADMIN, "PATCH": Role.ADMIN, "DELETE": Role.ADMIN}

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
        operation_id="channel_update",
        summary="Change a channel; its kind and what is left out stay",
        request=body_of_shape(ChannelPatchIn),
        responses=described(200, ChannelOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def patch(self, request: Request, channel_id: UUID) -> HttpResponse:
        """Change the notification channel."""
        Query(request, ()).done()
        before = channel_get(public_id=channel_id)
        stays = {
            "environments": before.environments,
            "kinds": before.kinds,
            "digest": before.digest.as_json() if before.digest is not None else None,
        }
        values = {**stays, **values_of(document_of(request), ChannelPatchIn)}
        wanted = NewChannel(values.get("name", before.name), before.kind, **_rest_of(values))
        channel_update(public_id=channel_id, wanted=wanted, actor=principal_of(request), request_id=request_id())
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
    """List the deliveries of one channel."""

    needs = {"GET": Role.ADMIN}

    @extend_schema(
        operation_id="delivery_list",
        summary="List the deliveries of a channel, the newest first",
        parameters=[*CURSOR, *DELIVERY_FILTERS],
        responses=described(200, page_of(DeliveryOut, cursor=True), 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, channel_id: UUID) -> HttpResponse:
        """One page of the channel's deliveries, newest first."""
        query = Query(request, (*CURSOR_PARAMETERS, "state", "kind"))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        before = query.whole("after", 0, minimum=0, maximum=2**62)
        state = query.choice("state", [each.value for each in DeliveryState], "")
        kind = query.choice("kind", OF_CHANNELS, "")
        query.done()
        found = delivery_list(
            public_id=channel_id,
            state=DeliveryState(state) if state else None,
            kind=kind,
            before=before or None,
            limit=limit + 1,
        )
        last = str(found[limit - 1].number) if len(found) > limit else ""
        return json_answer(cursor_page(request, [_delivery_json(each) for each in found[:limit]], limit, last))


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


class ChannelPauseView(ApiView):
    """Send nothing to a channel for now."""

    needs = {"POST": Role.ADMIN}

    @extend_schema(
        operation_id="channel_pause",
        summary="Send nothing to a channel until `resume`; what happens meanwhile waits",
        request=body_of_shape(ReasonIn),
        responses=described(200, ChannelOut, 400, 401, 403, 404, 413, 415, 422, 503),
    )
    def post(self, request: Request, channel_id: UUID) -> HttpResponse:
        """Pause the channel; one that is paused stays as it is."""
        Query(request, ()).done()
        reason = values_of(document_of(request), ReasonIn)["reason"]
        channel_pause(public_id=channel_id, reason=reason, actor=principal_of(request), request_id=request_id())
        return json_answer(_channel_json(channel_get(public_id=channel_id)))


class ChannelResumeView(ApiView):
    """Resume a channel that is paused."""

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


def _rest_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a body says of a channel beside its name and kind."""
    return {
        "target": values.get("target", ""),
        "environments": tuple(values.get("environments", ())),
        "kinds": tuple(values.get("kinds", ())),
        "secret": values.get("secret", ""),
        "digest": values.get("digest"),
    }


def _channel_json(value: ChannelValue) -> dict[str, object]:
    last = value.last
    return {
        "id": value.id,
        "name": value.name,
        "kind": value.kind.value,
        "target": value.target,
        "environments": list(value.environments),
        "kinds": list(value.kinds),
        "digest": value.digest.as_json() if value.digest is not None else None,
        "key_set": value.has_secret,
        "failures": value.failures,
        "failing_since": moment_or_none(value.failing_since),
        "paused_at": moment_or_none(value.paused_at),
        "paused_reason": value.paused_reason,
        "last_delivery": {"at": moment(last.at), "state": last.state.value, "answer": last.answer} if last else None,
    }


def _delivery_json(value: DeliveryValue) -> dict[str, object]:
    return {
        "id": value.id,
        "title": value.title,
        "kind": value.kind,
        "environment": value.environment,
        "until": moment_or_none(value.until),
        "entries": value.entries,
        "state": value.state.value,
        "attempts": value.attempts,
        "tried_at": moment_or_none(value.tried_at),
        "next_at": moment_or_none(value.next_at),
        "answer": value.answer,
    }


urlpatterns = [
    path("channels", ChannelListView.as_view()),
    path("channels/<uuid:channel_id>", ChannelView.as_view()),
    path("channels/<uuid:channel_id>/deliveries", DeliveryListView.as_view()),
    path("channels/<uuid:channel_id>/test", ChannelTestView.as_view()),
    path("channels/<uuid:channel_id>/pause", ChannelPauseView.as_view()),
    path("channels/<uuid:channel_id>/resume", ChannelResumeView.as_view()),
]
EXAMPLES = {
    "channel_create": {
        "name": "on call",
        "kind": "webhook",
        "target": "https://hooks.example/parley",
        "environments": ["default"],
    },
    "channel_update": {"kinds": ["incident.opened", "incident.resolved"]},
    "channel_pause": {"reason": "its receiver moves to another host"},
}
