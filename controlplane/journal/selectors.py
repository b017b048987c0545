"""Reads the audit log."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Q

from controlplane.journal.models import AuditEvent, DomainEvent


def audit_list(  # noqa: PLR0913 - what can be asked for
    *,
    environments: Collection[str],
    before: int | None = None,
    actor: str = "",
    principal: str = "",
    verb: str = "",
    request_id: str = "",
    subjects: Collection[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    oldest_first: bool = False,
    limit: int = 100,
) -> tuple[AuditEvent, ...]:
    """Audit entries that belong to one of these environments, newest first, or the other way around with
    `oldest_first`; "" stands for entries that belong to none.

    `before`: only those behind the entry with this id, in the same order.
    `principal`: only what the principal with this id did.
    `subjects`: only entries about one of these; empty: about anything.
    `since`, `until`: when it was done, both included.
    """
    rows = AuditEvent.objects.filter(environment__in=list(environments))
    given = {"actor": actor, "principal": principal, "verb": verb, "request_id": request_id}
    rows = rows.filter(Q(**{field: value for field, value in given.items() if value}))
    if subjects:
        rows = rows.filter(subject__in=list(subjects))
    if since is not None:
        rows = rows.filter(at__gte=since)
    if until is not None:
        rows = rows.filter(at__lte=until)
    if before is not None:
        rows = rows.filter(pk__gt=before) if oldest_first else rows.filter(pk__lt=before)
    return tuple(rows.order_by("pk" if oldest_first else "-pk")[:limit])


def oldest_event_waiting() -> datetime | None:
    """The time of the oldest event of which no notifications were made yet; None when there is none."""
    return DomainEvent.objects.filter(handled_at=None).order_by("id").values_list("at", flat=True).first()
