"""Gathers what clients said to a revision that some refuse: who refuses it in any words, and who acknowledged it."""

from collections.abc import Mapping
from datetime import datetime

from django.db import models

from controlplane.catalog.selectors import revision_list
from controlplane.clients.selectors import marks_by_kind
from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.verdict import MIN_IDENTITIES, Answers, ClientKey
from xdscore.resource_types import by_word


def answers_to(
    incident: Incident, *, served: Mapping[str, ClientKey], acknowledged: Mapping[str, ClientKey], now: datetime
) -> Answers:
    """The ACKs and refusals of the revision that an incident is about. `served`: the clients that were sent it or will
    be; `acknowledged`: those that acknowledged it; `now`: the time by the database's clock.

    One revision may have several incidents, because clients refuse it in different words. The refusals of all of them
    count, and a client in any of them counts as refusing even if it acknowledged the revision before.
    """
    refused = _clients(refusers(incident))
    proven = _is_proven(incident)
    earliest = refusers(incident).aggregate(earliest=models.Min("last_at"))["earliest"]
    return Answers(
        revision=incident.revision,
        refused=refused,
        acknowledged={client: key for client, key in acknowledged.items() if client not in refused} if proven else {},
        served=served,
        proven=proven,
        # The incident may be older, and its clients may have refused earlier revisions.
        age_s=(now - earliest).total_seconds() if earliest is not None else 0.0,
    )


def refusers(incident: Incident) -> models.QuerySet[IncidentClient]:
    """The rows of the clients that refuse the incident's revision, also by other incidents about that revision. Where
    no culprit is known: only by this incident.
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
    """The marks (hashes that stand for clients) of the clients that refuse the incident's revision, by kind of
    client.
    """
    return marks_by_kind(_clients(refusers(incident)))


def kinds_refusing(incident: Incident) -> frozenset[str]:
    """The kinds of clients of which so many verified identities refuse the revision that it is withheld from the whole
    kind (N4).
    """
    marks = marks_by_kind(_clients(refusers(incident).exclude(identity="")))
    return frozenset(kind for kind, each in marks.items() if len(each) >= MIN_IDENTITIES)


def _clients(rows: models.QuerySet[IncidentClient]) -> dict[str, ClientKey]:
    columns = ("client", "identity", "node_id")
    return {client: (identity, node_id) for client, identity, node_id in rows.values_list(*columns)}


def _is_named(incident: Incident) -> bool:
    return bool(incident.name) and incident.revision > 0


def _is_proven(incident: Incident) -> bool:
    """Whether any client has acknowledged the refused revision. False where no culprit is known."""
    if not _is_named(incident):
        return False
    history = revision_list(environment_key=incident.environment.key, kind=by_word[incident.type], name=incident.name)
    return history.filter(number=incident.revision, proof__isnull=False).exists()
