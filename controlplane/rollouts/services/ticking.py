"""Looks whether rollouts are to open, to go on or to go back, and does that: any process, at any time (R12).

Each look reads, judges, and acts in one transaction, which does nothing where something moved meanwhile. A process that
dies between any two of them leaves a rollout that any other goes on with; a hint that was lost costs a second.
"""

import time
from dataclasses import replace
from datetime import timedelta
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction

from controlplane.builder.claims import claim
from controlplane.builder.pacing import wait_for_quiet
from controlplane.catalog.rehearsals import rehearsal_is_open
from controlplane.catalog.selectors import EnvironmentState, environment_generations, environment_state
from controlplane.catalog.services import environment_lock, rehearsals_prune
from controlplane.catalog.staging import OpenSide, environments_waiting, names_waiting, waiting_since
from controlplane.clients.clock import database_now
from controlplane.common.errors import NotFound
from controlplane.config.loading import Debounce
from controlplane.database.failpoints import failpoint
from controlplane.rollouts.fleet import ReadFleet, groups_read, members_read
from controlplane.rollouts.judge import judge
from controlplane.rollouts.models import Rollout, RolloutPick
from controlplane.rollouts.moves import AskMore, AskPerson, Begin, Promote, Stay, Step, TakeBack, move_of
from controlplane.rollouts.reading import facts_read, is_served
from controlplane.rollouts.services.blaming import incidents_find, incidents_link
from controlplane.rollouts.services.doing import move_do, verdict_is_noted, verdict_note
from controlplane.rollouts.services.keeping import rollouts_prune
from controlplane.rollouts.services.moving import Opening, rollout_begin
from controlplane.rollouts.services.rehearsals import rehearsals_end
from controlplane.rollouts.services.settling import is_gone, is_news, situation_settle
from controlplane.rollouts.services.situation import Situation, environment_of, situation_lock, situation_read
from controlplane.rollouts.stored import rules_of, settings_of
from controlplane.rollouts.values import OPEN_STATES, RolloutState

log = structlog.get_logger(__name__)

# One look after the other, as long as something moves; so many at once, so that other environments have their turn.
_MAX_LOOKS: Final = 100
# Another process looks at this moment, maybe at what was there before: that takes some milliseconds.
_CLAIM_WAIT_S: Final = 0.2
# An ADS process tells within 1.5 s who connected and what is asked for (`adsserver.store.facts`), and then writes it.
REPORTED_S: Final = 3.0


def rollout_tick(*, environment_id: int) -> None:
    """Bring the rollout of one environment as far as facts allow, or open one where changes wait. One process at a time
    does this for an environment; called in another one meanwhile, it waits a moment at most and returns.
    """
    with claim(f"rollout-{environment_id}", wait_s=_CLAIM_WAIT_S) as claimed:
        if claimed:
            _look_on(environment_id)


def rollouts_tick() -> None:
    """Bring the rollouts of all environments as far as facts allow, and end rehearsals whose deadline has passed: the
    job of the worker's sweeper.
    """
    rehearsals_end()
    open_ones = Rollout.objects.filter(state__in=[state.value for state in OPEN_STATES])
    due = {*open_ones.values_list("environment_id", flat=True), *environments_waiting()}
    for environment_id in sorted(due):
        try:
            rollout_tick(environment_id=environment_id)
        except Exception:
            # One that cannot go on stops no other.
            log.exception("rollout.failed", environment_id=environment_id)
    incidents_link()
    _pruning.prune_when_due()


class _Pruning:
    """Deletes old rollouts and rehearsals at intervals, and remembers when this process last did."""

    def __init__(self) -> None:
        self._due_at = time.monotonic() + 60.0

    def prune_when_due(self) -> None:
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + 60.0
            rollouts_prune()
            rehearsals_prune()


_pruning = _Pruning()


def _look_on(environment_id: int) -> None:
    for _ in range(_MAX_LOOKS):
        environment = environment_of(environment_id)
        if environment is None:
            return
        failpoint("rollout.claimed")
        situation = situation_read(environment)
        try:
            moved = _look(situation) if situation is not None else _open(environment)
        except NotFound:
            return  # the environment was deleted meanwhile
        if not moved:
            return


# --- Opening


def _open(environment: EnvironmentState) -> bool:
    """Open a rollout where changes wait and nobody writes for a moment; returns whether to look again."""
    if environment.policy.hold or environment.id not in environments_waiting():
        return False
    # Here always: what a person writes in a row goes to the canaries together.
    debounce = settings.PARLEY.debounce or Debounce()
    wait_for_quiet(
        generation=lambda: environment_generations(environment_id=environment.id)[0],
        quiet_s=debounce.quiet_ms / 1000,
        at_most_s=debounce.at_most_ms / 1000,
        clock=time.monotonic,
        sleep=time.sleep,
    )
    names = names_waiting(environment.key)
    chosen = environment.policy.rollout
    groups = groups_read(environment_key=environment.key, keys=chosen.groups)
    fleet = members_read(environment_key=environment.key, names=[view.key for view in names], groups=groups)
    failpoint("rollout.read")
    if _may_be_unknown(environment.key, fleet, chosen.answer_within_s):
        return False
    with transaction.atomic(durable=True):
        locked = environment_lock(key=environment.key)
        policy = environment_state(locked).policy
        if not names or policy.hold or policy.rollout != chosen or names_waiting(environment.key) != names:
            return bool(names)
        if rehearsal_is_open(environment_key=environment.key):
            return False  # its end is hinted
        if Rollout.objects.filter(environment=locked, state__in=[state.value for state in OPEN_STATES]).exists():
            return True
        rollout_begin(locked, Opening(chosen, groups, names, fleet.members), database_now())
        transaction.on_commit(lambda: failpoint("rollout.opened"))
    return True


def _may_be_unknown(environment_key: str, fleet: ReadFleet, answer_within_s: float) -> bool:
    """Whether nobody is known to ask for what waits, and it was written so lately that somebody may: a rollout
    that asks nobody proves nothing (rollouts.md R9). Who lost its ADS process may be back in time for an answer.
    """
    if any(member.asks for member in fleet.members):
        return False
    written_at = waiting_since(environment_key)
    if written_at is None:
        return False
    lost = any(known.member.asks for known in fleet.clients.values())
    at_most = timedelta(seconds=answer_within_s if lost else REPORTED_S)
    # Where the clock of who wrote it is ahead, nothing is waited for.
    return timedelta(0) <= database_now() - written_at < at_most


# --- Going on


def _look(seen: Situation) -> bool:
    """One look at an open rollout; returns whether to look again, because something moved."""
    if is_gone(seen) or not seen.names:
        return situation_settle(seen)
    if seen.side is None or seen.row.state == RolloutState.PAUSED:
        return False
    if str(seen.row.lineage) != seen.environment.lineage or is_news(seen):
        return situation_settle(seen)
    return _evidence_begin(seen) if _begins(seen) else _judged(seen, seen.side)


def _judged(seen: Situation, side: OpenSide) -> bool:
    """Judge the present step and do what follows; returns whether to look again."""
    now = database_now()
    reading = facts_read(seen.environment, seen.row, side, seen.names, now=now)
    failpoint("rollout.read")
    rules = rules_of(settings_of(seen.row), seen.row.step)
    verdict = judge(reading.facts, rules)
    move = move_of(verdict, seen.position)
    if seen.environment.policy.hold and isinstance(move, Begin | Step | Promote | AskMore):
        held = replace(verdict, outcome=None, waits_for="the environment's hold to be released", left_s=None)
        verdict, move = held, Stay()
    if isinstance(move, Stay | AskPerson) and verdict_is_noted(seen.row, reading, verdict, rules, move, now):
        return False  # a rollout may wait for a person for days: nobody is kept from writing meanwhile
    incidents = incidents_find(seen, move.names) if isinstance(move, TakeBack) else {}
    failpoint("rollout.judged")
    with transaction.atomic(durable=True):
        locked = situation_lock(seen)
        if locked is None:
            return True
        environment, still = locked
        if still.environment.policy.hold != seen.environment.policy.hold:
            return True
        verdict_note(still.row, reading, verdict, rules, move, now)
        moved = move_do(environment, still.row, reading, verdict, move, now, incidents)
        transaction.on_commit(lambda: failpoint("rollout.moved"))
    return moved


def _begins(seen: Situation) -> bool:
    """Whether clients could be sent something new of the rollout since the last look."""
    if seen.side is None or not seen.row.begun or not is_served(seen.environment, seen.row, seen.side, seen.names):
        return False
    return seen.row.evidence_at is None or RolloutPick.objects.filter(rollout=seen.row, asked_at=None).exists()


def _evidence_begin(seen: Situation) -> bool:
    """Note since when answers are waited for."""
    now = database_now()
    with transaction.atomic(durable=True):
        locked = situation_lock(seen)
        if locked is None:
            return True
        row = locked[1].row
        if row.evidence_at is None:
            row.evidence_at = now
        row.served_generation = seen.environment.built_generation
        row.save(update_fields=["evidence_at", "served_generation"])
        RolloutPick.objects.filter(rollout=row, asked_at=None).update(asked_at=now)
        transaction.on_commit(lambda: failpoint("rollout.served"))
    return True
