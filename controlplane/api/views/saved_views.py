"""Saved views of the console's lists: the same as in the console, with the same rights."""

from uuid import UUID

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from controlplane.api.answers import empty_answer, json_answer, moment
from controlplane.api.bodies import document_of, values_of
from controlplane.api.pages import OFFSET_PARAMETERS, offset_page, window_of
from controlplane.api.paths import path_to
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import PAGE, body_of_shape, described, page_of
from controlplane.api.shapes.listing import SavedViewIn, SavedViewOut, SavedViewPatchIn
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.catalog.rights import environment_visible
from controlplane.listing.registry import frame_of
from controlplane.listing.selectors import View, view_get, views_of
from controlplane.listing.services import view_change, view_default, view_delete, view_save

_FILTERS = [
    OpenApiParameter(
        "environment", OpenApiTypes.STR, description="Of its lists; without it, of those that are of no environment."
    ),
    OpenApiParameter("list", OpenApiTypes.STR, description="Of this list alone, by its word."),
]


class SavedViewListView(ApiView):
    """List the views that the caller has, and keep one."""

    needs = {"GET": Needs.ANYBODY, "POST": Needs.KNOWN}

    @extend_schema(
        operation_id="view_list",
        summary="List your views of the console's lists, and those that are shared with you",
        parameters=[*PAGE, *_FILTERS],
        responses=described(200, page_of(SavedViewOut), 401, 403, 404, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of views, by list and name."""
        query = Query(request, (*OFFSET_PARAMETERS, "environment", "list"))
        window = window_of(query)
        key, listed = query.text("environment", at_most=63), query.text("list", at_most=32)
        query.done()
        who = principal_of(request)
        if key:
            environment_visible(who, key, partly=True)
        found = views_of(principal=who, environment_key=key, listed=listed)
        return json_answer(offset_page(request, found, window, _view_json))

    @extend_schema(
        operation_id="view_create",
        summary="Keep filters and an order of a list as a view",
        description=(
            "It takes the place of a view of your own of this list with the same name. Sharing takes a role that may "
            "change something in the environment; a list that is of no environment has views of your own alone."
        ),
        request=body_of_shape(SavedViewIn),
        responses=described(201, SavedViewOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request) -> HttpResponse:
        """Keep the view."""
        Query(request, ()).done()
        who, said = principal_of(request), values_of(document_of(request), SavedViewIn)
        key = said.get("environment", "")
        if key:
            environment_visible(who, key, partly=True)
        frame = frame_of(said["list"], of_environment=bool(key))
        made = view_save(
            frame=frame,
            environment_key=key,
            query=said["query"],
            name=said["name"],
            shared=said["shared"],
            actor=who,
            request_id=request_id(),
        )
        if said["default"]:
            view_default(public_id=made, frame=frame, environment_key=key, actor=who)
        body = _view_json(view_get(principal=who, public_id=made))
        return json_answer(body, status=201, headers={"Location": path_to("views", str(made))})


class OneSavedViewView(ApiView):
    """Read, change and delete one view."""

    needs = {"GET": Needs.ANYBODY, "PATCH": Needs.ANYBODY, "DELETE": Needs.ANYBODY}

    @extend_schema(
        operation_id="view_get",
        summary="Read a view",
        responses=described(200, SavedViewOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, view_id: UUID) -> HttpResponse:
        """The view as it is now."""
        Query(request, ()).done()
        return json_answer(_view_json(view_get(principal=principal_of(request), public_id=view_id)))

    @extend_schema(
        operation_id="view_update",
        summary="Change a view of your own, or whether a list opens with one",
        request=body_of_shape(SavedViewPatchIn),
        responses=described(200, SavedViewOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def patch(self, request: Request, view_id: UUID) -> HttpResponse:
        """Set what the body gives, and leave the rest."""
        Query(request, ()).done()
        who, said = principal_of(request), values_of(document_of(request), SavedViewPatchIn)
        view = view_get(principal=who, public_id=view_id)
        edits = {name: value for name, value in said.items() if name != "default"}
        if edits:
            view_change(
                public_id=view_id, environment_key=view.environment, actor=who, request_id=request_id(), **edits
            )
        if "default" in said and (said["default"] or view.default):
            view_default(
                public_id=view_id if said["default"] else None,
                frame=frame_of(view.listed, of_environment=bool(view.environment)),
                environment_key=view.environment,
                actor=who,
            )
        return json_answer(_view_json(view_get(principal=who, public_id=view_id)))

    @extend_schema(
        operation_id="view_delete",
        summary="Delete a view of your own; as an administrator, anybody's that is shared",
        responses=described(204, None, 401, 403, 404, 422, 503),
    )
    def delete(self, request: Request, view_id: UUID) -> HttpResponse:
        """Delete the view."""
        Query(request, ()).done()
        who = principal_of(request)
        view = view_get(principal=who, public_id=view_id)
        view_delete(public_id=view_id, environment_key=view.environment, actor=who, request_id=request_id())
        return empty_answer(204)


def _view_json(view: View) -> dict[str, object]:
    return {
        "id": str(view.id),
        "environment": view.environment or None,
        "list": view.listed,
        "name": view.name,
        "query": view.query,
        "author": view.author,
        "shared": view.shared,
        "own": view.own,
        "default": view.default,
        "at": moment(view.at),
    }


urlpatterns = [
    path("views", SavedViewListView.as_view()),
    path("views/<uuid:view_id>", OneSavedViewView.as_view()),
]
EXAMPLES = {
    "view_create": {
        "environment": "default",
        "list": "resources",
        "name": "refused clusters",
        "query": "type=cluster&status=refused&sort=-changed",
        "shared": True,
    },
    "view_update": {"name": "refused", "default": True},
}
