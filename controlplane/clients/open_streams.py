"""Finds the streams of a client that are open, or that were open at a time."""

from datetime import datetime

from django.db.models import Q, QuerySet

from controlplane.clients.models import Stream


def streams_open(public_id: str, at: datetime | None = None) -> QuerySet[Stream]:
    """The streams of a client that are open; with `at`, those that were open then and are still stored."""
    rows = Stream.objects.filter(client=public_id)
    if at is None:
        return rows.filter(closed_at=None)
    return rows.filter(Q(closed_at=None) | Q(closed_at__gt=at), opened_at__lte=at)
