"""Tells people that an environment is on hold, or takes changes again (texts.md section 6)."""

from controlplane.accounts.principal import Principal
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
