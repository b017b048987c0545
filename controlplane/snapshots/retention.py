"""Forgets old snapshots and the chunks that no kept one needs (reliability part (e), C21).

Kept are the newest ones of an environment, all that were served in the last hour, of the last days the last one of
every two seconds, and what some connected client still runs. Contents of resources are never forgotten here: they
belong to revisions.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby, islice, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

from controlplane.catalog.selectors import blobs_read
from controlplane.catalog.services import blobs_delete, environments_publish_lock
from controlplane.snapshots.models import SnapshotRow
from xdscore.chunks import ChunkError, decode_root

# How many snapshots one call forgets, so that publishing never waits long for its locks.
BATCH: Final = 200
# Under steady edits there are a dozen snapshots a second (`builder.pacing`).
_ALL_FOR: Final = timedelta(hours=1)
_SLOT_S: Final = 2
# Replicas and workers date by clocks of their own.
_CLOCKS = timedelta(minutes=1)
# Where a snapshot has its parts beside its root; the last one only while a rollout was open.
_OTHERS = ("access_id", "rollout_id")

StillRun = Callable[[datetime], Mapping[int, Collection[datetime]]]
"""A function that says when connected clients were sent what they run, by environment id, as far as that was before the
given time.
"""


class NeededChunks:
    """How many of the stored snapshots need each chunk. A root never changes, so that each is read once when it came
    and once when it goes.
    """

    def __init__(self) -> None:
        self._roots: frozenset[str] = frozenset()
        self._counts: Counter[str] = Counter()

    def __contains__(self, chunk: str) -> bool:
        return self._counts[chunk] > 0

    def follow(self, roots: Collection[str]) -> None:
        """Count for the snapshots with these root hashes, whatever was counted before."""
        now = frozenset(roots)
        gone = dict(_chunk_lists(self._roots - now))
        if len(gone) < len(self._roots - now):  # another process deleted some, so that nobody can say what they needed
            self._roots, gone = frozenset(), {}
            self._counts.clear()
        for chunks in gone.values():
            self._counts.subtract(chunks)
        for _, chunks in _chunk_lists(now - self._roots):
            self._counts.update(chunks)
        self._counts = +self._counts
        self._roots = now


class _Due(NamedTuple):
    """A snapshot that may go: its row id, and from when until when its environment served it."""

    pk: int
    environment: int
    at: datetime
    until: datetime


def snapshots_prune(*, still_run: StillRun, needed: NeededChunks) -> int:
    """Delete snapshots that are beyond the number to keep and either were served last before the limit or were soon
    followed by another one; returns how many were deleted, which is `BATCH` at most.

    `still_run` says when clients were sent what they still run; `needed` is what the last call learnt.

    A snapshot and the chunks that only it needs are deleted in one transaction, during which nobody can publish: a new
    snapshot might need one of those chunks again.
    """
    if next(_due(), None) is None:
        return 0
    sent = still_run(timezone.now() - _ALL_FOR + _CLOCKS)
    needed.follow(_roots(SnapshotRow.objects.all()))  # most of the reading, while whoever likes publishes
    with transaction.atomic(durable=True):
        environments_publish_lock()
        gone = [each.pk for each in islice(_unused(sent), BATCH)]
        rows = SnapshotRow.objects.filter(pk__in=gone)
        roots, others = _roots(rows), _other_parts(rows)
        chunks = {chunk for _, listed in _chunk_lists(roots) for chunk in listed}
        kept = SnapshotRow.objects.exclude(pk__in=gone)
        kept_roots = _roots(kept)
        needed.follow(kept_roots)
        garbage = {chunk for chunk in chunks if chunk not in needed}
        rows.delete()
        blobs_delete(addresses=(roots - kept_roots) | (others - _other_parts(kept)) | garbage)
    return len(gone)


def _unused(sent: Mapping[int, Collection[datetime]]) -> Iterator[_Due]:
    """The snapshots that may go and that no client still runs. `sent`: the times, by environment id, at which clients
    were sent what they run.
    """
    times = {environment: sorted(moments) for environment, moments in sent.items()}
    for each in _due():
        of_it = times.get(each.environment, [])
        first = bisect_left(of_it, each.at - _CLOCKS)
        if first == len(of_it) or of_it[first] >= each.until + _CLOCKS:
            yield each


def _due() -> Iterator[_Due]:
    """The snapshots that may go as far as their number and age say, oldest first in each environment."""
    limits, now = settings.PARLEY.limits, timezone.now()
    old, young = now - timedelta(days=limits.epochs_kept_days), now - _ALL_FOR
    counts = dict(SnapshotRow.objects.values_list("environment_id").annotate(count=models.Count("pk")).order_by())
    rows = SnapshotRow.objects.order_by("environment_id", "pk").values_list("environment_id", "pk", "at")
    for environment, of_it in groupby(rows.iterator(), key=itemgetter(0)):
        spare = counts.get(environment, 0) - limits.epochs_kept
        for (_, pk, at), (_, _, until) in islice(pairwise(of_it), max(spare, 0)):
            # By when it was served last: what stood for weeks until five minutes ago is what people want back.
            if until < old or (until < young and _slot(at) == _slot(until)):
                yield _Due(pk, environment, at, until)


def _slot(at: datetime) -> int:
    return int(at.timestamp()) // _SLOT_S


def _roots(rows: models.QuerySet[SnapshotRow]) -> set[str]:
    return set(rows.values_list("root_id", flat=True))


def _other_parts(rows: models.QuerySet[SnapshotRow]) -> set[str]:
    """The hashes of what these snapshots have beside their chunks."""
    return {address for parts in rows.values_list(*_OTHERS).distinct() for address in parts if address}


def _chunk_lists(roots: Collection[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The hashes of the chunks of each of these roots that is stored. A root that cannot be read counts as having none,
    because no ADS process could load it either.
    """
    for root, _, data in blobs_read(addresses=roots):
        try:
            yield root, frozenset(address.hex() for address in decode_root(data))
        except ChunkError:
            yield root, frozenset()
