"""Forgets refusals that are over, beyond what an environment may have: the oldest of whoever opened most."""

from django.conf import settings
from django.db.models import Count, F, QuerySet, Window
from django.db.models.functions import RowNumber

from controlplane.incidents.models import Incident
from controlplane.incidents.values import IncidentCause, IncidentState
from xdscore.shares import fair_level

# No transaction is long: what is left has its turn a minute later.
_BATCH = 500


def incidents_prune() -> int:
    """Delete incidents that are old and resolved; how many. What a quarantine or its release refers to stays, and what
    people said they ignore.
    """
    room = settings.PARLEY.limits.resolved_incidents_per_environment
    over = _over().order_by().values_list("environment").annotate(held=Count("pk")).filter(held__gt=room)
    return sum(_prune(environment, room) for environment, _ in over)


def _over() -> QuerySet[Incident]:
    return Incident.objects.filter(
        cause=IncidentCause.NACK.value,
        state=IncidentState.RESOLVED.value,
        quarantined_revision=0,
        forced_revision=0,
    )


def _prune(environment: int, room: int) -> int:
    rows = _over().filter(environment=environment)
    held = rows.order_by().values_list("opened_by").annotate(held=Count("pk"))
    # Where there are more who opened some than there is room, everybody keeps the newest.
    level = max(fair_level((count for _, count in held), room), 1)
    turn = Window(RowNumber(), partition_by=["opened_by"], order_by=F("last_at").desc())
    keys = list(rows.annotate(turn=turn).filter(turn__gt=level).values_list("pk", flat=True)[:_BATCH])
    Incident.objects.filter(pk__in=keys).delete()
    return len(keys)
