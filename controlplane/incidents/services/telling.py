"""Tells notifications what became of an incident, in the transaction in which it did."""

from controlplane.catalog.guarding import loss_from_json
from controlplane.clients.foreign_text import one_line
from controlplane.incidents.loss_words import kinds_told, losers_told, names_count, names_told
from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.selectors import clients_now
from controlplane.incidents.values import IncidentCause
from controlplane.journal.services import event_append
from xdscore.shares import SEVERAL

_MESSAGE_CHARS = 300
# What so many say by themselves is on nobody's share.
_MOST_ACCOUNTABLE = 20


def incident_told(kind: str, incident: Incident, *, again: bool = False, by: str = "", because: str = "") -> None:
    """Append an event about an incident, of which notifications are made. The client's words in it are cut, and
    harmless in any channel.

    `again`: whether the incident was told before and others now refuse the same; people hear of it only if they did not
        then.
    `by`: who resolved, ignores, assigned or unmuted it; empty where nobody did.
    `because`: where Parley unmuted it, why.
    """
    event_append(
        kind=kind,
        environment=incident.environment.key,
        subject=f"incident/{incident.public_id}",
        payload={
            "incident": str(incident.public_id),
            "cause": incident.cause,
            "caused_by": [] if kind == "incident.assigned" else _caused_by(incident),
            "again": again,
            "by": one_line(by, max_chars=_MESSAGE_CHARS),
            "because": because,
            "muted": incident.muted_until is not None,
            "assignee": one_line(incident.assignee, max_chars=_MESSAGE_CHARS),
            "team": incident.assigned_team,
            "recipient": incident.assigned_to if kind == "incident.assigned" else "",
            "state": incident.state,
            "type": incident.type,
            "name": one_line(incident.name, max_chars=_MESSAGE_CHARS),
            "confidence": incident.confidence,
            "change": incident.change,
            "author": incident.author,
            "family": incident.family,
            "revision": incident.revision,
            "nacked": incident.nacked,
            "sent": incident.sent,
            "since": incident.first_at.isoformat(),
            "now": "; ".join(
                f"{words} ({clients} {'client' if clients == 1 else 'clients'})"
                for words, clients in clients_now(incident)
            ),
            "message": one_line(incident.message, max_chars=_MESSAGE_CHARS),
            **_lost(incident),
        },
    )


def _caused_by(incident: Incident) -> list[str]:
    """The keys of those who caused the incident, for the limits on messages: whoever is accountable for its clients. A
    common key where these are many or not known; empty for a loss, which no data plane causes.
    """
    if incident.cause == IncidentCause.LOSS:
        return []
    rows = IncidentClient.objects.filter(incident=incident)
    found = list(rows.exclude(accountable="").values_list("accountable", flat=True).distinct()[: _MOST_ACCOUNTABLE + 1])
    return found if found and len(found) <= _MOST_ACCOUNTABLE else [SEVERAL]


def _lost(incident: Incident) -> dict[str, str]:
    """What the event about a loss tells: how many names were lost, which, which clients lost them, and their kinds."""
    if incident.loss is None:
        return {}
    loss = loss_from_json(incident.loss)
    said = {"lost": names_count(loss), "names": names_told(loss), "who": losers_told(loss), "kinds": kinds_told(loss)}
    return {name: one_line(text, max_chars=_MESSAGE_CHARS) for name, text in said.items()}
