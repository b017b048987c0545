"""Forgets old builds. A snapshot that is kept keeps the builds that speak of it."""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from controlplane.builder.models import Build, BuildOutcome
from controlplane.snapshots.models import SnapshotRow

# How many one call forgets: SQLite's one writer waits for it.
_BATCH = 500
_ENDED = (BuildOutcome.PUBLISHED, BuildOutcome.UNCHANGED)


def builds_prune() -> int:
    """Delete the records of builds that are as old as the snapshots that are forgotten (C21); how many were deleted.
    Bounded per call.

    The last build of an environment that ended well stays however old it is: changes are finished because of it. One
    that failed or was fenced goes whatever came later: a build that cannot succeed is tried again every second.
    """
    before = timezone.now() - timedelta(days=settings.PARLEY.limits.epochs_kept_days)
    kept = SnapshotRow.objects.filter(environment=models.OuterRef("environment"), epoch=models.OuterRef("epoch"))
    later = Build.objects.filter(
        environment=models.OuterRef("environment"), outcome__in=_ENDED, pk__gt=models.OuterRef("pk")
    )
    old = Build.objects.filter(at__lt=before).exclude(models.Exists(kept))
    idle = old.filter(~models.Q(outcome__in=_ENDED) | models.Exists(later)).order_by("pk")
    gone = list(idle.values_list("pk", flat=True)[:_BATCH])
    return Build.objects.filter(pk__in=gone).delete()[0]
