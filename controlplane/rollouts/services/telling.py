"""Tells higher rooms, and the log, what becomes of a rollout: by events, in the transaction of what they describe."""

from collections.abc import Sequence

import structlog

from controlplane.journal.services import event_append
from controlplane.rollouts.models import Rollout, RolloutChange, RolloutResource
from controlplane.rollouts.values import ResourceOutcome

log = structlog.get_logger(__name__)

_NAME_CHARS = 300
# So many names, and so many changes, an event holds.
_MAX_NAMED = 20
# So many of them are told in a sentence.
_MAX_TOLD = 5


def rollout_told(kind: str, row: Rollout, *, because: str = "", actor: str = "") -> None:
    """Tell people that something became of a rollout. `kind`: such as `rollout.opened`; `because`: a sentence; `actor`:
    who did it, empty where Parley did.
    """
    reverted = RolloutResource.objects.filter(rollout=row, outcome=ResourceOutcome.REVERTED.value)
    resources = reverted.order_by("type", "name").values("type", "name", "author", "change", "incident", "because")
    names = [
        {**{field: str(value) for field, value in each.items()}, "name": each["name"][:_NAME_CHARS]}
        for each in resources[:_MAX_NAMED]
    ]
    changes = RolloutChange.objects.filter(rollout=row).order_by("pk").values_list("change", flat=True)
    event_append(
        kind=kind,
        environment=row.environment.key,
        subject=f"rollout/{row.public_id}",
        payload={
            "rollout": str(row.public_id),
            "label": str(row),
            "mode": row.mode,
            "state": row.state,
            "step": row.step + 1,
            "steps": len(row.steps),
            "reason": because,
            "reasons": row.reasons,
            "waits_for": row.waits_for,
            "reverted": names,
            "names": _listed([f"{each['type']} '{each['name']}'" for each in names]),
            "blamed": _listed([f"{each['author']} in change {each['change'][:8]}" for each in names]),
            "by": _listed(row.authors),
            "changes": list(changes[:_MAX_NAMED]),
            "authors": row.authors[:_MAX_NAMED],
            "actor": actor,
        },
    )
    log.info(
        kind,
        environment=row.environment.key,
        rollout=str(row.public_id),
        step=row.step + 1,
        state=row.state,
        reason=because,
    )


def _listed(texts: Sequence[str]) -> str:
    """The texts in one line, each once; of many the first few, and how many more there are."""
    found = list(dict.fromkeys(texts))
    more = f" and {len(found) - _MAX_TOLD} more" if len(found) > _MAX_TOLD else ""
    return ", ".join(found[:_MAX_TOLD]) + more
