"""Writes the audit log and domain events, in the transaction of what they describe: neither is without the other.

A room tells a higher one something only by appending an event (decisions D3).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from controlplane.common.principal_ids import Actor
from controlplane.journal.answers import effect_note
from controlplane.journal.models import AuditEvent, DomainEvent


def audit_record(
    *,
    actor: Actor,
    verb: str,
    subject: str,
    environment: str = "",
    request_id: str = "",
    detail: Mapping[str, object] | None = None,
) -> None:
    """Append an audit entry, with the actor's present name and id. `verb`: `noun.past-tense-verb`, such as
    `quarantine.opened`; `detail` must contain no secret.
    """
    AuditEvent.objects.create(
        actor=actor.name,
        principal=str(actor.id or ""),
        verb=verb,
        subject=subject[:1200],
        environment=environment,
        request_id=request_id[:64],
        detail=dict(detail or {}),
    )
    effect_note()


@dataclass(frozen=True, slots=True)
class Event:
    """A domain event. `subject`: what it is about; events with equal subjects are repeats of each other."""

    id: int
    at: datetime
    kind: str
    environment: str
    subject: str
    payload: Mapping[str, object]


def event_append(*, kind: str, environment: str, subject: str, payload: Mapping[str, object]) -> None:
    """Append an event, of which notifications may be made. `kind`: `noun.past-tense-verb`; `payload`: small, as JSON,
    and without secrets.
    """
    DomainEvent.objects.create(kind=kind, environment=environment, subject=subject[:1200], payload=dict(payload))


@transaction.atomic
def events_take(*, limit: int) -> tuple[Event, ...]:
    """The oldest events of which no notifications were made yet. They are marked as handled, in the caller's
    transaction: if it is rolled back, they come again.

    Rows that another worker has locked at this moment are left to it (decisions D28).
    """
    waiting = DomainEvent.objects.select_for_update(skip_locked=True).filter(handled_at=None).order_by("id")
    rows = list(waiting[:limit])
    DomainEvent.objects.filter(pk__in=[row.pk for row in rows]).update(handled_at=timezone.now())
    return tuple(Event(row.pk, row.at, row.kind, row.environment, row.subject, row.payload) for row in rows)


def events_waiting() -> bool:
    """Whether there is an event of which no notifications were made yet."""
    return DomainEvent.objects.filter(handled_at=None).exists()


def events_prune(*, older_than: timedelta) -> int:
    """Delete events that are older than `older_than` and of which notifications were made; returns how many."""
    before = timezone.now() - older_than
    return DomainEvent.objects.filter(handled_at__lt=before).delete()[0]
