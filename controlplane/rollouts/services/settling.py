"""Brings a rollout in line with what others did: a write, a rollback, a restore (rollouts.md R5, R12, R13)."""

from typing import Final

from django.db import transaction

from controlplane.catalog.staged_links import newest_numbers, rolled_back_after
from controlplane.catalog.staging import staged_names
from controlplane.clients.clock import database_now
from controlplane.database.failpoints import failpoint
from controlplane.rollouts.fleet import groups_read, members_read
from controlplane.rollouts.models import Rollout, RolloutResource
from controlplane.rollouts.services.moving import approvals_void, cohort_renew, resources_note, rollout_end
from controlplane.rollouts.services.situation import Situation, situation_lock
from controlplane.rollouts.services.telling import rollout_told
from controlplane.rollouts.stored import settings_of
from controlplane.rollouts.values import ResourceOutcome, RolloutState
from xdscore.sides import Side, side_of_digest

WENT_BACK: Final = "the database went back to an earlier state, so that a person has to say whether the rollout goes on"
ROLLED_BACK: Final = "the environment was rolled back meanwhile"
SIDE_GONE: Final = "its candidate side was ended by something else"
NOTHING_LEFT: Final = "nothing that differs is left of it"


def is_gone(seen: Situation) -> bool:
    """Whether the rollout's side was ended by something else, such as a rollback (R13)."""
    return seen.side is None or seen.side.rollout != str(seen.row.public_id)


def is_news(seen: Situation) -> bool:
    """Whether the rollout holds other names, or other content of them, than its rows say (R5)."""
    rows = RolloutResource.objects.filter(rollout=seen.row, outcome=ResourceOutcome.CANDIDATE.value)
    known = {(word, name): revision for word, name, revision in rows.values_list("type", "name", "revision")}
    return known != {view.key: view.revision for view in seen.names}


def situation_settle(seen: Situation) -> bool:
    """Bring the rollout's rows in line with what others did: a rollback, a write, a restore. Returns whether to look
    again.
    """
    fleet = members_read(
        environment_key=seen.environment.key,
        names=[view.key for view in seen.names],
        groups=groups_read(environment_key=seen.environment.key, keys=settings_of(seen.row).groups),
    )
    now = database_now()
    with transaction.atomic(durable=True):
        locked = situation_lock(seen)
        if locked is None:
            return True
        environment, still = locked
        row = still.row
        rolled_back = rolled_back_after(environment_key=environment.key, generation=row.generation)
        if is_gone(still) or (rolled_back and not still.names):
            _leave(environment.key, row, gone=True)
            rollout_end(environment, row, RolloutState.ABORTED, now, ROLLED_BACK if rolled_back else SIDE_GONE)
            return True
        if str(row.lineage) != still.environment.lineage:
            row.state, row.paused_because = RolloutState.PAUSED.value, WENT_BACK
            row.save(update_fields=["state", "paused_because"])
            rollout_told("rollout.paused", row, because=WENT_BACK)
            return False
        _leave(environment.key, row, gone=False)
        news = resources_note(row, still.names)
        if not still.names:
            rollout_end(environment, row, ended_as(row, RolloutState.DONE), now, NOTHING_LEFT)
            return True
        if news:
            approvals_void(row)
            inside = {
                known.member.digest
                for known in fleet.clients.values()
                if still.side is not None
                and side_of_digest(still.side.table, known.member.digest, known.facts) is Side.CANDIDATE
            }
            cohort_renew(environment, row, fleet.members, inside, now)
        transaction.on_commit(lambda: failpoint("rollout.settled"))
    return True


def _leave(environment_key: str, row: Rollout, *, gone: bool) -> None:
    """Note what became of the resources that the rollout does not hold any more. What is not staged is what everybody
    has, if nobody wrote it since. `gone`: the candidate side is not there any more.
    """
    rows = RolloutResource.objects.filter(rollout=row, outcome=ResourceOutcome.CANDIDATE.value)
    keys = [(each.type, each.name) for each in rows]
    staged = staged_names(environment_key=environment_key, keys=keys)
    newest = newest_numbers(environment_key=environment_key, keys=keys)
    became = {
        "waiting": ResourceOutcome.RETURNED,
        "candidate": ResourceOutcome.RETURNED if gone else ResourceOutcome.CANDIDATE,
        "stopped": ResourceOutcome.REVERTED,
    }
    for each in rows:
        view = staged.get((each.type, each.name))
        is_newest = newest.get((each.type, each.name)) == each.revision
        outcome = ResourceOutcome.PROMOTED if is_newest else ResourceOutcome.RETURNED
        if view is not None:
            outcome = became[view.state.value]
        if outcome is not ResourceOutcome.CANDIDATE:
            each.outcome = outcome.value
            each.save(update_fields=["outcome"])


def ended_as(row: Rollout, otherwise: RolloutState) -> RolloutState:
    """How a rollout ended: one that promoted something is done, whatever it took back (rollouts.md, settled question
    4).
    """
    if otherwise is RolloutState.ABORTED:
        return otherwise
    outcomes = set(RolloutResource.objects.filter(rollout=row).values_list("outcome", flat=True))
    if ResourceOutcome.PROMOTED.value not in outcomes and ResourceOutcome.REVERTED.value in outcomes:
        return RolloutState.REVERTED
    return RolloutState.DONE
