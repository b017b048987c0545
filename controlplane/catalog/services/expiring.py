"""Tells people in time of certificates that expire (texts.md section 6): 14, 3 and 1 days before, and when it happened.

Each is told once for each revision, however often and by how many processes this is called.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import models, transaction

from controlplane.catalog.models import ExpiryNotice, Resource
from controlplane.journal.services import event_append

# The most urgent first: what is told of one day before is not told of three days before as well.
_DAYS = (0, 1, 3, 14)
_BATCH = 200  # of one call; called often, it keeps up


def certificates_watch(*, now: datetime) -> int:
    """Append an event for each current revision whose first certificate expires within 14, 3, 1 or 0 days of `now`,
    once for each number of days. Returns how many events were appended.
    """
    told = 0
    for days in _DAYS:
        for row in _due(days, now):
            if row.head is None or row.head.expires_at is None:  # found by it
                raise RuntimeError(f"resource {row.pk} has no certificate")
            with transaction.atomic():
                _, new = ExpiryNotice.objects.get_or_create(revision=row.head, days=days)
                if new:
                    _tell(row, row.head.expires_at, days, now)
                    told += 1
    return told


def _due(days: int, now: datetime) -> Iterator[Resource]:
    already = ExpiryNotice.objects.filter(revision=models.OuterRef("head"), days__lte=days)
    rows = (
        Resource.objects.filter(deleted=False, head__expires_at__lte=now + timedelta(days=days))
        .exclude(models.Exists(already))
        .select_related("head", "environment")
        .order_by("head__expires_at", "pk")
    )
    yield from rows[:_BATCH]


def _tell(row: Resource, end: datetime, days: int, now: datetime) -> None:
    event_append(
        kind="certificate.expiring",
        environment=row.environment.key,
        subject=f"{row.type}/{row.name}/{days}",
        payload={
            "type": row.type,
            "name": row.name[:300],
            "revision": row.counter,
            "day": f"{end:%Y-%m-%d}",
            "expired": end <= now,
        },
    )
