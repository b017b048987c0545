"""What the form of an incident's page asks for, done: each act by its word in the form."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from django.http import HttpRequest

from controlplane.accounts.principal import Principal
from controlplane.catalog.guarding import Consent
from controlplane.catalog.values import ChangeMade
from controlplane.clients.clock import database_now
from controlplane.common.errors import InputInvalid
from controlplane.console.posted import one_line, reason_of
from controlplane.console.times import clock_text, moment_given
from controlplane.http.moments import moment_or_span
from controlplane.incidents.muting import MUTES
from controlplane.incidents.selectors import IncidentDetail
from controlplane.incidents.services import (
    incident_assign,
    incident_mended_next,
    incident_mute,
    incident_quarantine,
    incident_release,
    incident_set_state,
    incident_unmute,
)
from controlplane.incidents.values import IncidentState

_MAX_NAME: Final = 150


@dataclass(frozen=True, slots=True)
class Sent:
    """The form that was sent, about which incident, by whom, and with which consent to a loss."""

    request: HttpRequest
    detail: IncidentDetail
    actor: Principal
    request_id: str
    consent: Consent

    @property
    def public_id(self) -> str:
        """The id of the incident."""
        return self.detail.incident.id


def incident_acted(sent: Sent) -> str:
    """Carry out the action that the form names; returns a sentence that says what was done. Raises
    ControlPlaneError.
    """
    act = _ACTS.get(sent.request.POST.get("action", ""))
    if act is None:
        raise InputInvalid("There is no such action. Nothing was changed.")
    return act(sent)


def _state(state: IncidentState, sent: Sent) -> str:
    incident_set_state(public_id=sent.public_id, state=state, actor=sent.actor, request_id=sent.request_id)
    return f"The incident is {state.value}."


def _mended_next(sent: Sent) -> str:
    incident_mended_next(public_id=sent.public_id, actor=sent.actor, request_id=sent.request_id)
    return (
        f"It is resolved once a newer revision than r{sent.detail.revision} is published; until then you look after it."
    )


def _assign(sent: Sent) -> str:
    given = sent.request.POST
    to = given.get("to", "")
    person = one_line(given.get("person", ""), "A login", _MAX_NAME) if to == "person" else ""
    team = one_line(given.get("team", ""), "An owner", _MAX_NAME) if to == "team" else ""
    incident_assign(
        public_id=sent.public_id,
        person=person,
        team=team,
        actor=sent.actor,
        request_id=sent.request_id,
    )
    return f"The incident is assigned to {person or team or 'nobody'}."


def _mute(sent: Sent) -> str:
    until = _until(sent.request)
    incident_mute(
        public_id=sent.public_id,
        until=until,
        reason=reason_of(sent.request),
        actor=sent.actor,
        request_id=sent.request_id,
    )
    return f"Channels are told nothing of it until {clock_text(until)}."


def _until(request: HttpRequest) -> datetime:
    given, now = request.POST, database_now()
    span = given.get("for", "")
    found = moment_given(given, "until", now) or (moment_or_span(span, now) if span in MUTES else None)
    if found is None:
        raise InputInvalid("Say until when: choose a time, or type one as 2026-07-01T12:00. Nothing was changed.")
    return found


def _unmute(sent: Sent) -> str:
    incident_unmute(public_id=sent.public_id, actor=sent.actor, request_id=sent.request_id)
    return "The incident is not muted any more; channels are told that it is there."


def _quarantine(sent: Sent) -> str:
    made = incident_quarantine(
        public_id=sent.public_id,
        reason=reason_of(sent.request),
        actor=sent.actor,
        request_id=sent.request_id,
        consent=sent.consent,
    )
    return _made(sent, made, "out of")


def _release(sent: Sent) -> str:
    made = incident_release(
        public_id=sent.public_id,
        reason=reason_of(sent.request),
        actor=sent.actor,
        request_id=sent.request_id,
    )
    return _made(sent, made, "back in")


def _made(sent: Sent, made: ChangeMade, where: str) -> str:
    if not made.changed:
        return "Nothing had to change."
    return f"Revision r{sent.detail.revision} is {where} service with the next build."


_ACTS: Final[Mapping[str, Callable[[Sent], str]]] = {
    **{state.value: partial(_state, state) for state in IncidentState},
    "mended_next": _mended_next,
    "assign": _assign,
    "mute": _mute,
    "unmute": _unmute,
    "quarantine": _quarantine,
    "release": _release,
}
