"""Answers what rollouts do and did, and what settings would mean. Values only, never rows.

For the REST API (interfaces.md section 8): `GET /environments/{env}/rollouts` is `rollouts_of`, `GET /rollouts/{id}` is
`rollout_get`, `GET /rollouts/{id}/clients` is `rollout_clients`.
"""

from collections.abc import Collection, Mapping

from controlplane.catalog.rollout_settings import RolloutSettings
from controlplane.rollouts.values import (
    ChangeStop,
    ClientSide,
    ClientState,
    Preview,
    RolloutClientPage,
    RolloutPage,
    RolloutState,
    RolloutView,
    VerdictView,
)
from xdscore.sides import Side


def rollout_get(*, public_id: str) -> RolloutView:
    """A rollout with all that its page shows. Raises NotFound."""
    raise NotImplementedError


def rollout_environment(*, public_id: str) -> str:
    """The key of the environment of a rollout, by which rights are judged. Raises NotFound."""
    raise NotImplementedError


def rollouts_of(
    *, environment_key: str, states: Collection[RolloutState] = (), after: str = "", limit: int = 50
) -> RolloutPage:
    """The rollouts of an environment in these states (none: in any), newest first, after the cursor `after`."""
    raise NotImplementedError


def rollout_open(*, environment_key: str) -> RolloutView | None:
    """The rollout that is open in an environment; None where there is none."""
    raise NotImplementedError


def rollouts_open(*, environment_keys: Collection[str]) -> Mapping[str, str]:
    """The ids of the open rollouts of these environments, by environment key. One query."""
    raise NotImplementedError


def rollout_clients(
    *, public_id: str, side: Side = Side.CANDIDATE, state: ClientState | None = None, after: str = "", limit: int = 100
) -> RolloutClientPage:
    """The clients on one side of a rollout, with why they are there and what they said, by node id, after the cursor
    `after`. Of a rollout that has ended: who was asked, and what they had said then. Raises NotFound.
    """
    raise NotImplementedError


def rollout_verdicts(*, public_id: str, limit: int = 500) -> tuple[VerdictView, ...]:
    """The verdicts that are kept of a rollout, oldest first. Raises NotFound."""
    raise NotImplementedError


def stops_of_changes(*, change_ids: Collection[str]) -> Mapping[str, ChangeStop]:
    """What rollouts took back of these changes, by change; those of which nothing was taken back are left out. Two
    queries.
    """
    raise NotImplementedError


def rollouts_of_change(*, change_id: str) -> tuple[str, ...]:
    """The ids of the rollouts that had something of this change, newest first."""
    raise NotImplementedError


def client_side(*, environment_key: str, client_id: str) -> ClientSide | None:
    """On which side of the open rollout a connected client is, and why; None where no rollout is open. Raises
    NotFound.
    """
    raise NotImplementedError


def preview(*, environment_key: str, settings: RolloutSettings) -> Preview:
    """What these settings would mean to the fleet that is connected now, if everything changed. Raises NotFound."""
    raise NotImplementedError
