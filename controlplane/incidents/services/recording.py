"""Writes incidents: one transaction for a batch of NACKs, after everything was read and judged (decisions D30)."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Count

from controlplane.catalog.change_names import change_named, named_fields
from controlplane.catalog.selectors import EnvironmentState, environment_list
from controlplane.clients.selectors import NackView
from controlplane.clients.services import nacks_mark_digested
from controlplane.incidents.afterwards import now_of
from controlplane.incidents.attribution import Confidence
from controlplane.incidents.fingerprint import ALGORITHM, PROVEN_ALGORITHM
from controlplane.incidents.models import Incident, IncidentClient, IncidentNack
from controlplane.incidents.muting import joined
from controlplane.incidents.services.crowding import Crowd, Crowds, Taken
from controlplane.incidents.services.finding import Finder, incidents_locked, same_fault
from controlplane.incidents.services.judging import impact_count
from controlplane.incidents.services.muting import UNMUTED, wordings_heard
from controlplane.incidents.services.reach import Reach
from controlplane.incidents.services.reading import Reader, Refusal, RefusalGroup
from controlplane.incidents.services.refusal_lines import refusals_told
from controlplane.incidents.services.resolution import Resolution, resolution_record
from controlplane.incidents.services.telling import incident_told
from controlplane.incidents.values import CROWDED, UNRESOLVED, WORDLESS, IncidentState

log = structlog.get_logger(__name__)

# An impact is judged again for this long after the last refusal: sending goes on meanwhile, and the ACKs of warming
# clusters take up to 15 s (decisions D25, U2).
SETTLE = timedelta(seconds=60)
SAMPLES = 20
# Of them so many of each who is accountable, so that whoever invents words leaves room for those of the others.
SAMPLES_OF_ONE = 15

_LOGGED_CHARS = 300


def nacks_record(nacks: Sequence[NackView]) -> int:
    """Count these NACKs in incidents, which are opened where there is none, and mark the NACKs as digested. Returns how
    many had not been digested before; a second call with the same changes nothing.

    A NACK counts for each of its culprits; without any, for an incident without a name.
    """
    # What is proven first: what only words tell then finds the incident that is about it.
    groups = sorted(Reader().groups(nacks), key=lambda group: not group.newest.confidence.proven)
    environments = {environment.key: environment for environment in environment_list()}
    with transaction.atomic(durable=True):
        fresh = nacks_mark_digested(ids=(nack.id for nack in nacks))
        batch = _Batch(Finder(group.newest for group in groups), Crowds())
        happened = [
            (event, incident)
            for group in groups
            if (environment := environments.get(group.newest.environment)) is not None
            if (taken := [(nack, revision) for nack, revision in group.nacks if nack.id in fresh])
            for event, incident in _write(environment, group, taken, batch)
        ]
        happened = [(event, incident) for event, incident in happened if incident.pk not in batch.crowds.made_room]
        happened.extend(each for crowd in batch.crowds.crowds for each in _write_crowd(crowd))
        reach = Reach()
        for event, incident in happened:
            impact_count(incident, reach)
            incident.told_nacked = incident.nacked
            incident.save(update_fields=["nacked", "sent", "told_nacked"])
            incident_told(event, incident)
    refusals_told(groups, fresh)
    for event, incident in happened:
        log.warning(
            event,
            incident=str(incident.public_id),
            environment=incident.environment.key,
            type=incident.type,
            name=incident.name,
            confidence=incident.confidence,
            author=incident.author,
            reason=incident.message[:_LOGGED_CHARS],
            **named_fields(change_named(public_id=incident.change)),
        )
    return len(fresh)


@dataclass(frozen=True, slots=True)
class _Batch:
    finder: Finder
    crowds: Crowds


def _write(
    environment: EnvironmentState, group: RefusalGroup, taken: Taken, batch: _Batch
) -> list[tuple[str, Incident]]:
    """Open an incident for refusals, or add them to the one there is. Returns the events that people should hear of.
    Refusals for which none may be opened are collected in `batch` for the shared incident.
    """
    crowds, refusal = batch.crowds, group.newest
    incident = None if refusal.crowded else batch.finder.incident_of(environment, refusal)
    opened_by = None
    if incident is None or (incident.state == IncidentState.RESOLVED and refusal.current):
        opened_by = None if refusal.crowded else crowds.admit(environment, refusal, taken)
        if opened_by is None:
            crowds.add(environment, refusal, taken)
            return []
    happened: list[tuple[str, Incident]] = []
    if incident is None:
        incident = _open(environment, group, taken, opened_by or "")
        happened.append(("incident.opened", incident))
    elif _continue(incident, environment, refusal, taken, opened_by):
        happened.append(("incident.regressed", incident))
    wordings_heard(incident, group.wordings)
    batch.finder.made(incident)
    others = _others(incident, taken)
    _count_clients(incident, taken)
    if others and not happened:
        _tell_again(incident)
    _keep_samples(incident, taken)
    if refusal.name:
        for other in _explained(environment, refusal, taken, incident):
            crowds.closed(environment, other)
            happened.append(("incident.explained", other))
    return happened


def _write_crowd(crowd: Crowd) -> list[tuple[str, Incident]]:
    """Open the shared incident for these NACKs, or add them to it. Returns the events that people should hear of."""
    incident = incidents_locked(crowd.environment).filter(algorithm=ALGORITHM, fingerprint=crowd.fingerprint).first()
    first_at, last_at = min(crowd.moments), max(crowd.moments)
    event = ""
    if incident is None:
        event = "incident.opened"
        incident = Incident(
            environment_id=crowd.environment.id,
            algorithm=ALGORITHM,
            fingerprint=crowd.fingerprint,
            type=crowd.word,
            family=crowd.family.value,
            confidence=Confidence.UNKNOWN.value,
            message=(crowd.taken[0][0].text or WORDLESS) if crowd.taken else "",
            normalised=CROWDED,
            since=first_at - SETTLE,
            first_at=first_at,
            last_at=last_at,
            opened_epoch=crowd.environment.epoch,
            settles_at=last_at + SETTLE,
        )
    elif incident.state == IncidentState.RESOLVED:
        event = "incident.regressed"
        incident.state, incident.opened_epoch, incident.resolved_epoch = (
            IncidentState.OPEN.value,
            crowd.environment.epoch,
            None,
        )
    incident.last_at = max(incident.last_at, last_at)
    incident.settles_at = incident.last_at + SETTLE
    incident.suspects = crowd.suspects(incident.suspects)
    incident.save()
    # Nobody says of these which revision it is: they are not judged by it.
    taken = [(nack, 0) for nack, _ in crowd.taken]
    others = _others(incident, taken)
    _count_clients(incident, taken)
    _keep_samples(incident, taken)
    if others and not event:
        _tell_again(incident)
    return [(event, incident)] if event else []


def _open(environment: EnvironmentState, group: RefusalGroup, taken: Taken, opened_by: str) -> Incident:
    refusal = group.newest
    first_at = min(nack.at for nack, _ in taken)
    last_at = max(nack.at for nack, _ in taken)
    return Incident.objects.create(
        environment_id=environment.id,
        algorithm=refusal.algorithm,
        fingerprint=refusal.fingerprint,
        opened_by=opened_by,
        type=refusal.word,
        name=refusal.name,
        family=refusal.family.value,
        confidence=refusal.confidence.value,
        message=taken[0][0].text or WORDLESS,
        normalised=refusal.normalised,
        wordings=joined("", group.wordings),
        suspects=[list(content) for content in refusal.suspects],
        change=refusal.change,
        author=refusal.author,
        revision=refusal.revision,
        version=refusal.version,
        since=refusal.written_at or first_at - SETTLE,
        first_at=first_at,
        last_at=last_at,
        opened_epoch=environment.epoch,
        settles_at=last_at + SETTLE,
    )


def _continue(
    incident: Incident, environment: EnvironmentState, refusal: Refusal, taken: Taken, opened_by: str | None
) -> bool:
    """Add NACKs to an incident. Returns whether a resolved incident was opened again by that, or one that the refused
    revision was said to mend; `opened_by`: the key of whoever is accountable for it then.

    Only a refusal of the newest content opens it again: a client that still refuses an older revision says nothing new
    (texts.md 9.8).
    """
    was_to_mend = bool(incident.mended_by) and refusal.revision > incident.revision
    incident.last_at = max(incident.last_at, *(nack.at for nack, _ in taken))
    incident.settles_at = incident.last_at + SETTLE
    incident.confidence = Confidence(incident.confidence).or_surer(refusal.confidence).value
    if refusal.revision > incident.revision or not refusal.name:
        if incident.algorithm == PROVEN_ALGORITHM and refusal.algorithm == PROVEN_ALGORITHM:
            incident.fingerprint = refusal.fingerprint
        incident.revision, incident.version = refusal.revision, refusal.version
        incident.since = refusal.written_at or incident.since
        incident.suspects = [list(content) for content in refusal.suspects]
    resolved = incident.state == IncidentState.RESOLVED
    regressed = (resolved or was_to_mend) and refusal.current
    if regressed:
        incident.opened_by = (opened_by or "") if resolved else incident.opened_by
        incident.mended_by = ""
        incident.state = IncidentState.OPEN.value
        incident.opened_epoch, incident.resolved_epoch = environment.epoch, None
        incident.change, incident.author = refusal.change, refusal.author
    incident.save()
    return regressed


def _others(incident: Incident, taken: Taken) -> bool:
    """Whether somebody is accountable for one of these NACKs who is not yet accountable for any client of the
    incident.
    """
    saying = {nack.accountable for nack, _ in taken}
    known = IncidentClient.objects.filter(incident=incident, accountable__in=saying).values_list("accountable")
    return known.distinct().count() < len(saying)


def _tell_again(incident: Incident) -> None:
    """Tell people of an incident again, because others now refuse the same: it may not have been told before, when
    whoever opened it had no message left.
    """
    if incident.state in UNRESOLVED and incident.muted_until is None:
        # Who was sent it is counted when it is judged, each time for the whole fleet.
        incident.nacked = IncidentClient.objects.filter(incident=incident, revision=incident.revision).count()
        incident.sent = max(incident.sent, incident.nacked)
        incident_told("incident.opened", incident, again=True)


def _count_clients(incident: Incident, taken: Taken) -> None:
    known = {
        row.client: row
        for row in IncidentClient.objects.filter(incident=incident, client__in={nack.client for nack, _ in taken})
    }
    new: dict[str, IncidentClient] = {}
    most = settings.PARLEY.limits.incident_clients_per_identity
    held = _clients_of(incident, {nack.accountable for nack, _ in taken if nack.client not in known})
    words: dict[object, str] = {}
    for nack, revision in taken:
        # In a storm thousands say the same.
        said = (nack.family, nack.kept, nack.healing)
        if said not in words:
            words[said] = str(now_of(nack, incident.name) or "") if incident.name else ""
        row = known.get(nack.client) or new.get(nack.client)
        if row is None:
            # Node ids may be invented without end.
            if held[nack.accountable] >= most:
                continue
            held[nack.accountable] += 1
            new[nack.client] = IncidentClient(
                incident=incident,
                client=nack.client,
                identity=nack.identity,
                node_id=nack.node_id,
                revision=revision,
                now=words[said],
                accountable=nack.accountable,
                first_at=nack.at,
                last_at=nack.at,
                count=nack.repeats,
            )
        else:
            row.revision = max(row.revision, revision)
            row.now = words[said] if nack.at >= row.last_at else row.now
            row.accountable = nack.accountable
            row.last_at = max(row.last_at, nack.at)
            row.count += nack.repeats
    # One statement for many rows: an UPDATE of each would keep SQLite's only writer waiting through a storm.
    IncidentClient.objects.bulk_create(
        (*known.values(), *new.values()),
        batch_size=500,
        update_conflicts=True,
        unique_fields=("incident", "client"),
        update_fields=("revision", "now", "accountable", "last_at", "count"),
    )


def _clients_of(incident: Incident, whose: Collection[str]) -> Counter[str]:
    """For each of the keys `whose`, the number of the incident's clients for which its holder is accountable."""
    if not whose:
        return Counter()
    rows = IncidentClient.objects.filter(incident=incident, accountable__in=whose).order_by().values_list("accountable")
    return Counter(dict(rows.annotate(clients=Count("client"))))


def _keep_samples(incident: Incident, taken: Taken) -> None:
    kept = Counter(IncidentNack.objects.filter(incident=incident).values_list("nack__accountable", flat=True))
    samples: dict[int, IncidentNack] = {}
    for nack, _ in taken:
        if kept.total() >= SAMPLES:
            break
        if nack.id not in samples and kept[nack.accountable] < SAMPLES_OF_ONE:
            kept[nack.accountable] += 1
            samples[nack.id] = IncidentNack(incident=incident, nack_id=nack.id)
    IncidentNack.objects.bulk_create(samples.values(), ignore_conflicts=True)


def _explained(environment: EnvironmentState, refusal: Refusal, taken: Taken, named: Incident) -> Iterable[Incident]:
    """Resolve the incidents that `named`, which has a culprit, explains, and return them. These are incidents without a
    name whose clients have now refused one of the suspects alone and, once the culprit is proven, other incidents about
    the same revision.
    """
    clients = {nack.client for nack, _ in taken}
    unnamed = incidents_locked(environment).filter(
        pk__in=Incident.objects.filter(
            environment=environment.id, type=refusal.word, name="", state__in=UNRESOLVED, clients__client__in=clients
        )
        .exclude(normalised=CROWDED)
        .values("pk")
    )
    said = f"the {refusal.word} '{refusal.name}'"
    for incident in unnamed:
        if [refusal.name, refusal.version] in incident.suspects:
            yield _over(environment, incident, f"clients say by now which resource it is: {said}", named)
    if refusal.confidence.proven:
        for incident in same_fault(environment, named):
            yield _over(environment, incident, f"it is known by now, whatever clients say, that it is {said}", named)


def _over(environment: EnvironmentState, incident: Incident, because: str, named: Incident) -> Incident:
    resolution_record(incident, Resolution(because, incident=str(named.public_id)))
    incident.state, incident.resolved_epoch = IncidentState.RESOLVED.value, environment.epoch
    incident.save(update_fields=["state", "resolved_epoch"])
    Incident.objects.filter(pk=incident.pk).update(mended_by="", **UNMUTED)
    return incident
