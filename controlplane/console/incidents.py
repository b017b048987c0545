"""One incident, with all that is known of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change
from controlplane.catalog.owners import owner_list
from controlplane.catalog.rights import require
from controlplane.catalog.selectors import change_get
from controlplane.clients.nack_times import nack_times_of_name
from controlplane.common.errors import ControlPlaneError, NotFound
from controlplane.console.charts import Chart, since_chart
from controlplane.console.comments import comments_shown
from controlplane.console.diffs import first_changed
from controlplane.console.incident_acts import Sent, incident_acted
from controlplane.console.losses import Lost
from controlplane.console.pages import Page
from controlplane.discussion.values import About, Subject
from controlplane.http.moments import moment_named
from controlplane.incidents.attribution import Confidence
from controlplane.incidents.fingerprint import PROVEN_ALGORITHM
from controlplane.incidents.muting import MUTES
from controlplane.incidents.selectors import IncidentDetail, incident_get
from controlplane.incidents.triage import (
    incident_difference,
    incident_events,
)
from controlplane.incidents.values import CROWDED, TRANSITIONS, UNRESOLVED
from controlplane.journal.models import AuditEvent
from controlplane.listing.runs import runs
from controlplane.snapshots.history import epoch_before
from controlplane.undo.rights import may_undo
from xdscore.codes import shown
from xdscore.resource_types import by_word

_SUSPECTS_SHOWN: Final = 100
_BECAUSE: Final = {
    Confidence.ISOLATED: "Proven: it was sent to a client alone, and refused.",
    Confidence.ONLY_CHANGE: "Sure: it was the only thing new to the client since its last acknowledgement.",
    Confidence.NAMED_IN_TEXT: "Likely: several things were new to the client, and its text names this one.",
    Confidence.ONE_OF: "Unsure: several things were new to the client, and its text names none of them.",
    Confidence.UNKNOWN: "Unknown: neither what was new to the client nor its text says which resource it is.",
}

_DONE: Final = {
    "incident.open": "opened it again",
    "incident.acknowledged": "looks after it",
    "incident.resolved": "resolved it",
    "incident.ignored": "ignores it: counted, but nobody is told",
    "comment.added": "commented",
    "comment.edited": "edited a comment",
    "comment.deleted": "deleted a comment",
    "incident.promised": "says that the next revision mends it",
    "incident.muted": "muted it",
    "incident.unmuted": "ended the mute",
    "incident.assigned": "assigned it",
    "quarantine.opened": "took the refused revision out of service",
    "quarantine.released": "put the refused revision back into service",
}

# What Parley itself may have done, and then says why.
_EXPLAINED: Final = frozenset({"incident.resolved", "incident.unmuted"})


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was done about an incident, on its timeline.

    `who`, `reason`: who did it, and why, in their words.
    `because`: where Parley did it, why.
    `to`: to whom it was assigned; `until`: until when it was muted.
    `change`, `author`: the change that caused it, and who made that.
    `incident`: another incident that tells more.
    """

    at: datetime
    who: str
    what: str
    reason: str
    request_id: str
    because: str = ""
    change: str = ""
    author: str = ""
    incident: str = ""
    to: str = ""
    until: datetime | None = None


class IncidentPage(Page):
    """The page of one incident.

    About refusals: what clients said, which resource is the culprit and why, which clients refuse it, and what to do.
    About a loss: which clients lost what, by which change, and how to undo that.
    """

    template = "incidents/incident.html"
    needs = {"GET": None, "POST": None}
    why = "reason"

    def get(self, request: HttpRequest, incident_id: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """The page of the incident as it is now."""
        return self._page(self._visible(incident_id))

    def post(self, request: HttpRequest, incident_id: str) -> HttpResponse:
        """Carry out the action that the form names, then redirect to the page."""
        detail = self._visible(incident_id)
        require(self.principal, Role.OPERATOR, detail.incident.environment)
        try:
            sent = Sent(request, detail, self.principal, self.request_id, self.consent)
            messages.success(request, incident_acted(sent))
        except ControlPlaneError as error:
            return self._page(detail, error=error)
        return redirect(request.path)

    def _visible(self, incident_id: str) -> IncidentDetail:
        """The incident with this id. Raises NotFound, with one text, where there is none and where the user may not see
        it.
        """
        detail = incident_get(public_id=incident_id)
        try:
            self.enter(detail.incident.environment)
        except NotFound:
            raise NotFound(f"There is no incident '{shown(incident_id, 64)}'.") from None
        return detail

    def _page(self, detail: IncidentDetail, *, error: ControlPlaneError | None = None) -> HttpResponse:
        incident = detail.incident
        shared = {
            "detail": detail,
            "incident": incident,
            "events": runs([_event(each) for each in incident_events(detail)], _said),
            "steps": frozenset(state.value for state in TRANSITIONS[incident.state]),
            "unresolved": incident.state in UNRESOLVED,
            "mine": incident.assignee is not None and incident.assignee.id == str(self.principal.id),
            "teams": owner_list(environment_key=incident.environment),
            "mutes": MUTES,
            "given": self.request.POST if error is not None else {},
            "error": error,
            **comments_shown(self, Subject(About.INCIDENT, incident.environment, incident.id, detail.number)),
        }
        status = 200 if error is None else error.status
        if incident.loss is not None:
            lost = Lost(incident.loss, incident)
            change = change_get(public_id=incident.change)
            context = {**shared, "lost": lost, "loss": incident.loss, "change": change}
            return self.page(context, template="incidents/loss.html", status=status)
        told = _refusal(detail)
        suspect = told["suspect"]
        take_back = shared["unresolved"] and isinstance(suspect, Change) and may_undo(self.principal, suspect)
        return self.page({**shared, **told, "take_back": take_back}, status=status)


def _refusal(detail: IncidentDetail) -> dict[str, object]:
    """The template values that only incidents about refusals have."""
    incident = detail.incident
    difference = incident_difference(detail)
    return {
        "kind": by_word[incident.type],
        "because": _BECAUSE[incident.confidence],
        "crowded": detail.normalised == CROWDED,
        "by_revision": detail.algorithm == PROVEN_ALGORITHM,
        "suspects": detail.suspects[:_SUSPECTS_SHOWN],
        "more_suspects": max(len(detail.suspects) - _SUSPECTS_SHOWN, 0),
        "difference": difference,
        "changed_line": first_changed(difference.text) if difference is not None else 0,
        "suspect": change_get(public_id=incident.change) if incident.change else None,
        "sample": detail.samples[0] if detail.samples else None,
        "more_samples": _others(detail),
        "refused": "is refused" if incident.state in UNRESOLVED else "was refused",
        "before": epoch_before(environment_key=incident.environment, epoch=detail.opened_epoch),
        "chart": _chart(detail),
    }


def _chart(detail: IncidentDetail) -> Chart | None:
    """When clients refused the resource that the incident is about, by family; None where it names none."""
    incident = detail.incident
    if not incident.name:
        return None
    rows = nack_times_of_name(
        environment_key=incident.environment, word=incident.type, name=incident.name, since=detail.first_at
    )
    return since_chart(rows, detail.first_at, detail.last_at, label="family")


def _others(detail: IncidentDetail) -> tuple[str, ...]:
    """The texts of samples that differ from the text of the first sample, each once; of those that have one."""
    texts = dict.fromkeys(sample.text for sample in detail.samples)
    return tuple(filter(None, tuple(texts)[1:]))


def _event(event: AuditEvent) -> Event:
    told = {key: str(value) for key, value in event.detail.items()} if isinstance(event.detail, dict) else {}
    return Event(
        event.at,
        event.actor,
        _DONE.get(event.verb, event.verb) + (" on the resource" if told.get("about") == "resource" else ""),
        told.get("reason", ""),
        event.request_id,
        because=told.get("because", "") if event.verb in _EXPLAINED else "",
        change=told.get("change", "") if event.verb == "incident.resolved" else "",
        author=told.get("author", ""),
        incident=told.get("incident", "") if event.verb == "incident.resolved" else "",
        to=_assigned(told) if event.verb == "incident.assigned" else "",
        until=moment_named(told.get("until", "")) if event.verb == "incident.muted" else None,
    )


def _said(event: Event) -> tuple[object, ...]:
    """What two events have in common that are folded: everything but when they were, and by which request."""
    return (event.who, event.what, event.reason, event.because, event.change, event.incident, event.to, event.until)


def _assigned(told: Mapping[str, str]) -> str:
    name = told.get("assignee", "")
    return f"the team {name}" if told.get("team") == "True" else name or "nobody"


urlpatterns = [
    path("incidents/<str:incident_id>", IncidentPage.as_view(), name="incident"),
]
