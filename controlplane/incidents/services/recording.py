"""Writes incidents: one transaction for a batch of NACKs, after everything was read and judged (resolutions D30)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

import structlog
from django.db import transaction

from controlplane.catalog.selectors import EnvironmentState, environment_list
from controlplane.clients.selectors import NackView
from controlplane.clients.services import nacks_mark_digested
from controlplane.incidents.afterwards import now_of
from controlplane.incidents.attribution import Confidence
from controlplane.incidents.fingerprint import ALGORITHM
from controlplane.incidents.models import Incident, IncidentClient, IncidentNack
from controlplane.incidents.services.accusations import Accusation, Reader
from controlplane.incidents.services.judging import impact_count
from controlplane.incidents.services.resolution import Resolution, resolution_record
from controlplane.incidents.services.telling import incident_told
from controlplane.incidents.values import CROWDED, UNRESOLVED, IncidentCause, IncidentState

log = structlog.get_logger(__name__)

# An impact is judged again for this long after the last refusal: sending goes on meanwhile, and the ACKs of warming
# clusters take up to 15 s (resolutions D25, U2).
SETTLE = timedelta(seconds=60)
SAMPLES = 20
# The texts are the clients' own, so somebody could make incidents without end: beyond these they share one per type and
# family.
MAX_UNRESOLVED = 1_000

_LOGGED_CHARS = 300


def nacks_record(nacks: Sequence[NackView]) -> int:
    """Write what these NACKs mean and mark them digested; how many were new. Safe to call twice with the same.

    A NACK counts for every resource it blames; one that blames nobody counts for an incident without a name.
    """
    cases = Reader().cases(nacks)
    environments = {environment.key: environment for environment in environment_list()}
    with transaction.atomic(durable=True):
        fresh = nacks_mark_digested(ids=(nack.id for nack in nacks))
        happened = [
            (event, incident)
            for case in cases
            if (environment := environments.get(case.newest.environment)) is not None
            if (taken := [(nack, revision) for nack, revision in case.nacks if nack.id in fresh])
            for event, incident in _write(environment, case.newest, taken)
        ]
        for event, incident in happened:
            impact_count(incident)
            incident.told_nacked = incident.nacked
            incident.save(update_fields=["nacked", "sent", "told_nacked"])
            incident_told(event, incident)
    for event, incident in happened:
        log.warning(
            event,
            incident=str(incident.public_id),
            environment=incident.environment.key,
            type=incident.type,
            name=incident.name,
            confidence=incident.confidence,
            change=incident.change,
            author=incident.author,
            reason=incident.message[:_LOGGED_CHARS],
        )
    return len(fresh)


Taken = Sequence[tuple[NackView, int]]


def _write(environment: EnvironmentState, accusation: Accusation, taken: Taken) -> list[tuple[str, Incident]]:
    """Open or continue one incident; what is worth saying about it."""
    incident = _find(environment, accusation)
    if incident is None and _is_crowded(environment):
        accusation = replace(
            accusation, name="", version="", revision=0, confidence=Confidence.UNKNOWN, normalised=CROWDED, suspects=()
        )
        incident = _find(environment, accusation)
    happened: list[tuple[str, Incident]] = []
    if incident is None:
        incident = _open(environment, accusation, taken)
        happened.append(("incident.opened", incident))
    elif _continue(incident, environment, accusation, taken):
        happened.append(("incident.regressed", incident))
    _count_clients(incident, taken)
    _keep_samples(incident, taken)
    if accusation.name:
        explained = _explained(environment, accusation, taken, incident)
        happened.extend(("incident.explained", other) for other in explained)
    return happened


def _find(environment: EnvironmentState, accusation: Accusation) -> Incident | None:
    return (
        Incident.objects.select_for_update(of=("self",))
        .select_related("environment")
        .filter(environment=environment.id, algorithm=ALGORITHM, fingerprint=accusation.fingerprint)
        .first()
    )


def _is_crowded(environment: EnvironmentState) -> bool:
    refusals = Incident.objects.filter(environment=environment.id, cause=IncidentCause.NACK.value)
    return refusals.filter(state__in=UNRESOLVED).count() >= MAX_UNRESOLVED


def _open(environment: EnvironmentState, accusation: Accusation, taken: Taken) -> Incident:
    first_at = min(nack.at for nack, _ in taken)
    last_at = max(nack.at for nack, _ in taken)
    return Incident.objects.create(
        environment_id=environment.id,
        algorithm=ALGORITHM,
        fingerprint=accusation.fingerprint,
        type=accusation.word,
        name=accusation.name,
        family=accusation.family.value,
        confidence=accusation.confidence.value,
        message=taken[0][0].text,
        normalised=accusation.normalised,
        suspects=[list(content) for content in accusation.suspects],
        change=accusation.change,
        author=accusation.author,
        revision=accusation.revision,
        version=accusation.version,
        since=accusation.written_at or first_at - SETTLE,
        first_at=first_at,
        last_at=last_at,
        opened_epoch=environment.epoch,
        settles_at=last_at + SETTLE,
    )


def _continue(incident: Incident, environment: EnvironmentState, accusation: Accusation, taken: Taken) -> bool:
    """Add to an incident; whether it came back.

    Only a refusal of what is current brings a resolved incident back: a client that still runs, and refuses, an older
    revision says nothing new (ux.md 9.8).
    """
    incident.last_at = max(incident.last_at, *(nack.at for nack, _ in taken))
    incident.settles_at = incident.last_at + SETTLE
    incident.confidence = Confidence(incident.confidence).or_surer(accusation.confidence).value
    if accusation.revision > incident.revision or not accusation.name:
        incident.revision, incident.version = accusation.revision, accusation.version
        incident.since = accusation.written_at or incident.since
        incident.suspects = [list(content) for content in accusation.suspects]
    regressed = incident.state == IncidentState.RESOLVED and accusation.current
    if regressed:
        incident.state = IncidentState.OPEN.value
        incident.opened_epoch, incident.resolved_epoch = environment.epoch, None
        incident.change, incident.author = accusation.change, accusation.author
    incident.save()
    return regressed


def _count_clients(incident: Incident, taken: Taken) -> None:
    known = {
        row.client: row
        for row in IncidentClient.objects.filter(incident=incident, client__in={nack.client for nack, _ in taken})
    }
    new: dict[str, IncidentClient] = {}
    words: dict[object, str] = {}
    for nack, revision in taken:
        # In a storm thousands say the same.
        said = (nack.family, nack.kept, nack.healing)
        if said not in words:
            words[said] = str(now_of(nack, incident.name) or "") if incident.name else ""
        row = known.get(nack.client) or new.get(nack.client)
        if row is None:
            new[nack.client] = IncidentClient(
                incident=incident,
                client=nack.client,
                identity=nack.identity,
                node_id=nack.node_id,
                revision=revision,
                now=words[said],
                first_at=nack.at,
                last_at=nack.at,
                count=nack.repeats,
            )
        else:
            row.revision = max(row.revision, revision)
            row.now = words[said] if nack.at >= row.last_at else row.now
            row.last_at = max(row.last_at, nack.at)
            row.count += nack.repeats
    # One statement for many rows: an UPDATE of each would keep SQLite's only writer waiting through a storm.
    IncidentClient.objects.bulk_create(
        (*known.values(), *new.values()),
        batch_size=500,
        update_conflicts=True,
        unique_fields=("incident", "client"),
        update_fields=("revision", "now", "last_at", "count"),
    )


def _keep_samples(incident: Incident, taken: Taken) -> None:
    room = SAMPLES - IncidentNack.objects.filter(incident=incident).count()
    samples = {nack.id: nack for nack, _ in taken}
    IncidentNack.objects.bulk_create(
        (IncidentNack(incident=incident, nack_id=pk) for pk in list(samples)[: max(room, 0)]), ignore_conflicts=True
    )


def _explained(
    environment: EnvironmentState, accusation: Accusation, taken: Taken, named: Incident
) -> Iterable[Incident]:
    """Resolve incidents without a name whose clients now say which of the suspects it is.

    The engine sent them apart.
    """
    clients = {nack.client for nack, _ in taken}
    unnamed = Incident.objects.filter(
        environment=environment.id, type=accusation.word, name="", state__in=UNRESOLVED, clients__client__in=clients
    )
    for incident in unnamed.select_related("environment").distinct():
        if [accusation.name, accusation.version] in incident.suspects:
            because = f"clients say by now which resource it is: the {accusation.word} '{accusation.name}'"
            resolution_record(incident, Resolution(because, incident=str(named.public_id)))
            incident.state, incident.resolved_epoch = IncidentState.RESOLVED.value, environment.epoch
            incident.save(update_fields=["state", "resolved_epoch"])
            yield incident
