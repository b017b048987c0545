"""Reads where a rollout is, outside of any lock and within one: what was judged before must still be so when it is
acted upon (rollouts.md R12).
"""

from dataclasses import dataclass

from controlplane.catalog.models import Environment
from controlplane.catalog.selectors import EnvironmentState, environment_list, environment_state
from controlplane.catalog.services import environment_lock
from controlplane.catalog.staged_links import staged_links
from controlplane.catalog.staging import OpenSide, StagedView, candidate_side, names_candidate
from controlplane.rollouts.models import Rollout
from controlplane.rollouts.moves import Needs, Position
from controlplane.rollouts.stored import settings_of
from controlplane.rollouts.values import OPEN_STATES

_OPEN = [state.value for state in OPEN_STATES]


@dataclass(frozen=True, slots=True)
class Situation:
    """An open rollout, its candidate side (None: gone), and the names that it still holds."""

    environment: EnvironmentState
    row: Rollout
    side: OpenSide | None
    names: tuple[StagedView, ...]

    def is_still(self, other: "Situation") -> bool:
        """Whether nothing moved between the two: neither the rollout, nor what it holds, nor the database to an earlier
        state.
        """
        if self.environment.lineage != other.environment.lineage:
            return False
        return _mark(self.row) == _mark(other.row) and (self.side, self.names) == (other.side, other.names)

    @property
    def position(self) -> Position:
        """Where the rollout is, for whoever decides its next move."""
        links = staged_links(self.environment.key)
        needs = Needs(
            new=frozenset(view.key for view in self.names if view.from_revision is None),
            deleted=frozenset(view.key for view in self.names if view.deleted),
            then=links.then,
            now=links.now,
        )
        names = frozenset(view.key for view in self.names)
        settings = settings_of(self.row)
        return Position(self.row.step, len(self.row.steps), names, settings.on_failure, needs, self.row.begun)


def _mark(row: Rollout) -> tuple[object, ...]:
    return (row.pk, row.state, row.step, row.generation, row.served_generation, row.evidence_at, row.lineage, row.begun)


def environment_of(environment_id: int) -> EnvironmentState | None:
    """The environment with this row id; None where it was deleted."""
    return next((each for each in environment_list() if each.id == environment_id), None)


def situation_read(environment: EnvironmentState) -> Situation | None:
    """Where the open rollout of an environment is; None where none is open."""
    row = Rollout.objects.select_related("environment").filter(environment=environment.id, state__in=_OPEN).first()
    if row is None:
        return None
    return Situation(environment, row, candidate_side(environment.key), names_candidate(environment.key))


def situation_lock(seen: Situation) -> tuple[Environment, Situation] | None:
    """Lock the environment of a rollout and then the rollout, and read again where it is; None where that is not what
    was `seen`. Within a transaction. Raises NotFound where the environment is gone.
    """
    environment = environment_lock(key=seen.environment.key)
    row = Rollout.objects.select_for_update().filter(pk=seen.row.pk, state__in=_OPEN).first()
    if row is None:
        return None
    row.environment = environment
    state = environment_state(environment)
    now = Situation(state, row, candidate_side(state.key), names_candidate(state.key))
    return (environment, now) if now.is_still(seen) else None
