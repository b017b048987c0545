"""One act upon many resources, as one change."""

from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer
from controlplane.api.bodies import document_of, values_of
from controlplane.api.kinds import kind_named
from controlplane.api.labels import selector_of
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import ACCEPT_LOSS, BREAK_GLASS, DRY_RUN, MESSAGE, body_of_shape, described
from controlplane.api.shapes.bulk import BulkIn, BulkNotDoneOut, QuarantinesIn
from controlplane.api.shapes.changes import ChangeMadeOut, UnchangedOut
from controlplane.api.views.base import ApiView, principal_of
from controlplane.api.views.changes import change_answer, edit_json, marked_json
from controlplane.bulk.selecting import chosen_by
from controlplane.bulk.services import bulk_apply, bulk_plan
from controlplane.bulk.values import Bulk, BulkAct, Chosen, Filter
from controlplane.catalog.rights import OnSome
from xdscore.names import canonical
from xdscore.resource_types import by_word


class BulkView(ApiView):
    """Do one thing with many resources of an environment."""

    needs = {"POST": OnSome(Role.EDITOR)}

    @extend_schema(
        operation_id="resource_bulk",
        summary="Delete, label, restore or give away many resources as one change",
        description=(
            "All or none, and one change that is taken back as a whole. `resources` names what is meant, each with the "
            "revision that was seen; `select` means what fits a filter now. At most 1,000 at once. `restore` makes "
            "each what it was before its newest revision. Everything that is wrong is answered at once, by name."
        ),
        parameters=[DRY_RUN, MESSAGE, ACCEPT_LOSS, BREAK_GLASS],
        request=body_of_shape(BulkIn),
        responses=described(
            202, ChangeMadeOut, 400, 401, 403, 404, 409, 412, 413, 415, 422, 503, unchanged=BulkNotDoneOut
        ),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Do it with all of them, or say what it would do."""
        query = Query(request, ("accept_loss", "break_glass", "dry_run", "message"))
        dry_run = query.flag("dry_run")
        message = query.message()
        consent = query.consent()
        query.done()
        bulk = _bulk(request, environment_key, values_of(document_of(request), BulkIn), Role.EDITOR)
        actor = principal_of(request)
        told = actor.may(Role.VIEWER, environment_key)
        if dry_run:
            planned = bulk_plan(environment_key=environment_key, bulk=bulk, actor=actor)
            return json_answer(
                {
                    "changed": bool(planned.edits or planned.marked),
                    "dry_run": True,
                    "edits": [edit_json(each) for each in planned.edits],
                    **marked_json(planned.marked),
                    "loss": planned.loss.as_json(),
                    "findings": [finding_json(each) for each in planned.findings],
                }
            )
        made = bulk_apply(
            environment_key=environment_key,
            bulk=bulk,
            actor=actor,
            message=message,
            request_id=request_id(),
            consent=consent,
        )
        return change_answer(made, told=told)


class QuarantinesView(ApiView):
    """Put the newest revisions of many resources into quarantine, or release them."""

    needs = {"POST": Role.OPERATOR}

    @extend_schema(
        operation_id="quarantines",
        summary="Take many resources out of service, or put them back, as one change",
        description=(
            "All or none. Of each resource the newest revision, by name or by what fits a filter now; at most 100 at "
            "once, for channels are told of each. The last revision that clients acknowledged is served instead."
        ),
        parameters=[ACCEPT_LOSS],
        request=body_of_shape(QuarantinesIn),
        responses=described(
            202, ChangeMadeOut, 400, 401, 403, 404, 409, 412, 413, 415, 422, 503, unchanged=UnchangedOut
        ),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Do it with all of them."""
        query = Query(request, ("accept_loss",))
        consent = query.consent()
        query.done()
        bulk = _bulk(request, environment_key, values_of(document_of(request), QuarantinesIn), Role.OPERATOR)
        made = bulk_apply(
            environment_key=environment_key,
            bulk=bulk,
            actor=principal_of(request),
            request_id=request_id(),
            consent=consent,
        )
        return change_answer(made)


def _bulk(request: Request, environment_key: str, given: dict[str, Any], role: Role) -> Bulk:
    """The act that the body asks for, and the resources that it means: by a filter, those on which the caller has the
    role.
    """
    act = BulkAct(given["act"])
    if "resources" in given:
        chosen = tuple(
            Chosen(by_word[each["type"]], canonical(each["name"]), each["revision"]) for each in given["resources"]
        )
    else:
        allowed = principal_of(request).allowed(role, environment_key)
        wanted = _filter(given["select"])
        chosen = chosen_by(environment_key=environment_key, wanted=wanted, act=act, allowed=allowed)
    return Bulk(act, chosen, given.get("owner", ""), given.get("labels", {}), given.get("reason", ""))


def _filter(given: dict[str, Any]) -> Filter:
    """The filter in the body. Raises InputInvalid for a selector that cannot be read."""
    labels = selector_of(given.get("label", ""))
    kind = kind_named(given["type"]) if "type" in given else None
    return Filter(kind, given.get("owner"), given.get("name", ""), given.get("status", ""), labels)


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/resources/bulk", BulkView.as_view()),
    path(f"{ENVIRONMENT_PATH}/quarantines", QuarantinesView.as_view()),
]
EXAMPLES = {
    "resource_bulk": {
        "act": "labels",
        "resources": [{"type": "cluster", "name": "pay", "revision": 3}],
        "labels": {"team": "pay", "tier": None},
    },
    "quarantines": {
        "act": "quarantine",
        "select": {"label": "team=pay"},
        "reason": "clients refuse the new filter",
    },
}
