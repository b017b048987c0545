"""A change: what it edits, how far it has come, and (`?wait=`) the moment it is published."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.access.selectors import secret_findings
from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer, moment
from controlplane.api.bodies import document_of, values_of
from controlplane.api.paths import path_to
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import ACCEPT_CASES, ACCEPT_LOSS, BREAK_GLASS, WAIT, body_of_shape, described
from controlplane.api.shapes.changes import ChangeMadeBeforeOut, ChangeMadeOut, ChangeOut
from controlplane.api.shapes.facts import ReasonIn
from controlplane.api.shapes.history import ConvergenceOut
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.api.waiting import WAIT_PARAMETERS, wait_of, waits
from controlplane.builder.selectors import ChangeProgress, HeldBackName, change_progress, progress_of_change
from controlplane.catalog.edits import change_edits
from controlplane.catalog.limiting import change_allowed
from controlplane.catalog.marking import Marked, labels_of
from controlplane.catalog.models import Change
from controlplane.catalog.rights import require
from controlplane.catalog.rollbacks import undone_by
from controlplane.catalog.selectors import change_get
from controlplane.catalog.staging import StagedChangeView
from controlplane.catalog.undoing import owners_of
from controlplane.catalog.values import ChangeMade, EditedResource
from controlplane.common.errors import NotFound
from controlplane.history.convergence import convergence
from controlplane.incidents.selectors import (
    IncidentValue,
    incident_get,
    incidents_of_change,
    refused_and_lost,
)
from controlplane.incidents.settling import ChangeReading, change_convergence
from controlplane.rollouts.selectors import stops_of_changes
from controlplane.rollouts.values import ChangeStop, RolloutResource
from controlplane.status.changes import Outcome, Progress
from controlplane.status.selectors import change_statuses, progress_of
from controlplane.undo.rights import undo_require
from controlplane.undo.services import change_undo
from xdscore.findings import Finding

MAX_EDITS = 1_000  # listed with a change; more are counted
_MAX_NOT_IN_USE: Final = 100


class ChangeView(ApiView):
    """Read one change. With the parameter `wait` the answer comes when the change is built, or as far as `for` says, or
    the time is up.
    """

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="change_get",
        summary="Read a change, or wait until it is published or settled",
        parameters=WAIT,
        responses=described(200, ChangeOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, change_id: UUID) -> HttpResponse:
        """The change, and how far it has come by now."""
        query = Query(request, WAIT_PARAMETERS)
        wait_of(query)
        query.done()
        change = _visible(request, change_id)
        progress = change_progress(public_id=str(change_id))
        return json_answer(change_json(change, progress, told=_told(request, change)))


class ChangeConvergenceView(ApiView):
    """Read how one change spread."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="change_convergence",
        summary="Read how fast a change came to the clients that were connected when it was published",
        responses=described(200, ConvergenceOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, change_id: UUID) -> HttpResponse:
        """How many clients had taken it after how many seconds."""
        Query(request, ()).done()
        change = _visible(request, change_id)
        require(principal_of(request), Role.VIEWER, change.environment.key)
        found = change_convergence(change=change, progress=change_progress(public_id=str(change_id)))
        spread = found or convergence((), 0)
        return json_answer(
            {
                "known": found is not None,
                "took": spread.took,
                "of": spread.of,
                "waiting": spread.waiting,
                "p50_s": spread.p50_s,
                "p99_s": spread.p99_s,
                "last_s": spread.last_s,
                "steps": [{"second": second, "clients": clients} for second, clients in spread.steps],
            }
        )


class ChangeUndoView(ApiView):
    """Undo one change."""

    needs = {"POST": Needs.CHECK}

    def check(self, request: Request, change_id: UUID) -> None:
        """Raise NotFound when the caller may not see the change, Forbidden when they may not write what the change
        wrote.
        """
        undo_require(principal_of(request), _visible(request, change_id))

    @extend_schema(
        operation_id="change_undo",
        summary="Take a change back, whatever it wrote, as a new change",
        description=(
            "Resources, rules, groups and settings become what the change found, all or none; a quarantine is released "
            "or opened again. Needs the role that writing the same needs: editor or operator for resources, "
            "access-editor for rules and groups, operator for quarantines, of settings the role of each, and all of "
            "these for a change of several. 409 names everything that was written again since, by whom and in which "
            "change. A change that was taken back before answers 200 with the undo that did it. Where the environment "
            "asks for review, an undo that writes rules or groups needs `break_glass`."
        ),
        parameters=[ACCEPT_CASES, ACCEPT_LOSS, BREAK_GLASS],
        request=body_of_shape(ReasonIn),
        responses=described(
            202, ChangeMadeOut, 400, 401, 403, 404, 409, 413, 415, 422, 503, unchanged=ChangeMadeBeforeOut
        ),
    )
    def post(self, request: Request, change_id: UUID) -> HttpResponse:
        """Undo everything that the change wrote, by one new change."""
        query = Query(request, ("accept_cases", "accept_loss", "break_glass"))
        consent = query.consent()
        query.done()
        reason = values_of(document_of(request), ReasonIn)["reason"]
        undone = change_undo(
            public_id=str(change_id),
            reason=reason,
            actor=principal_of(request),
            request_id=request_id(),
            consent=consent,
        )
        change = change_get(public_id=undone.change)
        told = _told(request, change)
        body = change_json(change, progress_of_change(change=change), told=told)
        if undone.already:
            return json_answer({**body, "changed": False})
        edits = change_edits(change=change, limit=MAX_EDITS).edits
        closed = secret_findings(environment_key=change.environment.key, edits=edits) if told else ()
        said = islice((*undone.findings, *closed), MAX_EDITS)
        return _accepted({**body, "findings": [finding_json(each) for each in said]})


def _visible(request: Request, change_id: UUID) -> Change:
    """The change with this id. Raises NotFound, with one text, where there is none and where the caller may not see
    it: who may read some resources only sees the changes that wrote nothing else.
    """
    change = change_get(public_id=str(change_id))
    allowed = principal_of(request).allowed(Role.VIEWER, change.environment.key)
    if not allowed.everything and not change_allowed(allowed, change):
        raise NotFound(f"There is no change '{change_id}'.")
    return change


def _told(request: Request, change: Change) -> bool:
    """Whether the caller may be told what a change means for others: they may read the environment as a whole."""
    return principal_of(request).may(Role.VIEWER, change.environment.key)


def change_json(change: Change, progress: ChangeProgress, *, told: bool) -> dict[str, object]:
    """A change as a JSON object. `progress`: how far the builder and the clients have come with it; `told`: the reader
    may be told of resources and clients of others.
    """
    wrote = change_edits(change=change, limit=MAX_EDITS, findings=MAX_EDITS, told=told)
    reading = ChangeReading(change, progress)
    delivery, unused = reading.delivery, reading.not_in_use
    public_id, key, state = str(change.public_id), change.environment.key, progress_of(progress, delivery)
    undone = undone_by(environment_key=key, changes=[change])
    back = undone.get(change.generation)
    closed = secret_findings(environment_key=key, edits=wrote.edits) if told else ()
    held_back = [held_back_json(each) for each in progress.held]
    rollout, stop = _rollout_of(public_id, progress.staged)
    incidents = {each.id: each for each in incidents_of_change(change_id=public_id)}
    for incident in stop.incidents if stop is not None else ():
        if incident not in incidents:
            incidents[incident] = incident_get(public_id=incident).incident
    refused, lost = refused_and_lost(change_ids=[public_id])
    statuses = change_statuses(environment_key=key, changes={change: state}, refused=refused, lost=lost, undone=undone)
    body = {
        **_written_json(change, wrote.edits, wrote.count, (*wrote.findings, *closed)),
        "state": state.value,
        "status": statuses[public_id].value,
        "epoch": progress.epoch,
        "counts": {
            "clients": delivery.clients,
            "acked": delivery.acked,
            "nacked": delivery.nacked,
            "silent": delivery.silent,
            "not_in_use": len(unused.clients),
        },
        "not_in_use": [
            {"type": each.type, "name": each.name, "clients": each.clients, "message": each.sentence}
            for each in unused.resources[:_MAX_NOT_IN_USE]
        ],
        "unserved": [{"replica": each.replica, "epoch": each.epoch, "reason": each.reason} for each in delivery.behind],
        "held_back": held_back,
        "held": held_back,
        "incidents": [incident_json(each) for each in incidents.values()],
        "rollout": rollout,
        "reverted": [reverted_json(each) for each in stop.reverted] if stop is not None else [],
        "undone_by": str(back.public_id) if back is not None else None,
        "detail": progress.detail,
    }
    return body if told else _untold(body)


def _untold(body: dict[str, object]) -> dict[str, object]:
    """A change as who may not read the environment as a whole sees it: what it wrote and how far it has come, but not
    which other resources and clients that concerns.
    """
    loss = body["loss"]
    return {
        **body,
        "loss": {**loss, "kinds": {}, "names": [], "who": []} if isinstance(loss, dict) else None,
        "not_in_use": [],
        "unserved": [],
        "held_back": [],
        "held": [],
        "incidents": [],
        "reverted": [],
        "detail": "",
    }


# What became of a change that is being saved: nothing, by nobody. `change_json` would read the same, with some twenty
# queries for each write.
_JUST_SAVED: Final[Mapping[str, object]] = {
    "state": Progress.SAVED.value,
    "status": Outcome.WAITING.value,
    "epoch": None,
    "counts": {"clients": 0, "acked": 0, "nacked": 0, "silent": 0, "not_in_use": 0},
    "not_in_use": [],
    "unserved": [],
    "held_back": [],
    "held": [],
    "incidents": [],
    "rollout": None,
    "reverted": [],
    "undone_by": None,
    "detail": "",
}


def _written_json(
    change: Change, edits: Sequence[EditedResource], count: int, findings: Iterable[Finding]
) -> dict[str, object]:
    """What a change wrote, which never changes, as a JSON object. `count`: of the edits in all, of which `edits` are
    the first.
    """
    return {
        "id": str(change.public_id),
        "environment": change.environment.key,
        "kind": change.kind,
        "generation": change.generation,
        "author": change.author,
        "author_id": change.principal or None,
        "message": change.message,
        "owner": change.owner,
        "request_id": change.request_id,
        "created_at": moment(change.at),
        "edits": [edit_json(edit) for edit in edits],
        "edit_count": count,
        "labels": _moved((*each.key, each.before, each.after) for each in labels_of(change.undo)),
        "owners": _moved(each for each in owners_of(change.undo) if each[2] != each[3]),
        "findings": [finding_json(finding) for finding in islice(findings, MAX_EDITS)],
        "loss": change.loss,
        "undoes": change.undoes or None,
    }


def marked_json(marked: Sequence[Marked]) -> dict[str, object]:
    """Whose labels and owners a write moves, as JSON."""
    labels = [(*each.key, *each.labels) for each in marked if each.labels_move]
    return {"labels": _moved(labels), "owners": _moved((*each.key, *each.owner) for each in marked if each.owner_moves)}


def _moved(rows: Iterable[tuple[str, str, object, object]]) -> list[dict[str, object]]:
    return [
        {"type": word, "name": name, "before": before, "after": after}
        for word, name, before, after in islice(rows, MAX_EDITS)
    ]


def _rollout_of(public_id: str, staged: StagedChangeView | None) -> tuple[str | None, ChangeStop | None]:
    """The id of the rollout that has, or had, something of a change, and what it took back; None for nothing."""
    if staged is None:
        return None, None
    stop = stops_of_changes(change_ids=[public_id]).get(public_id)
    return staged.rollout or (stop.rollout if stop is not None else None), stop


def reverted_json(resource: RolloutResource) -> dict[str, object]:
    """A resource that a rollout took back, as a JSON object."""
    return {"type": resource.type, "name": resource.name, "incident": resource.incident or None}


def held_back_json(held: HeldBackName) -> dict[str, object]:
    """A name that is held back, as a JSON object with the findings that say why its newest revision is not served."""
    findings = [finding_json(finding) for finding in held.findings]
    return {"type": held.type, "name": held.name, "reason": held.reason, "served": held.served, "findings": findings}


def incident_json(value: IncidentValue) -> dict[str, object]:
    """An incident as a JSON object, in the form of interfaces.md section 7."""
    return {
        "id": value.id,
        "cause": value.cause.value,
        "environment": value.environment,
        "type": value.type,
        "name": value.name,
        "state": value.state.value,
        "confidence": value.confidence.value,
        "change": value.change,
        "message": value.message,
        "clients": {"nacked": value.clients.nacked, "sent": value.clients.sent},
        "assigned": None
        if value.assignee is None
        else {
            "kind": "team" if value.assignee.team else "person",
            "name": value.assignee.name,
            "gone": value.assignee.gone,
        },
        "muted": None
        if value.mute is None
        else {"until": moment(value.mute.until), "by": value.mute.by, "reason": value.mute.reason},
    }


def edit_json(edit: EditedResource) -> dict[str, object]:
    """One edit of a change, done or planned, as a JSON object."""
    return {"type": edit.type, "name": edit.name, "action": edit.action, "revision": edit.revision}


def change_answer(
    made: ChangeMade, *, notes: Sequence[Finding] = (), headers: dict[str, str] | None = None, told: bool = True
) -> HttpResponse:
    """The answer to a write: 202 with the change and where to follow it, or 200 when nothing had to change. `told`: as
    of `change_json`.

    Its findings are those that a dry run tells: `notes` on the body that was sent, and those of the write itself.
    """
    if made.change is None:
        return json_answer({"changed": False}, headers=headers)
    edits = sorted(made.edits, key=lambda edit: (edit.type, edit.name))
    closed = secret_findings(environment_key=made.environment, edits=edits) if told else ()
    written = _written_json(made.change, edits[:MAX_EDITS], len(edits), (*notes, *made.findings, *closed))
    body = {**written, **_JUST_SAVED}
    return _accepted(body if told else _untold(body), headers)


def _accepted(body: dict[str, object], headers: Mapping[str, str] | None = None) -> HttpResponse:
    location = path_to("changes", str(body["id"]))
    return json_answer({**body, "changed": True}, status=202, headers={"Location": location, **(headers or {})})


urlpatterns = [
    path("changes/<uuid:change_id>", waits(ChangeView.as_view(), ChangeView)),
    path("changes/<uuid:change_id>/convergence", ChangeConvergenceView.as_view()),
    path("changes/<uuid:change_id>/undo", ChangeUndoView.as_view()),
]
EXAMPLES = {
    "change_undo": {"reason": "every listener is gone"},
}
