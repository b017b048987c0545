"""Finds a rollout by the id in a URL."""

from uuid import UUID

from controlplane.common.errors import NotFound
from controlplane.rollouts.models import Rollout
from xdscore.codes import shown


def rollout_row(public_id: str) -> Rollout:
    """The row of the rollout with this public id. Raises NotFound, also for a text that is no id."""
    try:
        wanted = UUID(public_id)
    except ValueError:
        wanted = None
    row = Rollout.objects.select_related("environment").filter(public_id=wanted).first() if wanted else None
    if row is None:
        raise NotFound(f"There is no rollout '{shown(public_id, 64)}'. Rollouts are kept for 30 days after their end.")
    return row
