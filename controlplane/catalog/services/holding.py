"""Tells people that an environment is on hold, or takes changes again, also sooner than a freeze said (texts.md
section 6).
"""

from collections.abc import Iterable

from django.utils import timezone

from controlplane.accounts.principal import Principal
from controlplane.catalog.freezes import Freeze, frozen_at
from controlplane.journal.services import event_append


def hold_told(*, environment: str, before: str, after: str, actor: Principal) -> None:
    """Append an event where the reason for which an environment is on hold differs `before` and `after` a write. Called
    within the transaction of the write.
    """
    if before == after:
        return
    event_append(
        kind="hold.set" if after else "hold.released",
        environment=environment,
        subject=f"environment/{environment}",
        payload={"actor": actor.name, "reason": after or before},
    )


def thaw_told(*, environment: str, before: Iterable[Freeze], after: Iterable[Freeze], actor: Principal) -> None:
    """Append an event where an environment is frozen now and, by a write, no longer than until an earlier time.
    `before`, `after`: its freezes. Called within the transaction of the write.
    """
    now = timezone.now()
    held, holds = frozen_at(before, now), frozen_at(after, now)
    if held is None or (holds is not None and holds.until >= held.until):
        return
    event_append(
        kind="freeze.ended",
        environment=environment,
        subject=f"environment/{environment}",
        payload={
            "actor": actor.name,
            "freeze": held.freeze.reason,
            "until": held.until.isoformat(),
            "ends": holds.until.isoformat() if holds is not None else "",
        },
    )
