"""A change: what it edits, how far it has come, and (`?wait=`) the moment it is published."""

from collections.abc import Sequence
from itertools import islice
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.access.selectors import secret_findings
from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer, moment
from controlplane.api.paths import path_to
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.schema import WAIT, described
from controlplane.api.shapes.changes import ChangeOut
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.api.waiting import WAIT_PARAMETERS, Wanted, wait_of
from controlplane.builder.selectors import ChangeProgress, HeldName, change_progress
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import change_edits, change_findings, change_get
from controlplane.catalog.values import ChangeMade, EditedResource
from controlplane.errors import NotFound
from controlplane.incidents.selectors import IncidentValue, incidents_of_change
from controlplane.incidents.settling import change_delivery
from xdscore.findings import Finding

MAX_EDITS = 1_000  # listed with a change; more are counted


class ChangeView(ApiView):
    """One change. `waiting.waits` has waited before this view answers."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="change_get",
        summary="Read a change, or wait until it is published or settled",
        parameters=WAIT,
        responses=described(200, ChangeOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, change_id: UUID) -> HttpResponse:
        """Its state now."""
        query = Query(request, WAIT_PARAMETERS)
        wait_of(query)
        query.done()
        change = change_get(public_id=str(change_id))
        if not principal_of(request).may(Role.VIEWER, change.environment.key):
            raise NotFound(f"There is no change '{change_id}'.")
        return json_answer(change_json(change, change_progress(public_id=str(change_id))))


def change_json(change: Change, progress: ChangeProgress) -> dict[str, object]:
    """A change as the API tells it."""
    edits, count = change_edits(change=change, limit=MAX_EDITS)
    delivery = change_delivery(change=change, progress=progress)
    said = change_findings(change=change, limit=MAX_EDITS)
    closed = secret_findings(environment_key=change.environment.key, edits=edits)
    return {
        "id": str(change.public_id),
        "environment": change.environment.key,
        "kind": change.kind,
        "state": Wanted.SETTLED.value if delivery.settled else progress.state.value,
        "generation": change.generation,
        "epoch": progress.epoch,
        "author": change.author,
        "message": change.message,
        "owner": change.owner,
        "request_id": change.request_id,
        "created_at": moment(change.at),
        "edits": [edit_json(edit) for edit in edits],
        "edit_count": count,
        "counts": {
            "clients": delivery.clients,
            "acked": delivery.acked,
            "nacked": delivery.nacked,
            "silent": delivery.silent,
        },
        "unserved": [{"replica": each.replica, "epoch": each.epoch, "reason": each.reason} for each in delivery.behind],
        "held": [held_json(held) for held in progress.held],
        "findings": [finding_json(finding) for finding in islice((*said, *closed), MAX_EDITS)],
        "incidents": [incident_json(each) for each in incidents_of_change(change_id=str(change.public_id))],
        "detail": progress.detail,
    }


def held_json(held: HeldName) -> dict[str, object]:
    """Why a name is not served as written."""
    findings = [finding_json(finding) for finding in held.findings]
    return {"type": held.type, "name": held.name, "reason": held.reason, "served": held.served, "findings": findings}


def incident_json(value: IncidentValue) -> dict[str, object]:
    """An incident as interfaces.md section 7 spells it."""
    return {
        "id": value.id,
        "environment": value.environment,
        "type": value.type,
        "name": value.name,
        "state": value.state.value,
        "confidence": value.confidence.value,
        "change": value.change,
        "message": value.message,
        "clients": {"nacked": value.clients.nacked, "sent": value.clients.sent},
    }


def edit_json(edit: EditedResource) -> dict[str, object]:
    """One edit of a change, done or planned."""
    return {"type": edit.type, "name": edit.name, "action": edit.action, "revision": edit.revision}


def change_answer(
    made: ChangeMade, *, notes: Sequence[Finding] = (), headers: dict[str, str] | None = None
) -> HttpResponse:
    """The answer to a write: 202 with the change and where to follow it, or 200 when nothing had to change.

    Its findings are all that a dry run would have told: `notes` on the files, and what the change means to others.
    """
    if not made.changed:
        return json_answer({"changed": False}, headers=headers)
    change = change_get(public_id=made.change_id)
    closed = secret_findings(environment_key=made.environment, edits=made.edits)
    body = {
        **change_json(change, change_progress(public_id=made.change_id)),
        "changed": True,
        "findings": [finding_json(each) for each in islice((*notes, *made.findings, *closed), MAX_EDITS)],
    }
    return json_answer(body, status=202, headers={"Location": path_to("changes", made.change_id), **(headers or {})})
