"""Incidents: what clients refuse or lost, and what is done about it."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import person_or_token
from controlplane.api.answers import json_answer, moment
from controlplane.api.bodies import document_of, values_of
from controlplane.api.kinds import kind_named, type_words
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import ACCEPT_LOSS, CURSOR, INCIDENT_FILTERS, body_of_shape, described, page_of
from controlplane.api.shapes.changes import ChangeMadeOut, IncidentOut, UnchangedOut
from controlplane.api.shapes.facts import IncidentDetailOut, IncidentPatchIn, ReasonIn
from controlplane.api.views.base import ApiView, Needs, principal_of, seen_environments
from controlplane.api.views.changes import change_answer, incident_json
from controlplane.catalog.rights import require
from controlplane.clients.clock import database_now
from controlplane.common.errors import NotFound
from controlplane.incidents.filtering import NOBODY, IncidentFilter
from controlplane.incidents.selectors import IncidentDetail, incident_get, incident_list
from controlplane.incidents.services import (
    incident_mended_next,
    incident_quarantine,
    incident_release,
    incident_set_state,
)
from controlplane.incidents.values import Assignee, IncidentCause, IncidentState
from xdscore.names import canonical, name_problem


class IncidentListView(ApiView):
    """List the incidents of the environments that the caller may see."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="incident_list",
        summary="List incidents, the one refused last first",
        parameters=[*CURSOR, *INCIDENT_FILTERS],
        responses=described(200, page_of(IncidentOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of incidents, the one with the latest refusal or loss first."""
        filters = ("cause", "type", "name", "resource", "client", "author", "assignee", "since", "until")
        query = Query(request, (*CURSOR_PARAMETERS, "environment", "state", *filters))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        after, environment = query.text("after", at_most=64), query.text("environment", at_most=63)
        state = query.choice("state", [each.value for each in IncidentState], "")
        wanted = _wanted(query, principal_of(request))
        query.done()
        found = incident_list(
            environment_keys=seen_environments(request, environment),
            states=(IncidentState(state),) if state else (),
            wanted=wanted,
            after=after,
            limit=limit + 1,
        )
        last = found[limit - 1].id if len(found) > limit else ""
        return json_answer(cursor_page(request, [incident_json(each) for each in found[:limit]], limit, last))


class IncidentView(ApiView):
    """Read one incident, and change its state."""

    needs = {"GET": Needs.ANYBODY, "PATCH": Needs.ANYBODY}

    @extend_schema(
        operation_id="incident_get",
        summary="Read an incident with its clients and samples",
        responses=described(200, IncidentDetailOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, incident_id: str) -> HttpResponse:
        """The incident as it is now, with its clients and with samples of what they said."""
        Query(request, ()).done()
        return json_answer(detail_json(_visible(request, incident_id)))

    @extend_schema(
        operation_id="incident_update",
        summary="Say what is being done about an incident",
        request=body_of_shape(IncidentPatchIn),
        responses=described(200, IncidentDetailOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def patch(self, request: Request, incident_id: str) -> HttpResponse:
        """Set the state of the incident, or say that the next revision resolves it."""
        Query(request, ()).done()
        operated(request, incident_id)
        values = values_of(document_of(request), IncidentPatchIn)
        state, who = IncidentState(values["state"]), principal_of(request)
        if values.get("in_next_revision", False):
            incident_mended_next(public_id=incident_id, actor=who, request_id=request_id())
        else:
            incident_set_state(public_id=incident_id, state=state, actor=who, request_id=request_id())
        return json_answer(detail_json(incident_get(public_id=incident_id)))


class IncidentQuarantineView(ApiView):
    """Quarantine the revision that an incident is about."""

    needs = {"POST": Needs.CHECK}

    def check(self, request: Request, incident_id: str) -> None:
        """Raise NotFound when the caller may not see the incident, Forbidden when they are no operator of its
        environment.
        """
        operated(request, incident_id)

    @extend_schema(
        operation_id="incident_quarantine",
        summary="Publish the last acknowledged revision in place of the refused one",
        parameters=[ACCEPT_LOSS],
        request=body_of_shape(ReasonIn),
        responses=described(202, ChangeMadeOut, 400, 401, 403, 404, 409, 413, 415, 422, 503, unchanged=UnchangedOut),
    )
    def post(self, request: Request, incident_id: str) -> HttpResponse:
        """Put the refused revision into quarantine, by a new change."""
        query = Query(request, ("accept_loss",))
        consent = query.consent()
        query.done()
        reason = values_of(document_of(request), ReasonIn)["reason"]
        made = incident_quarantine(
            public_id=incident_id,
            reason=reason,
            actor=principal_of(request),
            request_id=request_id(),
            consent=consent,
        )
        return change_answer(made)


class IncidentReleaseView(ApiView):
    """Release the revision of an incident from quarantine."""

    needs = {"POST": Needs.CHECK}

    def check(self, request: Request, incident_id: str) -> None:
        """Raise NotFound when the caller may not see the incident, Forbidden when they are no operator of its
        environment.
        """
        operated(request, incident_id)

    @extend_schema(
        operation_id="incident_release",
        summary="Publish the refused revision again",
        request=body_of_shape(ReasonIn),
        responses=described(202, ChangeMadeOut, 400, 401, 403, 404, 409, 413, 415, 422, 503, unchanged=UnchangedOut),
    )
    def post(self, request: Request, incident_id: str) -> HttpResponse:
        """Serve the refused revision again, by a new change."""
        Query(request, ()).done()
        reason = values_of(document_of(request), ReasonIn)["reason"]
        made = incident_release(
            public_id=incident_id, reason=reason, actor=principal_of(request), request_id=request_id()
        )
        return change_answer(made)


def _wanted(query: Query, asks: Principal) -> IncidentFilter:
    kind = query.parsed("type", kind_named, None, wanted=f"must be one of {type_words()}, or a type URL")
    cause = query.choice("cause", [each.value for each in IncidentCause], "")
    since, until = query.span(database_now)
    return IncidentFilter(
        cause=IncidentCause(cause) if cause else None,
        word=kind.word if kind is not None else "",
        name=query.text("name"),
        resource=query.parsed("resource", _resource_named, None, wanted="must be TYPE/NAME, such as cluster/pay"),
        client=query.text("client"),
        author=query.text("author", at_most=150),
        assignee=query.parsed(
            "assignee",
            lambda text: _assignee_named(text, asks),
            None,
            wanted="must be me, nobody, person:LOGIN or team:OWNER",
        ),
        since=since,
        until=until,
    )


def _assignee_named(text: str, asks: Principal) -> Assignee | None:
    """Whom a text such as `team:payments` means; None for a text of another form."""
    word, _, name = text.partition(":")
    if text == "me":
        return Assignee(asks.name, str(person_or_token(asks)))
    if text == "nobody":
        return NOBODY
    return Assignee(name[:150], team=word == "team") if word in ("person", "team") and name else None


def _resource_named(text: str) -> tuple[str, str] | None:
    """The type's word and the name in a text such as `cluster/pay`; the name may have slashes. None for a text of
    another form.
    """
    word, _, name = text.partition("/")
    kind = kind_named(word)
    return (kind.word, canonical(name)) if kind is not None and name and not name_problem(name) else None


def _visible(request: Request, incident_id: str) -> IncidentDetail:
    """The incident with this id. Raises NotFound, with one text, where there is none and where the caller may not see
    it.
    """
    detail = incident_get(public_id=incident_id)
    if not principal_of(request).may(Role.VIEWER, detail.incident.environment):
        raise NotFound(f"There is no incident '{incident_id[:64]}'.")
    return detail


def operated(request: Request, incident_id: str) -> None:
    """Raise NotFound when the caller may not see the incident, Forbidden when they are no operator of its
    environment.
    """
    require(principal_of(request), Role.OPERATOR, _visible(request, incident_id).incident.environment)


def detail_json(detail: IncidentDetail) -> dict[str, object]:
    return {
        **incident_json(detail.incident),
        "loss": detail.incident.loss.as_json() if detail.incident.loss is not None else None,
        "algorithm": detail.algorithm,
        "fingerprint": detail.fingerprint,
        "normalised": detail.normalised,
        "family": detail.family.value,
        "author": detail.author,
        "assignee": detail.incident.assignee.name if detail.incident.assignee is not None else "",
        "mended_by": detail.mended_by,
        "revision": detail.revision,
        "quarantined": detail.quarantined,
        "verdict": None
        if detail.verdict is None
        else {
            "outcome": detail.verdict.outcome.value,
            "reason": detail.verdict.reason,
            "suggested": detail.verdict.suggested,
        },
        "suspects": list(detail.suspects),
        "used_by": [{"type": each.type, "name": each.name, "pointer": each.pointer} for each in detail.used_by],
        "first_at": moment(detail.first_at),
        "last_at": moment(detail.last_at),
        "opened_epoch": detail.opened_epoch,
        "resolved_epoch": detail.resolved_epoch,
        "refusing": [
            {
                "id": each.id,
                "identity": each.identity,
                "node_id": each.node_id,
                "revision": each.revision,
                "now": each.now,
                "count": each.count,
                "first_at": moment(each.first_at),
                "last_at": moment(each.last_at),
            }
            for each in detail.refusing
        ],
        "samples": [
            {
                "client": each.client,
                "node_id": each.node_id,
                "version": each.version,
                "code": each.code,
                "text": each.text,
                "at": moment(each.at),
            }
            for each in detail.samples
        ],
    }


urlpatterns = [
    path("incidents", IncidentListView.as_view()),
    path("incidents/<slug:incident_id>", IncidentView.as_view()),
    path("incidents/<slug:incident_id>/quarantine", IncidentQuarantineView.as_view()),
    path("incidents/<slug:incident_id>/release", IncidentReleaseView.as_view()),
]
EXAMPLES = {
    "incident_update": {"state": "acknowledged"},
    "incident_quarantine": {"reason": "clients refuse it"},
    "incident_release": {"reason": "the certificate is there now"},
}
