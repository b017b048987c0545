"""What people agree upon about an incident: who looks after it, and until when it is muted."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.api.answers import json_answer
from controlplane.api.bodies import document_of, values_of
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import body_of_shape, described
from controlplane.api.shapes.facts import AssignIn, IncidentDetailOut, MuteIn
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.api.views.incidents import detail_json, operated
from controlplane.clients.clock import database_now
from controlplane.common.errors import InputInvalid
from controlplane.http.moments import moment_or_span
from controlplane.incidents.selectors import incident_get
from controlplane.incidents.services import incident_assign, incident_mute, incident_unmute
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.schema.codes import VALUE_REFUSED


class _Post(ApiView):
    """The base class of what an operator of an incident's environment may do."""

    needs = {"POST": Needs.CHECK}

    def check(self, request: Request, incident_id: str) -> None:
        """Raise NotFound when the caller may not see the incident, Forbidden when they are no operator of its
        environment.
        """
        operated(request, incident_id)


class IncidentAssignView(_Post):
    """Say who is to look after an incident."""

    @extend_schema(
        operation_id="incident_assign",
        summary="Assign an incident to a person or a team",
        request=body_of_shape(AssignIn),
        responses=described(200, IncidentDetailOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request, incident_id: str) -> HttpResponse:
        """Assign the incident, or take it from whoever it is assigned to."""
        Query(request, ()).done()
        said = values_of(document_of(request), AssignIn)
        incident_assign(
            public_id=incident_id,
            person=said.get("person") or "",
            team=said.get("team") or "",
            actor=principal_of(request),
            request_id=request_id(),
        )
        return json_answer(detail_json(incident_get(public_id=incident_id)))


class IncidentMuteView(_Post):
    """Mute an incident."""

    @extend_schema(
        operation_id="incident_mute",
        summary="Tell channels nothing of an incident for a time",
        request=body_of_shape(MuteIn),
        responses=described(200, IncidentDetailOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request, incident_id: str) -> HttpResponse:
        """Mute the incident; another mute takes the place of the one that it has."""
        Query(request, ()).done()
        said = values_of(document_of(request), MuteIn)
        until = moment_or_span(said["until"], database_now())
        if until is None:
            detail = (
                f"'{shown(said['until'], 40)}' is neither a time such as 2026-07-01T12:00:00Z nor a span such as 8h."
            )
            finding = Finding(code=VALUE_REFUSED.code, severity=Severity.ERROR, detail=detail, pointer="/until")
            raise InputInvalid(f"{detail} Nothing was changed.", findings=(finding,))
        incident_mute(
            public_id=incident_id,
            until=until,
            reason=said["reason"],
            actor=principal_of(request),
            request_id=request_id(),
        )
        return json_answer(detail_json(incident_get(public_id=incident_id)))


class IncidentUnmuteView(_Post):
    """End the mute of an incident."""

    @extend_schema(
        operation_id="incident_unmute",
        summary="Tell channels of an incident again",
        request=None,
        responses=described(200, IncidentDetailOut, 400, 401, 403, 404, 409, 503),
    )
    def post(self, request: Request, incident_id: str) -> HttpResponse:
        """End the mute, where there is one."""
        Query(request, ()).done()
        incident_unmute(public_id=incident_id, actor=principal_of(request), request_id=request_id())
        return json_answer(detail_json(incident_get(public_id=incident_id)))


urlpatterns = [
    path("incidents/<slug:incident_id>/assign", IncidentAssignView.as_view()),
    path("incidents/<slug:incident_id>/mute", IncidentMuteView.as_view()),
    path("incidents/<slug:incident_id>/unmute", IncidentUnmuteView.as_view()),
]
EXAMPLES = {
    "incident_assign": {"person": "mia"},
    "incident_mute": {"until": "8h", "reason": "the fix is on its way"},
}
