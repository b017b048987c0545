"""What people do about a rollout. A second call of the same changes nothing and returns False; what is not possible now
is a Conflict with the reason.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.accounts.whose import in_one_hand
from controlplane.broker.hints import hint_rollout
from controlplane.catalog.models import Environment
from controlplane.catalog.staged_links import authors_of
from controlplane.clients.clock import database_now
from controlplane.common.errors import Conflict, Forbidden
from controlplane.journal.services import audit_record
from controlplane.rollouts.fleet import ReadFleet, groups_read, members_read
from controlplane.rollouts.lookup import rollout_row
from controlplane.rollouts.models import Rollout, RolloutApproval
from controlplane.rollouts.services.consulting import webhooks_forget
from controlplane.rollouts.services.moving import (
    first_begin,
    names_revert,
    rollout_end,
    rollout_promote,
    step_begin,
)
from controlplane.rollouts.services.settling import is_gone
from controlplane.rollouts.services.situation import Situation, environment_of, situation_lock, situation_read
from controlplane.rollouts.services.telling import rollout_told
from controlplane.rollouts.stored import settings_of, steps_of
from controlplane.rollouts.values import RolloutState
from xdscore.sides import Side, side_of_digest

# What a person acts upon may move meanwhile; then it is looked at again.
_TRIES: Final = 5
_REASON_CHARS: Final = 500

_Act = Callable[[Environment, Situation, datetime], bool]


def rollout_advance(
    *, public_id: str, reason: str, actor: Principal, request_id: str = "", step: int | None = None
) -> bool:
    """Go on with the first or next step, or promote after the last, whatever the gates wait for. `step`: the number of
    the step that the actor saw; a later one stays as it is. Raises NotFound, and Conflict for a rollout that is paused,
    on hold, over, or not so far.
    """

    def advance(environment: Environment, now_is: Situation, now: datetime) -> bool:
        row = now_is.row
        if _is_past(row, step):
            return False
        _check_running(now_is, "go on")
        # A step that clients could not be sent yet was begun a moment ago, maybe by the same call.
        if row.evidence_at is None and row.last_act == f"advance {row.step}":
            return False
        because = f"{actor.name} let it go on: {reason}"
        if not row.begun:
            row.last_act = "advance 0"
            first_begin(environment, row, fleet.members, _inside(now_is, fleet), now)
        elif row.step + 1 < len(row.steps):
            row.last_act = f"advance {row.step + 1}"
            step_begin(environment, row, fleet.members, _inside(now_is, fleet), now)
        else:
            row.last_act = "advance"
            rollout_promote(environment, row, now, because)
        return True

    seen = _open(public_id)
    if seen is None:
        return _again(public_id, "advance", "go on")
    fleet = _fleet(seen)
    return _done(public_id, "advance", advance, reason=reason, actor=actor, request_id=request_id)


def rollout_pause(*, public_id: str, reason: str, actor: Principal, request_id: str = "") -> bool:
    """Stop a rollout for now: nothing of it goes on or back by itself. Raises NotFound, and Conflict where it is
    over.
    """

    def pause(_environment: Environment, now_is: Situation, _now: datetime) -> bool:
        row = now_is.row
        if row.state == RolloutState.PAUSED:
            return False
        row.state = RolloutState.PAUSED.value
        row.paused_because = f"{actor.name}: {reason}"[:_REASON_CHARS]
        row.waits_for, row.until = "a person to let it go on", None
        row.save(update_fields=["state", "paused_because", "waits_for", "until"])
        rollout_told("rollout.paused", row, because=reason, actor=actor.name)
        return True

    return _done(public_id, "pause", pause, reason=reason, actor=actor, request_id=request_id)


def rollout_resume(*, public_id: str, reason: str, actor: Principal, request_id: str = "") -> bool:
    """Let a paused rollout go on. Raises NotFound, and Conflict where it is over."""

    def resume(environment: Environment, now_is: Situation, _now: datetime) -> bool:
        row = now_is.row
        if row.state != RolloutState.PAUSED:
            return False
        row.state = RolloutState.RUNNING.value
        row.paused_because = ""
        row.lineage = environment.lineage
        # What was waited for meanwhile is waited for anew.
        row.evidence_at, row.waits_for = None, ""
        webhooks_forget(row, passed=False)
        row.save(update_fields=["state", "paused_because", "lineage", "evidence_at", "waits_for"])
        rollout_told("rollout.resumed", row, because=reason, actor=actor.name)
        return True

    return _done(public_id, "resume", resume, reason=reason, actor=actor, request_id=request_id)


def rollout_approve(
    *, public_id: str, reason: str, actor: Principal, request_id: str = "", step: int | None = None
) -> bool:
    """Say that the present step may go on. `step`: the number of the step that the actor saw; a later one is not
    approved by it. Raises NotFound; Conflict where the step asks for nobody's word or the rollout is over, or not so
    far; and Forbidden where the environment asks for four eyes and the actor wrote one of the changes.
    """

    def approve(_environment: Environment, now_is: Situation, now: datetime) -> bool:
        row = now_is.row
        if _is_past(row, step):
            return False
        _check_asks(row)
        _check_other_eyes(row, actor)
        given = RolloutApproval.objects.filter(rollout=row, step=row.step, void=False)
        if given.filter(principal=str(actor.id), by=actor.name).exists():
            return False
        RolloutApproval.objects.create(
            rollout=row,
            step=row.step,
            by=actor.name,
            principal=str(actor.id),
            reason=reason[:_REASON_CHARS],
            at=now,
        )
        return True

    return _done(public_id, "approve", approve, reason=reason, actor=actor, request_id=request_id)


def rollout_reject(*, public_id: str, reason: str, actor: Principal, request_id: str = "") -> bool:
    """Say that the present step must not go on: everything is taken back. Raises NotFound, and Conflict where the step
    asks for nobody's word or the rollout is over.
    """

    def reject(environment: Environment, now_is: Situation, now: datetime) -> bool:
        _check_asks(now_is.row)
        return _all_back(environment, now_is, now, f"{actor.name} said no: {reason}", "reject", actor)

    return _done(public_id, "reject", reject, reason=reason, actor=actor, request_id=request_id)


def rollout_abort(*, public_id: str, reason: str, actor: Principal, request_id: str = "") -> bool:
    """Take everything back that is not promoted, as one change. Raises NotFound, and Conflict where the rollout ended
    otherwise.
    """

    def abort(environment: Environment, now_is: Situation, now: datetime) -> bool:
        return _all_back(environment, now_is, now, f"{actor.name} aborted it: {reason}", "abort", actor)

    return _done(public_id, "abort", abort, reason=reason, actor=actor, request_id=request_id)


def _done(public_id: str, act: str, do: _Act, *, reason: str, actor: Principal, request_id: str) -> bool:
    """Act upon a rollout as it is at this moment; returns whether that changed anything."""
    for _ in range(_TRIES):
        seen = _open(public_id)
        if seen is None:
            return _again(public_id, act, act)
        with transaction.atomic(durable=True):
            locked = situation_lock(seen)
            if locked is None:
                continue
            environment, still = locked
            changed = do(environment, still, database_now())
            if changed:
                audit_record(
                    actor=actor,
                    verb=f"rollout.{_PAST[act]}",
                    subject=public_id,
                    environment=environment.key,
                    request_id=request_id,
                    detail={"reason": reason, "step": still.row.step + 1},
                )
                transaction.on_commit(partial(hint_rollout, environment.pk))
            return changed
    raise Conflict("The rollout moves at this moment. Look at it again, and repeat this if it is still wanted.")


_PAST: Final = {
    "advance": "advanced",
    "pause": "paused",
    "resume": "resumed",
    "approve": "approved",
    "reject": "refused",
    "abort": "aborted",
}


def _open(public_id: str) -> Situation | None:
    """The rollout as it is now; None where it is over. Raises NotFound."""
    row = rollout_row(public_id)
    environment = environment_of(row.environment_id)
    situation = situation_read(environment) if environment is not None else None
    return situation if situation is not None and situation.row.pk == row.pk else None


def _again(public_id: str, act: str, words: str) -> bool:
    """The result of acting upon a rollout that is over: False where the same act ended it. Raises Conflict."""
    row = rollout_row(public_id)
    if row.last_act == act:
        return False
    raise Conflict(
        f"{str(row).capitalize()} cannot {words} any more: it is {row.state}. Why: {row.ended_because}. Nothing was "
        "changed."
    )


def _is_past(row: Rollout, step: int | None) -> bool:
    """Whether the rollout went on since somebody saw it at this step: what they decide then is about what they did not
    see. Raises Conflict where it was never so far.
    """
    if step is not None and step > row.step + 1:
        raise Conflict(f"{str(row).capitalize()} is at step {row.step + 1}, not at {step}. Nothing was changed.")
    return step is not None and step <= row.step


def _check_running(situation: Situation, what: str) -> None:
    row = situation.row
    if row.state == RolloutState.PAUSED:
        raise Conflict(f"{str(row).capitalize()} is paused and cannot {what}. Resume it first. Nothing was changed.")
    if is_gone(situation) or not situation.names:
        raise Conflict(
            f"{str(row).capitalize()} has nothing left that differs, because somebody rolled back or wrote over it: it "
            "ends by itself within a second. Nothing was changed."
        )
    if situation.environment.policy.hold:
        raise Conflict(
            f"Environment '{situation.environment.key}' is on hold: {situation.environment.policy.hold}. Release the "
            "hold first. Nothing was changed."
        )


def _check_asks(row: Rollout) -> None:
    if not steps_of(row)[row.step].approve:
        raise Conflict(
            f"Step {row.step + 1} of {row} asks for nobody's approval. Advance it or abort it, if that is meant. "
            "Nothing was changed."
        )


def _check_other_eyes(row: Rollout, actor: Principal) -> None:
    if not settings_of(row).four_eyes:
        return
    authors = authors_of(row.environment.key)
    if any(author.name == actor.name or in_one_hand(str(actor.id), author.principal) for author in authors):
        raise Forbidden(
            f"You wrote one of the changes of {row}, and the environment asks for four eyes: somebody else has to "
            "approve it. Nothing was changed."
        )


def _all_back(
    environment: Environment, situation: Situation, now: datetime, because: str, act: str, actor: Principal
) -> bool:
    row = situation.row
    names_revert(environment, row, [view.key for view in situation.names], because=because, incidents={}, actor=actor)
    row.last_act = act
    rollout_end(environment, row, RolloutState.ABORTED, now, because, actor=actor.name)
    return True


def _fleet(situation: Situation) -> ReadFleet:
    key = situation.environment.key
    groups = groups_read(environment_key=key, keys=settings_of(situation.row).groups)
    return members_read(environment_key=key, names=[view.key for view in situation.names], groups=groups)


def _inside(situation: Situation, fleet: ReadFleet) -> frozenset[str]:
    if situation.side is None:
        return frozenset()
    table = situation.side.table
    return frozenset(
        known.member.digest
        for known in fleet.clients.values()
        if side_of_digest(table, known.member.digest, known.facts) is Side.CANDIDATE
    )
