"""Answers which ADS processes do not serve a snapshot yet, and why. Values only, never rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from controlplane.clients.clock import database_now
from controlplane.clients.facts import Serving
from controlplane.clients.models import Replica
from controlplane.clients.services import SILENT_S


@dataclass(frozen=True, slots=True)
class Behind:
    """An ADS process, as host/pid, that serves an older snapshot, or with epoch 0 none; `reason` is a sentence."""

    replica: str
    epoch: int
    reason: str


def replicas_behind(*, environment_key: str, lineage: str, epoch: int) -> tuple[Behind, ...]:
    """The ADS processes that report now and serve neither this snapshot nor a newer one. Who does not say what it
    serves, as the version before, is not among them.
    """
    alive = Replica.objects.filter(
        stopped_at=None, seen_at__gte=database_now() - timedelta(seconds=SILENT_S), serves__isnull=False
    )
    found = []
    for row in alive.order_by("host", "pid"):
        said = _serving((row.serves or {}).get(environment_key, {}))
        if said.lineage != lineage or said.epoch < epoch:
            held = said.epoch if said.lineage == lineage else 0
            found.append(Behind(str(row), held, said.refused or _not_yet(held, epoch)))
    return tuple(found)


def _serving(said: Mapping[str, object]) -> Serving:
    """The value of what `services.facts_write` stored; a later version may have stored more."""
    lineage, epoch, refused = said.get("lineage"), said.get("epoch"), said.get("refused")
    return Serving(str(lineage or ""), epoch if isinstance(epoch, int) else 0, str(refused or ""))


def _not_yet(held: int, epoch: int) -> str:
    return f"it serves snapshot {held} and has not loaded {epoch}" if held else f"it has not loaded snapshot {epoch}"
