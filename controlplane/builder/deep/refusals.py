"""What Envoy said against contents, as it is kept between builds; and what comes of asking it. Without protobuf: every
build reads this, few ask.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controlplane.builder.models import EnvoyRefusal
from controlplane.builder.stages.fallback import Resolution
from xdscore.findings import Finding

_BATCH = 300


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an Envoy says against one content, shown to it by itself: true for as long as both stay."""

    content: str
    envoy: str
    text: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """A resolution in which what Envoy refuses gives way; the contents it accepts; what is to be kept and said."""

    resolution: Resolution
    accepted: frozenset[bytes] = frozenset()
    refusals: tuple[Refusal, ...] = ()
    findings: tuple[Finding, ...] = ()


def refusals_kept(*, environment_id: int, envoy: str) -> Mapping[str, Refusal]:
    """What this Envoy refused before, by content; of any Envoy where none is there to be asked (`envoy` is empty)."""
    rows = EnvoyRefusal.objects.filter(environment_id=environment_id)
    return {row.content: _refusal(row) for row in (rows.filter(envoy=envoy) if envoy else rows)}


def refusals_replace(*, environment_id: int, refusals: Iterable[Refusal]) -> None:
    """Make these the refusals that are kept. Called in the transaction that publishes."""
    wanted = set(refusals)
    rows = {_refusal(row): row.pk for row in EnvoyRefusal.objects.filter(environment_id=environment_id)}
    gone = [pk for refusal, pk in rows.items() if refusal not in wanted]
    for start in range(0, len(gone), _BATCH):
        EnvoyRefusal.objects.filter(pk__in=gone[start : start + _BATCH]).delete()
    EnvoyRefusal.objects.bulk_create(
        (
            EnvoyRefusal(environment_id=environment_id, content=each.content, envoy=each.envoy, text=each.text)
            for each in wanted - rows.keys()
        ),
        batch_size=_BATCH,
    )


def _refusal(row: EnvoyRefusal) -> Refusal:
    return Refusal(row.content, row.envoy, row.text)
