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
    """The complaint of one version of Envoy about one content, shown to it by itself: true for as long as both stay."""

    content: str
    envoy: str
    text: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of deep validation: a resolution without what Envoy refuses, the contents it accepts, the refusals to
    store, and the findings.
    """

    resolution: Resolution
    accepted: frozenset[bytes] = frozenset()
    refusals: tuple[Refusal, ...] = ()
    findings: tuple[Finding, ...] = ()


def refusals_kept(*, environment_id: int, envoy: str) -> Mapping[str, Refusal]:
    """The stored refusals of this Envoy, by content; of any Envoy where none can be asked (`envoy` is empty)."""
    rows = EnvoyRefusal.objects.filter(environment_id=environment_id)
    return {row.content: _refusal(row) for row in (rows.filter(envoy=envoy) if envoy else rows)}


def refusals_replace(*, environment_id: int, refusals: Iterable[Refusal]) -> None:
    """Replace an environment's stored refusals by these. Called in the transaction that publishes."""
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
