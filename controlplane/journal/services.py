"""Writes the audit log and domain events, in the transaction of what they describe: neither is without the other.

A room tells a higher one something only by appending an event (decisions D3).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from controlplane.common.principal_ids import Actor
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
    """Append an audit entry, under the actor's name of now and the id that stays. `verb` is `noun.past-tense-verb`,
    e.g. `quarantine.opened`; `detail` must hold no secret.
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


@dataclass(frozen=True, slots=True)
class Event:
    """A domain event. `subject` is what it is about, and the key by which repeats are grouped."""

    id: int
    at: datetime
    kind: str
    environment: str
    subject: str
    payload: Mapping[str, object]


def event_append(*, kind: str, environment: str, subject: str, payload: Mapping[str, object]) -> None:
    """Append a domain event. `kind` is `noun.past-tense-verb`; `payload` is JSON, bounded, and holds no secret."""
    DomainEvent.objects.create(kind=kind, environment=environment, subject=subject[:1200], payload=dict(payload))


@transaction.atomic
def events_take(*, limit: int) -> tuple[Event, ...]:
    """The oldest events that nobody handled, marked as handled with the caller's transaction, or not at all.

    Rows that another worker holds at this moment are left to it (decisions D28).
    """
    waiting = DomainEvent.objects.select_for_update(skip_locked=True).filter(handled_at=None).order_by("id")
    rows = list(waiting[:limit])
    DomainEvent.objects.filter(pk__in=[row.pk for row in rows]).update(handled_at=timezone.now())
    return tuple(Event(row.pk, row.at, row.kind, row.environment, row.subject, row.payload) for row in rows)


def events_waiting() -> bool:
    """Whether there is an event that nobody handled."""
    return DomainEvent.objects.filter(handled_at=None).exists()


def events_prune(*, older_than: timedelta) -> int:
    """Delete handled events of that age; how many."""
    before = timezone.now() - older_than
    return DomainEvent.objects.filter(handled_at__lt=before).delete()[0]
