"""Keeps the facts true and bounded.

Streams of dead processes are closed, what is old is forgotten (reliability (e), U15).
"""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import RowNumber

from controlplane.clients.clock import database_now
from controlplane.clients.models import (
    Client,
    ContentList,
    Nack,
    NameSet,
    Replica,
    Report,
    SaidDifference,
    Stream,
    Subscription,
)

# A replica writes every few seconds; one that was silent for so long is taken for dead.
SILENT_S = 30
DIED = "its ADS process stopped reporting"

# resolutions U15: a client is forgotten a day after its last stream, with the stream.
FORGET_AFTER = timedelta(hours=24)
# How many rows one call deletes of a table, so that no transaction is long.
_BATCH = 2_000


def streams_reap() -> int:
    """Close the streams of replicas that went silent; how many. A replica that comes back reports its streams again."""
    now = database_now()
    orphans = Stream.objects.filter(closed_at=None, replica__seen_at__lt=now - timedelta(seconds=SILENT_S))
    # Looking first keeps a worker with nothing to do from taking SQLite's writer lock each second.
    if not orphans.exists():
        return 0
    replicas = list(orphans.values_list("replica_id", flat=True).distinct())
    return Stream.objects.filter(closed_at=None, replica__in=replicas).update(closed_at=now, cause=DIED)


def facts_prune() -> int:
    """Forget what is over its age or number; how many rows. Bounded per call: called often, it keeps up."""
    now = database_now()
    retained = now - timedelta(days=settings.PARLEY.limits.nack_retention_days)
    return (
        _delete(_old_nacks(retained))
        + _delete(Report.objects.filter(at__lt=retained))
        + _delete(SaidDifference.objects.filter(seen_at__lt=retained))
        + _delete(_crowded_nacks())
        + _delete(Stream.objects.filter(closed_at__lt=now - FORGET_AFTER))
        + _delete(_forgotten_clients(now - FORGET_AFTER))
        + _delete(_dead_replicas(now - FORGET_AFTER))
        + _delete(NameSet.objects.exclude(Exists(Subscription.objects.filter(name_set=OuterRef("pk")))))
        + _delete(
            ContentList.objects.exclude(
                Exists(
                    Nack.objects.filter(
                        Q(resources=OuterRef("pk")) | Q(suspects=OuterRef("pk")) | Q(kept=OuterRef("pk"))
                    )
                )
            )
        )
    )


def _old_nacks(before: models.Expression | object) -> models.QuerySet[Nack]:
    return Nack.objects.filter(digested_at__isnull=False, at__lt=before)


def _crowded_nacks() -> models.QuerySet[Nack]:
    """All but the newest of each client and type, and of each environment (reliability (e), N8)."""
    limits = settings.PARLEY.limits
    newest_first = models.F("id").desc()
    return Nack.objects.annotate(
        of_type=models.Window(RowNumber(), partition_by=["client_id", "type"], order_by=newest_first),
        of_environment=models.Window(RowNumber(), partition_by=["client__environment_id"], order_by=newest_first),
    ).filter(
        Q(of_type__gt=limits.nacks_per_type) | Q(of_environment__gt=limits.nacks_per_environment),
        digested_at__isnull=False,
    )


def _forgotten_clients(before: object) -> models.QuerySet[Client]:
    """Nobody's stream, and nobody whose NACKs are still kept."""
    return Client.objects.filter(last_seen__lt=before).exclude(
        Exists(Stream.objects.filter(client=OuterRef("pk"))) | Exists(Nack.objects.filter(client=OuterRef("pk")))
    )


def _dead_replicas(before: object) -> models.QuerySet[Replica]:
    return Replica.objects.filter(seen_at__lt=before).exclude(Exists(Stream.objects.filter(replica=OuterRef("pk"))))


def _delete(rows: models.QuerySet[models.Model]) -> int:
    keys = list(rows.values_list("pk", flat=True)[:_BATCH])
    if keys:
        rows.model._default_manager.filter(pk__in=keys).delete()  # noqa: SLF001  Django's public name for "the manager"
    return len(keys)
