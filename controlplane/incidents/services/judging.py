"""Keeps unresolved incidents true.

Their impact, the automatic quarantine where the policy asks for it, and their end.
"""

import time
from collections.abc import Callable, Collection

import structlog
from django.db import models, transaction

from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.change_names import change_named, named_fields
from controlplane.catalog.choices import QuarantineCause, QuarantinePolicy
from controlplane.catalog.guarding import OF_ITSELF
from controlplane.catalog.selectors import change_get, environment_get, is_quarantined, revision_list, revision_origin
from controlplane.catalog.services import quarantine_open, quarantine_refused
from controlplane.catalog.staging import is_staged
from controlplane.catalog.values import ProvenContent
from controlplane.clients.clock import database_now
from controlplane.common.errors import Conflict, NotFound
from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.services.answering import answers_to, kinds_refusing, refused_by
from controlplane.incidents.services.losing import loss_over
from controlplane.incidents.services.muting import UNMUTED
from controlplane.incidents.services.reach import Reach
from controlplane.incidents.services.resolution import Resolution, resolution_record
from controlplane.incidents.services.telling import incident_told
from controlplane.incidents.values import UNRESOLVED, IncidentCause, IncidentState
from controlplane.incidents.verdict import ClientKey, Outcome, judge
from xdscore.resource_types import by_word
from xdscore.shares import in_turns

log = structlog.get_logger(__name__)

# An incident is told of again when so many clients refuse, and ten times as many as when it was told of last.
_ESCALATES_FROM = 10
_ESCALATES_TIMES = 10
_FIRST_WAVE_S = 60

# How many incidents one run looks after, and about how long; the others have their turn in the next.
_AT_ONCE = 100
_AT_MOST_S = 5.0


def incidents_judge(*, clock: Callable[[], float] = time.monotonic) -> None:
    """For every incident that is not settled, count again how many clients refuse and how many were sent the revision,
    judge it, and quarantine the revision where the policy says so.

    Where one party opened many, its incidents come after those of others. `clock`: monotonic, in seconds.
    """
    unsettled = models.Q(judged_at=None) | models.Q(judged_at__lt=models.F("settles_at"))
    watched = Incident.objects.filter(unsettled, state__in=UNRESOLVED)
    waiting = watched.order_by(models.F("judged_at").asc(nulls_first=True), "pk").values_list("pk", "opened_by")
    until = clock() + _AT_MOST_S
    reach = Reach()
    for pk in in_turns(list(waiting))[:_AT_ONCE]:
        incident = watched.filter(pk=pk).select_related("environment").first()
        if incident is not None:
            _judge(incident, reach)
        if clock() > until:
            break


def impact_count(incident: Incident, reach: Reach) -> None:
    """Count the clients that refuse, and those that were sent what they refuse, and set both numbers on `incident`,
    without saving it. `reach`: who was sent what, read once for many incidents.
    """
    nacked, sent = _impact(incident, reach)
    incident.nacked, incident.sent = len(nacked), len(sent)


def _impact(incident: Incident, reach: Reach) -> tuple[dict[str, ClientKey], dict[str, ClientKey]]:
    """Two mappings by client id: the clients that refuse, and all clients that were sent what those refuse."""
    nacked = _nacked(incident)
    return nacked, {**reach.sent(incident), **nacked}


def _judge(incident: Incident, reach: Reach) -> None:
    now = database_now()
    nacked, sent = _impact(incident, reach)
    # Whoever asks for the name is sent it within seconds; counting them now keeps the quickest from deciding for the
    # rest (N4).
    served = {**reach.asking(incident), **sent}
    age_s = (now - incident.first_at).total_seconds()
    verdict = judge(answers_to(incident, served=served, acknowledged=reach.acknowledged(incident), now=now))
    # What comes in within the first minute is the wave that people were just told of, and no news (U2: a change is
    # decided after a minute).
    escalating = len(nacked) >= max(_ESCALATES_FROM, _ESCALATES_TIMES * incident.told_nacked) and age_s >= _FIRST_WAVE_S
    more_refuse = len(nacked) > incident.nacked
    incident.nacked, incident.sent = len(nacked), len(sent)
    told = {"told_nacked": len(nacked)} if escalating or not incident.told_nacked else {}
    with transaction.atomic(durable=True):
        Incident.objects.filter(pk=incident.pk).update(
            nacked=len(nacked),
            sent=len(sent),
            judged_at=now,
            verdict=verdict.outcome.value,
            verdict_reason=verdict.reason,
            verdict_asks=verdict.asks and not _is_staged(incident),
            **told,
        )
        if escalating and incident.told_nacked:
            incident_told("incident.escalating", incident)
    acts = verdict.outcome is Outcome.FAIL and _may_act(incident)
    if acts and not _is_quarantined(incident):
        _quarantine(incident, f"automatic: {verdict.reason}")
    elif acts or (more_refuse and incident.revision and incident.revision == incident.quarantined_revision):
        _refuse_more(incident)


def _nacked(incident: Incident) -> dict[str, ClientKey]:
    rows = IncidentClient.objects.filter(incident=incident, revision=incident.revision)
    return {
        client: (identity, node_id) for client, identity, node_id in rows.values_list("client", "identity", "node_id")
    }


def _may_act(incident: Incident) -> bool:
    """Whether the environment's policy lets clients' answers quarantine the incident's revision. Always False for
    endpoints, for a revision that was released from quarantine, for one that is staged, about which its rollout decides
    (rollouts.md R7), and where no culprit is known.
    """
    return (
        incident.environment.quarantine == QuarantinePolicy.AUTOMATIC.value
        and not _is_staged(incident)
        and by_word[incident.type].automatic_quarantine
        and incident.revision not in (0, incident.quarantined_revision)
        and not _is_released(incident)
    )


def _is_released(incident: Incident) -> bool:
    """Whether the refused revision was released from quarantine, also by another incident about it: by an operator
    (decisions U21), or because a client that was sent it as a trial acknowledged it. Such a release holds whatever
    others refuse later.
    """
    same = Incident.objects.filter(environment=incident.environment, type=incident.type, name=incident.name)
    if same.filter(forced_revision=incident.revision).exists():
        return True
    return same.filter(quarantined_revision=incident.revision).exists() and not _is_quarantined(incident)


def _is_quarantined(incident: Incident) -> bool:
    return is_quarantined(
        environment_key=incident.environment.key,
        kind=by_word[incident.type],
        name=incident.name,
        number=incident.revision,
    )


def _is_staged(incident: Incident) -> bool:
    return is_staged(
        environment_key=incident.environment.key, word=incident.type, name=incident.name, revision=incident.revision
    )


def _refuse_more(incident: Incident) -> None:
    """Withhold the quarantined revision also from the clients that have refused it since it was quarantined."""
    quarantine_refused(
        environment_key=incident.environment.key,
        word=incident.type,
        name=incident.name,
        revision=incident.revision,
        refused_by=refused_by(incident),
        joining=kinds_refusing(incident),
    )
    Incident.objects.filter(pk=incident.pk).update(quarantined_revision=incident.revision)


def _quarantine(incident: Incident, reason: str) -> None:
    try:
        quarantine_open(
            environment_key=incident.environment.key,
            word=incident.type,
            name=incident.name,
            revision=incident.revision,
            cause=QuarantineCause.AUTOMATIC,
            reason=reason,
            actor=SYSTEM,
            incident=str(incident.public_id),
            refused_by=refused_by(incident),
            consent=OF_ITSELF,
        )
    except (Conflict, NotFound) as error:
        # A newer revision is there, or the resource is gone: what clients refuse is not served any more.
        log.info("quarantine.skipped", incident=str(incident.public_id), reason=error.detail)
    Incident.objects.filter(pk=incident.pk).update(quarantined_revision=incident.revision)


def incidents_resolve(*, proven: Collection[ProvenContent]) -> int:
    """Resolve the incidents that are over; returns how many. `proven`: contents that clients have just acknowledged.

    An incident is over once a client has acknowledged a newer revision, or a deletion is published; where somebody said
    that the next revision mends it, once one is published; where no culprit is
    known, once every suspect has another content; a loss, when `loss_over` says so. Called after builds and proofs
    only.
    """
    candidates = Incident.objects.filter(state__in=UNRESOLVED).select_related("environment")
    published = candidates.exclude(checked_generation=models.F("environment__built_generation")).order_by("id")[
        :_AT_ONCE
    ]
    accepted = candidates.filter(name__in={content.name for content in proven})[:_AT_ONCE] if proven else ()
    found = {incident.pk: incident for incident in (*published, *accepted)}
    return sum(_resolve(incident) for incident in found.values())


def _resolve(incident: Incident) -> bool:
    environment = environment_get(key=incident.environment.key)
    resolution = _resolution(incident, environment.built_generation)
    fixed = resolution is not None
    changes: dict[str, object] = {"checked_generation": environment.built_generation}
    if fixed:
        changes |= {"state": IncidentState.RESOLVED.value, "resolved_epoch": environment.epoch, **UNMUTED}
        changes |= {"mended_by": ""}
        log.info(
            "incident.resolved",
            incident=str(incident.public_id),
            environment=environment.key,
            epoch=environment.epoch,
            **named_fields(change_named(public_id=incident.change)),
        )
    with transaction.atomic(durable=True):
        # Not over a state that an operator has just chosen, nor over a refusal that has just come in.
        updated = Incident.objects.filter(pk=incident.pk, state=incident.state, last_at=incident.last_at).update(
            **changes
        )
        if resolution is not None and updated:
            resolution_record(incident, resolution)
            incident_told("incident.resolved", incident)
    return fixed and updated == 1


def _resolution(incident: Incident, built_generation: int) -> Resolution | None:
    """The reason why an incident is over now; None while it is not."""
    if incident.cause == IncidentCause.LOSS:
        return loss_over(change=change_get(public_id=incident.change), built_generation=built_generation)
    return _moved_on(incident, built_generation) if incident.name else _none_current(incident)


def _moved_on(incident: Incident, built_generation: int) -> Resolution | None:
    history = revision_list(environment_key=incident.environment.key, kind=by_word[incident.type], name=incident.name)
    head = history.first()
    if head is None or head.number <= incident.revision or head.change.generation > built_generation:
        return None
    if is_staged(
        environment_key=incident.environment.key, word=incident.type, name=incident.name, revision=head.number
    ):
        return None  # most clients still have what the stable side has
    by = (str(head.change.public_id), head.change.author)
    if head.blob_id is None:
        return Resolution("it was deleted, and that is published", *by)
    if incident.mended_by:
        return Resolution(f"r{head.number} is published, and {incident.mended_by} said that it mends this", *by)
    # A return to content that clients have accepted before is nothing new to them: no ACK will come for it.
    proven = history.filter(version=head.version, proof__isnull=False).exists()
    return Resolution(f"clients accept r{head.number}", *by) if proven else None


def _none_current(incident: Incident) -> Resolution | None:
    """The reason why an incident without a culprit is over, which it is once every suspect has another content; None
    before. Where there are no suspects either, only an operator can resolve it.
    """
    if not incident.suspects:
        return None
    for name, version in incident.suspects:
        origin = revision_origin(
            environment_key=incident.environment.key, word=incident.type, name=name, version=version
        )
        if origin is not None and origin.current:
            return None
    return Resolution("none of the resources that were suspected is as it was when clients refused it")
