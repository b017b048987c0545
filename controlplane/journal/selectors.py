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
    limit: int = 100,
) -> tuple[AuditEvent, ...]:
    """Audit entries of these environments older than entry `before`, newest first; "" stands for what belongs to none.

    `principal`: only what this id did. `subjects`: only what is about one of these; none: about anything.
    """
    rows = AuditEvent.objects.filter(environment__in=list(environments))
    given = {"actor": actor, "principal": principal, "verb": verb, "request_id": request_id}
    rows = rows.filter(Q(**{field: value for field, value in given.items() if value}))
    if subjects:
        rows = rows.filter(subject__in=list(subjects))
    if since is not None:
        rows = rows.filter(at__gte=since)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return tuple(rows.order_by("-pk")[:limit])


def oldest_event_waiting() -> datetime | None:
    """The time of the oldest event of which no notification was made; None when none waits."""
    return DomainEvent.objects.filter(handled_at=None).order_by("id").values_list("at", flat=True).first()
