"""Comments on changes, incidents and resources; and ticket links, which make words in texts lead to a tracker."""

from uuid import UUID

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Principal
from controlplane.api.answers import empty_answer, json_answer, moment, moment_or_none
from controlplane.api.bodies import document_of, values_of
from controlplane.api.kinds import kind_in_path, name_in_path
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page, plain_page
from controlplane.api.paths import path_to
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import CURSOR, PAGE, body_of_shape, described, page_of
from controlplane.api.shapes.comments import CommentOut, CommentTextIn, NewCommentIn, TicketLinkIn, TicketLinkOut
from controlplane.api.views.base import ApiView, Needs, principal_of, seen_environments
from controlplane.common.errors import InputInvalid
from controlplane.discussion.selectors import (
    change_subject,
    comment_get,
    comment_list,
    incident_subject,
    require_comment,
    resource_subject,
)
from controlplane.discussion.services import comment_add, comment_delete, comment_edit
from controlplane.discussion.tickets import TicketLinkView, ticket_link_add, ticket_link_delete, ticket_link_list
from controlplane.discussion.values import CommentView, Subject

_FILTERS = [
    OpenApiParameter(name, kind, description=text)
    for name, kind, text in (
        ("change", OpenApiTypes.UUID, "Those on this change."),
        ("incident", OpenApiTypes.UUID, "Those on this incident."),
        ("environment", OpenApiTypes.STR, "With `resource`: where it is."),
        ("resource", OpenApiTypes.STR, "Those on this resource: `TYPE/NAME`."),
    )
]


class CommentListView(ApiView):
    """List the comments on something, and add one."""

    needs = {"GET": Needs.ANYBODY, "POST": Needs.CHECK}

    def check(self, request: Request, **_kwargs: object) -> None:
        """Raise NotFound where the caller may not see what the comment in the body is about, Forbidden where they may
        not comment on it; and what reading the body raises.
        """
        self.wanted = values_of(document_of(request), NewCommentIn)
        self.about = _subject(principal_of(request), {key: str(value) for key, value in self.wanted.items()})
        require_comment(principal_of(request), self.about.environment)

    @extend_schema(
        operation_id="comment_list",
        summary="List the comments on a change, an incident or a resource, the newest first",
        parameters=[*CURSOR, *_FILTERS],
        responses=described(200, page_of(CommentOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of the comments on what the parameters name, newest first."""
        query = Query(request, (*CURSOR_PARAMETERS, *_SUBJECTS))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        before = query.whole("after", 0, minimum=0, maximum=2**62)
        asked = {name: text for name in _SUBJECTS if (text := query.text(name))}
        if {*asked} not in _ASKED:
            query.refuse("change", "must be there, or incident, or environment and resource: one of them")
        query.done()
        subject = _subject(principal_of(request), asked)
        found = comment_list(subject=subject, before=before or None, limit=limit + 1)
        last = str(found[limit - 1].number) if len(found) > limit else ""
        return json_answer(cursor_page(request, [_comment_json(each) for each in found[:limit]], limit, last))

    @extend_schema(
        operation_id="comment_create",
        summary="Comment on a change, an incident or a resource",
        description=(
            "Needs an account that may see it, by a page or a personal token; of a service's token, the role editor or "
            "operator."
        ),
        request=body_of_shape(NewCommentIn),
        responses=described(201, CommentOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request) -> HttpResponse:
        """Add a comment, and tell whom it mentions."""
        Query(request, ()).done()
        who = principal_of(request)
        public_id = comment_add(subject=self.about, text=self.wanted["text"], actor=who, request_id=request_id())
        location = path_to("comments", str(public_id))
        return json_answer(_comment_json(comment_get(who, public_id)), status=201, headers={"Location": location})


class OneCommentView(ApiView):
    """Read, edit and delete one comment."""

    needs = {"GET": Needs.ANYBODY, "PATCH": Needs.ANYBODY, "DELETE": Needs.ANYBODY}

    @extend_schema(
        operation_id="comment_get",
        summary="Read a comment",
        responses=described(200, CommentOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, comment_id: UUID) -> HttpResponse:
        """The comment as it is now."""
        Query(request, ()).done()
        return json_answer(_comment_json(comment_get(principal_of(request), comment_id)))

    @extend_schema(
        operation_id="comment_update",
        summary="Change the text of a comment of your own",
        request=body_of_shape(CommentTextIn),
        responses=described(200, CommentOut, 400, 401, 403, 404, 413, 415, 422, 503),
    )
    def patch(self, request: Request, comment_id: UUID) -> HttpResponse:
        """Edit the comment, and tell whom it mentions now."""
        Query(request, ()).done()
        who = principal_of(request)
        comment_get(who, comment_id)
        text = values_of(document_of(request), CommentTextIn)["text"]
        comment_edit(public_id=comment_id, text=text, actor=who, request_id=request_id())
        return json_answer(_comment_json(comment_get(who, comment_id)))

    @extend_schema(
        operation_id="comment_delete",
        summary="Delete a comment of your own; as an administrator, anybody's",
        responses=described(204, None, 401, 403, 404, 422, 503),
    )
    def delete(self, request: Request, comment_id: UUID) -> HttpResponse:
        """Delete the comment; the audit log keeps that it was there."""
        Query(request, ()).done()
        comment_delete(public_id=comment_id, actor=principal_of(request), request_id=request_id())
        return empty_answer(204)


class TicketLinkListView(ApiView):
    """List ticket links, and add one."""

    needs = {"GET": Needs.ANYBODY, "POST": Needs.KNOWN}

    @extend_schema(
        operation_id="ticket_link_list",
        summary="List which words lead to tickets in the environments you may see",
        parameters=PAGE,
        responses=described(200, page_of(TicketLinkOut), 401, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of ticket links: those that hold in all environments, then by environment."""
        return json_answer(
            plain_page(request, ticket_link_list(environment_keys=seen_environments(request, "")), _link_json)
        )

    @extend_schema(
        operation_id="ticket_link_create",
        summary="Make words in texts lead to the tickets of a tracker",
        description="Needs the role admin in the environment; without one, in all environments.",
        request=body_of_shape(TicketLinkIn),
        responses=described(201, TicketLinkOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request) -> HttpResponse:
        """Add a ticket link."""
        Query(request, ()).done()
        said = values_of(document_of(request), TicketLinkIn)
        number = ticket_link_add(
            form=said["form"],
            url=said["url"],
            environment_key=said.get("environment"),
            actor=principal_of(request),
            request_id=request_id(),
        )
        body = {**said, "environment": said.get("environment"), "id": number}
        return json_answer(body, status=201, headers={"Location": path_to("ticket-links", str(number))})


class OneTicketLinkView(ApiView):
    """Delete one ticket link."""

    needs = {"DELETE": Needs.ANYBODY}

    @extend_schema(
        operation_id="ticket_link_delete",
        summary="Have words lead nowhere again",
        responses=described(204, None, 401, 403, 404, 422, 503),
    )
    def delete(self, request: Request, link_id: int) -> HttpResponse:
        """Delete the ticket link."""
        Query(request, ()).done()
        ticket_link_delete(link_id=link_id, actor=principal_of(request), request_id=request_id())
        return empty_answer(204)


_SUBJECTS = ("change", "incident", "environment", "resource")
_ASKED = ({"change"}, {"incident"}, {"environment", "resource"})


def _subject(who: Principal, asked: dict[str, str]) -> Subject:
    """What a request means by `change`, `incident`, or `environment` and `resource`. Raises NotFound, InputInvalid."""
    if "resource" in asked:
        word, slash, name = asked["resource"].partition("/")
        if not slash or not name:
            raise InputInvalid("A resource is named by its type and name: TYPE/NAME, such as cluster/pay.")
        kind = kind_in_path(word)
        return resource_subject(who, asked["environment"], kind, name_in_path(kind, name))
    if "incident" in asked:
        return incident_subject(who, asked["incident"])
    try:
        return change_subject(who, UUID(asked["change"]))
    except ValueError:
        raise InputInvalid("The id of a change is a UUID.") from None


def _comment_json(comment: CommentView) -> dict[str, object]:
    return {
        "id": comment.id,
        "about": comment.subject.about.value,
        "environment": comment.subject.environment,
        "subject": comment.subject.key,
        "author": comment.author,
        "author_id": comment.principal,
        "text": comment.text,
        "at": moment(comment.at),
        "edited_at": moment_or_none(comment.edited_at),
    }


def _link_json(link: TicketLinkView) -> dict[str, object]:
    return {"id": link.id, "form": link.ticket.form, "url": link.ticket.url, "environment": link.environment}


urlpatterns = [
    path("comments", CommentListView.as_view()),
    path("comments/<uuid:comment_id>", OneCommentView.as_view()),
    path("ticket-links", TicketLinkListView.as_view()),
    path("ticket-links/<int:link_id>", OneTicketLinkView.as_view()),
]
EXAMPLES = {
    "comment_create": {
        "environment": "default",
        "resource": "cluster/pay",
        "text": "Raised for PAY-12.\n@mia, is 30s enough?",
    },
    "comment_update": {"text": "Raised for PAY-12."},
    "ticket_link_create": {"form": "PAY-{number}", "url": "https://jira.example/browse/PAY-{number}"},
}
