"""What people do with a change set: submit, approve, turn down, schedule, publish, take back, comment."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.api.answers import json_answer
from controlplane.api.bodies import document_of, values_of
from controlplane.api.paths import path_to
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import ACCEPT_CASES, ACCEPT_LOSS, BREAK_GLASS, body_of_shape, described
from controlplane.api.shapes.changesets import ActIn, ChangeSetActedOut, CommentIn, ScheduleIn
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.api.views.changesets import CHANGE_SET_PATH, change_set_visible, key_read, view_json
from controlplane.changesets.machine import Act
from controlplane.changesets.rights import require
from controlplane.changesets.selectors import change_set_get
from controlplane.changesets.services import (
    Place,
    change_set_approve,
    change_set_cancel,
    change_set_comment,
    change_set_publish,
    change_set_reject,
    change_set_schedule,
    change_set_submit,
)

_ACTED: Final = (400, 401, 403, 404, 409, 413, 415, 422, 503)


class ChangeSetPost(ApiView):
    """The base class of what people do with a change set."""

    needs = {"POST": Needs.CHECK}
    act: Act

    def check(self, request: Request, change_set_id: UUID) -> None:
        """Raise NotFound when the caller may not see the change set, Forbidden when they may not do this with it."""
        require(principal_of(request), self.act, change_set_visible(request, change_set_id))


class ChangeSetAction(ChangeSetPost):
    """The base class of what needs no more than a reason; `service` does it, and returns whether that changed
    anything.
    """

    service: Callable[..., bool]

    def _acted(self, request: Request, change_set_id: UUID) -> HttpResponse:
        Query(request, ()).done()
        said = values_of(document_of(request), ActIn)
        changed = type(self).service(
            public_id=str(change_set_id), actor=principal_of(request), request_id=request_id(), **said
        )
        return _acted_answer(change_set_id, changed=changed)


class ChangeSetSubmitView(ChangeSetAction):
    """Ask others to review a change set."""

    act = Act.SUBMIT
    service = staticmethod(change_set_submit)

    @extend_schema(
        operation_id="change_set_submit",
        summary="Ask others to review a draft",
        request=body_of_shape(ActIn),
        responses=described(200, ChangeSetActedOut, *_ACTED),
    )
    def post(self, request: Request, change_set_id: UUID) -> HttpResponse:
        """Submit it: what others approve is this version."""
        return self._acted(request, change_set_id)


class ChangeSetApproveView(ChangeSetAction):
    """Approve a change set."""

    act = Act.APPROVE
    service = staticmethod(change_set_approve)

    @extend_schema(
        operation_id="change_set_approve",
        summary="Approve a change set as it is; who made or edited it may not, unless the environment says so",
        request=body_of_shape(ActIn),
        responses=described(200, ChangeSetActedOut, *_ACTED),
    )
    def post(self, request: Request, change_set_id: UUID) -> HttpResponse:
        """Approve the version that is in review."""
        return self._acted(request, change_set_id)


class ChangeSetRejectView(ChangeSetAction):
    """Turn a change set down."""

    act = Act.REJECT
    service = staticmethod(change_set_reject)

    @extend_schema(
        operation_id="change_set_reject",
        summary="Turn a change set down, with a reason",
        request=body_of_shape(ActIn),
        responses=described(200, ChangeSetActedOut, *_ACTED),
    )
    def post(self, request: Request, change_set_id: UUID) -> HttpResponse:
        """Turn the change set down; its author reads why."""
        return self._acted(request, change_set_id)


class ChangeSetCancelView(ChangeSetAction):
    """Take the last step of a change set back."""

    act = Act.CANCEL
    service = staticmethod(change_set_cancel)

    @extend_schema(
        operation_id="change_set_cancel",
        summary="Drop a schedule; or make a draft again of what was submitted, approved or turned down",
        request=body_of_shape(ActIn),
        responses=described(200, ChangeSetActedOut, *_ACTED),
    )
    def post(self, request: Request, change_set_id: UUID) -> HttpResponse:
        """Take one step back."""
        return self._acted(request, change_set_id)


class ChangeSetScheduleView(ChangeSetPost):
    """Let a change set be published by itself."""

    act = Act.SCHEDULE

    @extend_schema(
        operation_id="change_set_schedule",
        summary="Let it be published by itself from a time on, by the caller's rights of then",
        parameters=[ACCEPT_LOSS],
        request=body_of_shape(ScheduleIn),
        responses=described(200, ChangeSetActedOut, *_ACTED),
    )
    def post(self, request: Request, change_set_id: UUID) -> HttpResponse:
        """Schedule it, once or again."""
        query = Query(request, ("accept_loss",))
        consent = query.consent()
        query.done()
        said = values_of(document_of(request), ScheduleIn)
        changed = change_set_schedule(
            public_id=str(change_set_id),
            actor=principal_of(request),
            request_id=request_id(),
            consent=consent,
            **said,
        )
        return _acted_answer(change_set_id, changed=changed)


class ChangeSetPublishView(ChangeSetPost):
    """Publish a change set now."""

    act = Act.PUBLISH

    @extend_schema(
        operation_id="change_set_publish",
        summary="Write what a change set holds, as one change",
        parameters=[ACCEPT_CASES, ACCEPT_LOSS, BREAK_GLASS],
        request=body_of_shape(ActIn),
        responses=described(202, ChangeSetActedOut, *_ACTED, unchanged=ChangeSetActedOut),
    )
    def post(self, request: Request, change_set_id: UUID) -> HttpResponse:
        """Publish it: 202 with the change in `changes`; 200 where it was published before, or nothing had to change."""
        query = Query(request, ("accept_cases", "accept_loss", "break_glass"))
        consent = query.consent()
        query.done()
        said = values_of(document_of(request), ActIn)
        made = change_set_publish(
            public_id=str(change_set_id),
            actor=principal_of(request),
            request_id=request_id(),
            consent=consent,
            **said,
        )
        if made is None or made.change is None:
            return _acted_answer(change_set_id, changed=made is not None)
        return _acted_answer(
            change_set_id,
            changed=True,
            status=HTTPStatus.ACCEPTED,
            headers={"Location": path_to("changes", made.change_id)},
        )


class ChangeSetCommentView(ChangeSetPost):
    """Say something about a change set."""

    act = Act.COMMENT

    @extend_schema(
        operation_id="change_set_comment",
        summary="Say something about a change set, or about a line of one of its resources",
        request=body_of_shape(CommentIn),
        responses=described(200, ChangeSetActedOut, *_ACTED),
    )
    def post(self, request: Request, change_set_id: UUID) -> HttpResponse:
        """Add a comment, which stays."""
        Query(request, ()).done()
        said = values_of(document_of(request), CommentIn)
        word, name = key_read(said["type"], said["name"]) if said["type"] or said["name"] else ("", "")
        changed = change_set_comment(
            public_id=str(change_set_id),
            reason=said["reason"],
            place=Place(word, name, said["line"]),
            actor=principal_of(request),
            request_id=request_id(),
        )
        return _acted_answer(change_set_id, changed=changed)


def _acted_answer(
    change_set_id: UUID, *, changed: bool, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    view = change_set_get(public_id=str(change_set_id)).view
    return json_answer({**view_json(view), "changed": changed}, status=status, headers=headers)


urlpatterns = [
    path(f"{CHANGE_SET_PATH}/submit", ChangeSetSubmitView.as_view()),
    path(f"{CHANGE_SET_PATH}/approve", ChangeSetApproveView.as_view()),
    path(f"{CHANGE_SET_PATH}/reject", ChangeSetRejectView.as_view()),
    path(f"{CHANGE_SET_PATH}/publish", ChangeSetPublishView.as_view()),
    path(f"{CHANGE_SET_PATH}/schedule", ChangeSetScheduleView.as_view()),
    path(f"{CHANGE_SET_PATH}/cancel", ChangeSetCancelView.as_view()),
    path(f"{CHANGE_SET_PATH}/comment", ChangeSetCommentView.as_view()),
]
EXAMPLES = {
    "change_set_submit": {"reason": "for the sale on Friday"},
    "change_set_approve": {"reason": "looks right", "version": 4},
    "change_set_reject": {"reason": "the timeout is in milliseconds"},
    "change_set_publish": {"reason": "the sale begins"},
    "change_set_schedule": {"not_before": "2027-01-04T06:00:00Z"},
    "change_set_cancel": {"reason": "not this week"},
    "change_set_comment": {"reason": "why 30?", "type": "cluster", "name": "pay", "line": 4},
}
