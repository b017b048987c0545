"""Forgets old snapshots and the chunks that no kept one needs (reliability part (e), C21).

Kept are the newest ones of an environment, all of the last days, and what some connected client still runs. Contents of
resources are never forgotten here: they belong to revisions.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice

from django.conf import settings
from django.db import models, transaction
from django.db.models.functions import Lead, RowNumber
from django.utils import timezone

from controlplane.catalog.selectors import blobs_read
from controlplane.catalog.services import blobs_delete, environments_publish_lock
from controlplane.snapshots.models import SnapshotRow
from xdscore.chunks import ChunkError, decode_root

# How many snapshots one call forgets, so that publishing never waits long for its locks.
_BATCH = 200
# Replicas and workers date by clocks of their own.
_CLOCKS = timedelta(minutes=1)
# Where a snapshot has its parts beside its root; the last one only while a rollout was open.
_OTHERS = ("access_id", "rollout_id")

StillRun = Callable[[datetime], Mapping[int, Collection[datetime]]]
"""A function that says when connected clients were sent what they run, by environment id, as far as that was before the
given time.
"""


def snapshots_prune(*, still_run: StillRun) -> int:
    """Delete snapshots that are both older than the limit and beyond the number to keep; returns how many were deleted.
    One call deletes a bounded number. `still_run` says when clients were sent what they still run.

    A snapshot and the chunks that only it needs are deleted in one transaction, during which nobody can publish: a new
    snapshot might need one of those chunks again.
    """
    if not _expired().exists():
        return 0
    sent = still_run(timezone.now() - _age() + _CLOCKS)
    with transaction.atomic(durable=True):
        environments_publish_lock()
        gone = list(islice(_unused(sent), _BATCH))
        kept = SnapshotRow.objects.exclude(pk__in=[row for row, _, _ in gone])
        roots = {root for _, root, _ in gone}
        parts = roots.union(*(others for _, _, others in gone))
        needed = {address for row in kept.values_list("root_id", *_OTHERS) for address in row if address}
        garbage = _chunks(roots - needed) - _chunks(needed & set(kept.values_list("root_id", flat=True)))
        SnapshotRow.objects.filter(pk__in=[row for row, _, _ in gone]).delete()
        blobs_delete(addresses=(parts - needed) | garbage)
    return len(gone)


def _unused(sent: Mapping[int, Collection[datetime]]) -> Iterator[tuple[int, str, frozenset[str]]]:
    """The row id, root hash and other hashes (access table, candidate side) of each snapshot that is due for deletion
    and that no client still runs.
    `sent`: the times, by environment id, at which clients were sent what they run.
    """
    columns = ("environment_id", "at", "next_at", "pk", "root_id", *_OTHERS)
    for environment, at, next_at, row, root, *others in _expired().values_list(*columns):
        if not any(at - _CLOCKS <= moment < next_at + _CLOCKS for moment in sent.get(environment, ())):
            yield row, root, frozenset(filter(None, others))


def _age() -> timedelta:
    return timedelta(days=settings.PARLEY.limits.epochs_kept_days)


def _expired() -> models.QuerySet[SnapshotRow]:
    limits = settings.PARLEY.limits
    place = models.Window(RowNumber(), partition_by=["environment_id"], order_by=models.F("id").desc())
    following = models.Window(Lead("at"), partition_by=["environment_id"], order_by=models.F("id").asc())
    return (
        SnapshotRow.objects.annotate(place=place, next_at=following)
        .filter(place__gt=limits.epochs_kept, at__lt=timezone.now() - _age())
        .order_by("id")
    )


def _chunks(roots: Iterable[str]) -> set[str]:
    """The hashes of the chunks that the snapshots with these root hashes hold. A root that cannot be read counts as
    having none, because no ADS process could load it either.
    """
    found: set[str] = set()
    for _, _, data in blobs_read(addresses=roots):
        try:
            found.update(address.hex() for address in decode_root(data))
        except ChunkError:
            continue
    return found
