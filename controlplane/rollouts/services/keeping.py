"""Keeps verdicts with the facts that they rest on (rollouts.md R11), and forgets old rollouts. Bounded."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Final

from controlplane.clients.clock import database_now
from controlplane.rollouts.facts import Facts, Verdict, facts_from_json, facts_json
from controlplane.rollouts.models import Rollout, RolloutVerdict
from controlplane.rollouts.values import OPEN_STATES, Counts

MAX_KEPT: Final = 500
# Facts about 5,000 clients are some 60 KB; what is larger than this is left out, and the counts are kept.
_MAX_FACTS_BYTES: Final = 512 * 1024
_KEEP_FOR: Final = timedelta(days=30)
_KEEP_ROLLOUTS: Final = 1_000
_BATCH: Final = 50


def verdict_keep(row: Rollout, facts: Facts, verdict: Verdict, counts: Counts, now: datetime) -> None:
    """Keep a verdict, if it says something else than the one before it. The oldest give way. While answers are awaited
    there is nothing to give again, and only the counts are kept.
    """
    outcome = verdict.outcome.value if verdict.outcome is not None else ""
    said = asdict(counts)
    last = RolloutVerdict.objects.filter(rollout=row).order_by("-id").first()
    if last is not None and (last.step, last.outcome, last.reasons, last.counts) == (
        row.step,
        outcome,
        list(verdict.reasons),
        said,
    ):
        return
    packed = facts_pack(facts) if outcome or verdict.asks else b""
    RolloutVerdict.objects.create(
        rollout=row,
        step=row.step,
        at=now,
        outcome=outcome,
        reasons=list(verdict.reasons),
        counts=said,
        facts=packed if len(packed) <= _MAX_FACTS_BYTES else b"",
    )
    kept = RolloutVerdict.objects.filter(rollout=row).order_by("-id").values_list("pk", flat=True)
    if (oldest := kept[MAX_KEPT : MAX_KEPT + 1].first()) is not None:
        RolloutVerdict.objects.filter(rollout=row, pk__lte=oldest).delete()


def facts_pack(facts: Facts) -> bytes:
    """Facts as they are stored."""
    return zlib.compress(json.dumps(facts_json(facts)).encode())


def facts_unpack(packed: bytes) -> Facts:
    """The facts that `facts_pack` made this of."""
    tree: Mapping[str, object] = json.loads(zlib.decompress(packed))
    return facts_from_json(tree)


def rollouts_prune() -> int:
    """Delete rollouts that ended 30 days ago, and of each environment those before its newest 1,000; returns how many.
    One call deletes a bounded number.
    """
    ended = Rollout.objects.exclude(state__in=[state.value for state in OPEN_STATES])
    old = list(
        ended.filter(ended_at__lt=database_now() - _KEEP_FOR).order_by("pk").values_list("pk", flat=True)[:_BATCH]
    )
    for environment in ended.order_by().values_list("environment", flat=True).distinct():
        newest = ended.filter(environment=environment).order_by("-pk").values_list("pk", flat=True)
        old.extend(newest[_KEEP_ROLLOUTS : _KEEP_ROLLOUTS + _BATCH])
    return Rollout.objects.filter(pk__in=old).delete()[1].get("rollouts.Rollout", 0) if old else 0
