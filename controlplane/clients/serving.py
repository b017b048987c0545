"""Answers which ADS processes do not serve a snapshot yet, and why. Values only, never rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import QuerySet

from controlplane.clients.clock import database_now
from controlplane.clients.facts import Serving
from controlplane.clients.models import Replica
from controlplane.clients.services import SILENT_S


@dataclass(frozen=True, slots=True)
class Behind:
    """An ADS process (`replica`, as host/pid) that serves an older snapshot than it should, or none (`epoch` 0).
    `reason`: a sentence.
    """

    replica: str
    epoch: int
    reason: str


def replicas_behind(*, environment_key: str, lineage: str, epoch: int) -> tuple[Behind, ...]:
    """The ADS processes that report now and serve neither this snapshot nor a newer one. Processes of the version
    before this one do not say what they serve, and are left out.
    """
    found = []
    for row in _reporting().order_by("host", "pid"):
        said = _serving((row.serves or {}).get(environment_key, {}))
        if _is_behind(said, lineage, epoch):
            held = said.epoch if said.lineage == lineage else 0
            found.append(Behind(str(row), held, said.refused or _not_yet(held, epoch)))
    return tuple(found)


def behind_counts(*, epochs: Mapping[str, tuple[str, int]]) -> Mapping[str, int]:
    """How many of the ADS processes that `replicas_behind` tells of there are, by environment key. `epochs`: the
    lineage and epoch of each environment's newest snapshot. One query.
    """
    served = [row.serves or {} for row in _reporting()]
    return {
        key: sum(_is_behind(_serving(each.get(key, {})), lineage, epoch) for each in served)
        for key, (lineage, epoch) in epochs.items()
    }


def _reporting() -> QuerySet[Replica]:
    """The processes that report now and say what they serve."""
    return Replica.objects.filter(
        stopped_at=None, seen_at__gte=database_now() - timedelta(seconds=SILENT_S), serves__isnull=False
    )


def _is_behind(said: Serving, lineage: str, epoch: int) -> bool:
    return said.lineage != lineage or said.epoch < epoch


def _serving(said: Mapping[str, object]) -> Serving:
    """What an ADS process said, in `services.facts_write`, that it serves of one environment. Members that a later
    version added are ignored.
    """
    lineage, epoch, refused = said.get("lineage"), said.get("epoch"), said.get("refused")
    return Serving(str(lineage or ""), epoch if isinstance(epoch, int) else 0, str(refused or ""))


def _not_yet(held: int, epoch: int) -> str:
    return f"it serves snapshot {held} and has not loaded {epoch}" if held else f"it has not loaded snapshot {epoch}"
