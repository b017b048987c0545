"""Keeps the facts true and bounded.

Streams of dead processes are closed, what is old is forgotten (reliability (e), U15). Where there is more than an
environment may have, whoever has most gives way: nobody's rows are pushed out by what somebody else makes.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog
from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import RowNumber

from controlplane.clients.clock import database_now
from controlplane.clients.models import (
    Client,
    ClientLabels,
    ContentList,
    HoldingMove,
    HoldingSet,
    Nack,
    NameSet,
    Replica,
    Report,
    SaidDifference,
    Stream,
    Subscription,
)
from xdscore.shares import fair_level

# A replica writes every few seconds; one that was silent for so long is taken for dead.
SILENT_S = 30
DIED = "its ADS process stopped reporting"

# decisions U15: a client is forgotten a day after its last stream, with the stream.
FORGET_AFTER = timedelta(hours=24)
# How long a forgotten client's labels wait for it: longer than what is away for a season, and not for ever, because
# node ids of what comes and goes are never seen again.
LABELS_KEPT = timedelta(days=90)
# How many rows one call deletes of a table, so that no transaction is long.
_BATCH = 2_000
# How many batches of what is over a bound go at once: what comes in within a minute must be gone within one.
_SHED_BATCHES = 20

log = structlog.get_logger(__name__)


def streams_reap() -> int:
    """Close the streams of ADS processes that no longer report; returns how many were closed. A process that reports
    again reports its streams again.
    """
    now = database_now()
    orphans = Stream.objects.filter(closed_at=None, replica__seen_at__lt=now - timedelta(seconds=SILENT_S))
    # Looking first keeps a worker with nothing to do from taking SQLite's writer lock each second.
    if not orphans.exists():
        return 0
    replicas = list(orphans.values_list("replica_id", flat=True).distinct())
    return Stream.objects.filter(closed_at=None, replica__in=replicas).update(closed_at=now, cause=DIED)


def facts_prune() -> int:
    """Delete facts that are too old or too many; returns how many rows were deleted. One call deletes a bounded
    number.
    """
    now = database_now()
    retained = now - timedelta(days=settings.PARLEY.limits.nack_retention_days)
    return (
        _delete(_old_nacks(retained))
        + _delete(Report.objects.filter(at__lt=retained))
        + _delete(SaidDifference.objects.filter(seen_at__lt=retained))
        + _delete(_crowded_nacks())
        + _shed(_DIGESTED, settings.PARLEY.limits.nacks_per_environment)
        + _shed(_ENDED, settings.PARLEY.limits.closed_streams_per_environment)
        + _shed(_LEFT, settings.PARLEY.limits.clients_per_environment)
        + _delete(Stream.objects.filter(closed_at__lt=now - FORGET_AFTER))
        + _delete(_forgotten_clients(now - FORGET_AFTER))
        + _labels_pruned(now)
        + _delete(_dead_replicas(now - FORGET_AFTER))
        + _delete(HoldingMove.objects.filter(at__lt=now - timedelta(hours=settings.PARLEY.limits.holding_history_h)))
        + _delete(_crowded_moves(settings.PARLEY.limits.holding_moves_per_environment))
        + _delete(_unnamed_sets())
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


def _labels_pruned(now: datetime) -> int:
    """Note whose clients are forgotten and whose returned, and delete the labels of those that were away for too long;
    returns how many rows were deleted.
    """
    there = Exists(Client.objects.filter(pk=OuterRef("pk")))
    # Looking first keeps a worker with nothing to do from taking SQLite's writer lock.
    for rows, gone_at in (
        (ClientLabels.objects.filter(~there, gone_at=None), now),
        (ClientLabels.objects.filter(there, gone_at__isnull=False), None),
    ):
        if rows.exists():
            rows.update(gone_at=gone_at)
    return _delete(ClientLabels.objects.filter(gone_at__lt=now - LABELS_KEPT))


def _old_nacks(before: models.Expression | object) -> models.QuerySet[Nack]:
    return Nack.objects.filter(digested_at__isnull=False, at__lt=before)


def _crowded_moves(room: int) -> models.QuerySet[HoldingMove]:
    """The oldest moves of each environment that has more than `room`."""
    totals = HoldingMove.objects.order_by().values_list("environment").annotate(held=models.Count("pk"))
    crowded = [environment for environment, held in totals.filter(held__gt=room)]
    newest = models.Window(RowNumber(), partition_by=["environment_id"], order_by=models.F("id").desc())
    return HoldingMove.objects.filter(environment__in=crowded).annotate(newest=newest).filter(newest__gt=room)


def _unnamed_sets() -> models.QuerySet[HoldingSet]:
    """The sets that no stream stands on, no move names and no other set differs from."""
    named = (
        Subscription.objects.filter(holding_set__isnull=False).values("holding_set"),
        HoldingMove.objects.filter(from_set__isnull=False).values("from_set"),
        HoldingMove.objects.values("to_set"),
        HoldingSet.objects.filter(keyframe__isnull=False).values("keyframe"),
    )
    rows = HoldingSet.objects.all()
    for names in named:
        rows = rows.exclude(pk__in=names)
    return rows


def _crowded_nacks() -> models.QuerySet[Nack]:
    """The NACKs, counted in incidents already, that are not among the newest few of their client and type (reliability
    (e), N8).
    """
    of_type = models.Window(RowNumber(), partition_by=["client_id", "type"], order_by=models.F("id").desc())
    return Nack.objects.annotate(of_type=of_type).filter(
        of_type__gt=settings.PARLEY.limits.nacks_per_type, digested_at__isnull=False
    )


def _forgotten_clients(before: object) -> models.QuerySet[Client]:
    """The clients without a stored stream or NACK that were last seen before `before`, which is a time or a database
    expression.
    """
    return Client.objects.filter(last_seen__lt=before).exclude(
        Exists(Stream.objects.filter(client=OuterRef("pk"))) | Exists(Nack.objects.filter(client=OuterRef("pk")))
    )


def _dead_replicas(before: object) -> models.QuerySet[Replica]:
    return Replica.objects.filter(seen_at__lt=before).exclude(Exists(Stream.objects.filter(replica=OuterRef("pk"))))


class _Crowd(NamedTuple):
    """A table whose rows are limited for each environment.

    `rows`: the rows that count.
    `environment`, `accountable`: the columns with a row's environment and with who is accountable for it.
    `newest_first`: the order; the last rows are deleted first.
    """

    rows: models.QuerySet[Any]
    environment: str
    accountable: str
    newest_first: models.OrderBy


_DIGESTED = _Crowd(
    Nack.objects.filter(digested_at__isnull=False), "client__environment", "accountable", models.F("id").desc()
)
_WAITING = _Crowd(
    Nack.objects.filter(digested_at__isnull=True), "client__environment", "accountable", models.F("id").desc()
)
_ENDED = _Crowd(
    Stream.objects.filter(closed_at__isnull=False),
    "client__environment",
    "client__accountable",
    models.F("closed_at").desc(),
)
# Whoever is connected, or said something that nobody has digested yet, is no row too many.
_LEFT = _Crowd(
    Client.objects.exclude(
        Exists(Stream.objects.filter(client=OuterRef("pk"), closed_at=None))
        | Exists(Nack.objects.filter(client=OuterRef("pk"), digested_at=None))
    ),
    "environment",
    "accountable",
    models.F("last_seen").desc(),
)


def nacks_shed() -> int:
    """Delete NACKs that wait for an incident beyond the limit of an environment, from those who sent most; returns how
    many. Called before incidents look at what waits, so that a flood costs only whoever sent it.
    """
    room = settings.PARLEY.limits.nacks_per_environment
    shed = _shed(_WAITING, room)
    if shed:
        log.warning("nacks.shed", rows=shed, room=room)
    return shed


def _shed(crowd: _Crowd, room: int) -> int:
    """Delete the rows beyond `room` in each environment: the oldest rows of those who have most. Returns how many were
    deleted.
    """
    totals = crowd.rows.order_by().values_list(crowd.environment).annotate(held=models.Count("pk"))
    return sum(_shed_of(crowd, environment, room) for environment, held in totals.filter(held__gt=room))


def _shed_of(crowd: _Crowd, environment: int, room: int) -> int:
    rows = crowd.rows.filter(**{crowd.environment: environment})
    held = rows.order_by().values_list(crowd.accountable).annotate(held=models.Count("pk"))
    level = fair_level((count for _, count in held), room)
    newest_first = crowd.newest_first
    ranked = rows.annotate(
        of_one=models.Window(RowNumber(), partition_by=[crowd.accountable], order_by=newest_first),
        of_all=models.Window(RowNumber(), order_by=newest_first),
    )
    # Where there are more who have some than there is room, nobody can keep even one by right.
    beyond = ranked.filter(of_one__gt=level) if level else ranked.filter(of_all__gt=room)
    shed = 0
    for _ in range(_SHED_BATCHES):
        batch = _delete(beyond)
        shed += batch
        if batch < _BATCH:
            break
    return shed


def _delete(rows: models.QuerySet[models.Model]) -> int:
    keys = list(rows.values_list("pk", flat=True)[:_BATCH])
    if keys:
        rows.model._default_manager.filter(pk__in=keys).delete()  # noqa: SLF001  Django's public name for "the manager"
    return len(keys)
