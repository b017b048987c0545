"""Mutes an incident, and ends the mute: by hand, at its time, or because clients refuse it in other words."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from django.db import transaction

from controlplane.accounts.principal import SYSTEM, Principal
from controlplane.clients.clock import database_now
from controlplane.clients.foreign_text import one_line
from controlplane.common.errors import Conflict, InputInvalid
from controlplane.common.principal_ids import Actor
from controlplane.incidents.models import Incident
from controlplane.incidents.muting import MAX_MUTE, first_new, joined, wording
from controlplane.incidents.services.locking import incident_locked
from controlplane.incidents.services.telling import incident_told
from controlplane.incidents.values import CROWDED, UNRESOLVED, IncidentCause
from controlplane.journal.services import audit_record
from xdscore.client_kinds import ClientFamily

UNMUTED: Final = {"muted_until": None, "muted_by": "", "muted_reason": ""}
"""What a row has of a mute that is over. A mute ends with the incident: what comes back is told."""

_TIME_IS_OVER: Final = "its time was over"
_OTHER_WORDS: Final = "clients refuse it in other words than before"
_AT_ONCE: Final = 100
_TEXT_CHARS: Final = 200


@transaction.atomic(durable=True)
def incident_mute(*, public_id: str, until: datetime, reason: str, actor: Principal, request_id: str) -> None:
    """Keep channels from being told of an incident until this time; a second mute takes the place of the first. Raises
    NotFound; InputInvalid for a time that is over or further away than MAX_MUTE; and Conflict for an incident that is
    over, and for one that stands for many faults.
    """
    incident = incident_locked(public_id)
    now = database_now()
    if not now < until <= now + MAX_MUTE:
        raise InputInvalid(
            f"A mute ends later than now, and within {MAX_MUTE.days} days: what nobody is to be told of for longer can "
            "be ignored. Nothing was changed."
        )
    if incident.state not in UNRESOLVED:
        raise Conflict(f"This incident is {incident.state}: nobody is told of it anyhow. Nothing was changed.")
    if incident.normalised == CROWDED:
        raise Conflict(
            "This incident stands for all refusals that are not told apart, so that muting it would hide new ones. "
            "Nothing was changed."
        )
    if (incident.muted_until, incident.muted_by, incident.muted_reason) == (until, actor.name, reason):
        return
    incident.muted_until, incident.muted_by, incident.muted_reason = until, actor.name, reason
    if incident.cause == IncidentCause.NACK:
        incident.wordings = joined(incident.wordings, [wording(ClientFamily(incident.family), incident.normalised)])
    incident.save(update_fields=[*UNMUTED, "wordings"])
    detail = {"until": until.isoformat(), "reason": reason}
    _record("incident.muted", incident, actor, request_id=request_id, detail=detail)


@transaction.atomic(durable=True)
def incident_unmute(*, public_id: str, actor: Principal, request_id: str) -> None:
    """End the mute of an incident, of which channels are told then; does nothing where it is not muted. Raises
    NotFound.
    """
    incident = incident_locked(public_id)
    if incident.muted_until is None:
        return
    _end(incident, actor, because="", request_id=request_id)
    incident_told("incident.unmuted", incident, by=actor.name)


def mutes_end() -> None:
    """End the mutes whose time is over; channels are told of those incidents that are open still."""
    now = database_now()
    for pk in Incident.objects.filter(muted_until__lte=now).order_by("muted_until").values_list("pk")[:_AT_ONCE]:
        with transaction.atomic(durable=True):
            rows = Incident.objects.select_for_update(of=("self",)).select_related("environment")
            incident = rows.filter(pk=pk[0], muted_until__lte=now).first()
            if incident is not None:
                _end(incident, SYSTEM, because=_TIME_IS_OVER)
                incident_told("incident.unmuted", incident, because=_TIME_IS_OVER)


def wordings_heard(incident: Incident, said: Mapping[str, str]) -> None:
    """Note in which words an incident is refused, in the transaction that counts the refusals. `said`: the text of a
    NACK, by wording. The first that is new ends the incident's mute, and people are told.
    """
    new = first_new(incident.wordings, said)
    if new is None:
        return
    incident.wordings = joined(incident.wordings, said)
    incident.save(update_fields=["wordings"])
    if incident.muted_until is not None:
        _end(incident, SYSTEM, because=_OTHER_WORDS)
        text = one_line(said[new], max_chars=_TEXT_CHARS)
        incident_told("incident.unmuted", incident, because=f'{_OTHER_WORDS}: "{text}"')


def _end(incident: Incident, actor: Actor, *, because: str, request_id: str = "") -> None:
    """Take the mute from an incident, and keep that it was there."""
    detail = {"by": incident.muted_by, "because": because}
    incident.muted_until, incident.muted_by, incident.muted_reason = None, "", ""
    incident.save(update_fields=list(UNMUTED))
    _record("incident.unmuted", incident, actor, request_id=request_id, detail=detail)


def _record(verb: str, incident: Incident, actor: Actor, *, request_id: str, detail: dict[str, str]) -> None:
    audit_record(
        actor=actor,
        verb=verb,
        subject=str(incident.public_id),
        environment=incident.environment.key,
        request_id=request_id,
        detail=detail,
    )
