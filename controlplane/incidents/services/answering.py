"""Gathers what clients said to a revision that some refuse: who refuses it in any words, and who acknowledged it."""

from collections.abc import Mapping
from datetime import datetime

from django.db import models

from controlplane.catalog.selectors import revision_list
from controlplane.clients.acknowledging import clients_acknowledging
from controlplane.clients.selectors import marks_by_kind
from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.verdict import MIN_IDENTITIES, Answers, ClientKey
from xdscore.resource_types import by_word


def answers_to(incident: Incident, *, served: Mapping[str, ClientKey], now: datetime) -> Answers:
    """The ACKs and refusals of the revision that an incident is about. `served`: who was sent it or is about to be;
    `now`: as the database has it.

    Clients refuse in the words of their kind, so that one revision may have several incidents: the refusals of all of
    them weigh against the ACKs, and a client that refused it in any of them acknowledged only what stands in for it.
    """
    refused = _clients(refusers(incident))
    proven = _is_proven(incident)
    acknowledged = _acknowledged(incident) if proven else {}
    earliest = refusers(incident).aggregate(earliest=models.Min("last_at"))["earliest"]
    return Answers(
        revision=incident.revision,
        refused=refused,
        acknowledged={client: key for client, key in acknowledged.items() if client not in refused},
        served=served,
        proven=proven,
        # The incident may be older, and its clients may have refused earlier revisions.
        age_s=(now - earliest).total_seconds() if earliest is not None else 0.0,
    )


def refusers(incident: Incident) -> models.QuerySet[IncidentClient]:
    """The rows of the clients that refuse the revision, be it over another incident about it; where nobody is named, of
    those that refuse over this incident.
    """
    if not _is_named(incident):
        return IncidentClient.objects.filter(incident=incident, revision=incident.revision)
    return IncidentClient.objects.filter(
        incident__environment=incident.environment,
        incident__type=incident.type,
        incident__name=incident.name,
        revision=incident.revision,
    )


def refused_by(incident: Incident) -> Mapping[str, frozenset[str]]:
    """The marks of the clients that refuse the revision, by kind of client."""
    return marks_by_kind(_clients(refusers(incident)))


def kinds_refusing(incident: Incident) -> frozenset[str]:
    """The kinds of clients of which enough verified identities refuse the revision to decide for others (N4)."""
    marks = marks_by_kind(_clients(refusers(incident).exclude(identity="")))
    return frozenset(kind for kind, each in marks.items() if len(each) >= MIN_IDENTITIES)


def _clients(rows: models.QuerySet[IncidentClient]) -> dict[str, ClientKey]:
    columns = ("client", "identity", "node_id")
    return {client: (identity, node_id) for client, identity, node_id in rows.values_list(*columns)}


def _is_named(incident: Incident) -> bool:
    return bool(incident.name) and incident.revision > 0


def _is_proven(incident: Incident) -> bool:
    """Whether some client acknowledged the refused revision; False where nobody is named."""
    if not _is_named(incident):
        return False
    history = revision_list(environment_key=incident.environment.key, kind=by_word[incident.type], name=incident.name)
    return history.filter(number=incident.revision, proof__isnull=False).exists()


def _acknowledged(incident: Incident) -> Mapping[str, ClientKey]:
    return clients_acknowledging(
        environment_key=incident.environment.key, word=incident.type, name=incident.name, since=incident.since
    )
