"""Says in words why a client is on its side of a rollout (rollouts.md R1, R14)."""

from collections.abc import Sequence

from controlplane.rollouts.models import Rollout, RolloutPick
from controlplane.rollouts.stored import table_groups
from controlplane.rollouts.values import Why
from xdscore.client_groups import ClientGroup
from xdscore.environment_choice import ClientFacts
from xdscore.sides import place_of

NOT_YET = "the rollout has not come to it, so that it has what everybody had before"


def why_of(
    row: Rollout,
    pick: RolloutPick | None,
    digest: str,
    facts: ClientFacts,
    groups: Sequence[ClientGroup] | None = None,
) -> tuple[Why | None, str]:
    """Why this client is on the candidate side of a rollout, and a sentence; None where it is on the stable side.
    `groups`: the present step's `table_groups`, where the caller has them already.
    """
    if pick is not None:
        return Why(pick.why), pick.because
    groups = table_groups(row, row.step) if groups is None else groups
    group = next((group for group in groups if group.has(facts)), None)
    if group is not None:
        return Why.GROUP, f"it is a member of the client group '{group.key}'"
    if place_of(row.seed, digest) < row.permille:
        return Why.SHARE, f"it is one of {row.permille / 10:g} % that were drawn by chance"
    return None, NOT_YET
