"""Does what follows from a verdict, and writes down what the judge says."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Final

from controlplane.catalog.models import Environment
from controlplane.catalog.rollout_settings import OnFailure
from controlplane.rollouts.cohort import Pick, second
from controlplane.rollouts.facts import Ask, Rules, Verdict
from controlplane.rollouts.judge import state_of
from controlplane.rollouts.models import Rollout, RolloutPick
from controlplane.rollouts.moves import AskMore, AskPerson, Begin, Consult, Move, Promote, Stay, Step, TakeBack
from controlplane.rollouts.reading import Reading
from controlplane.rollouts.services.consulting import webhooks_consult
from controlplane.rollouts.services.keeping import verdict_keep
from controlplane.rollouts.services.moving import (
    first_begin,
    more_ask,
    names_revert,
    rollout_end,
    rollout_promote,
    step_begin,
)
from controlplane.rollouts.services.settling import ended_as
from controlplane.rollouts.services.telling import rollout_told
from controlplane.rollouts.stored import rules_of, settings_of
from controlplane.rollouts.values import ClientState, Counts, Key, Outcome, RolloutState, Why

# The words of a verdict say how long something takes; what differs by less is no news.
_SAME_S: Final = 2.0
_WORDS_CHARS: Final = 500


def move_do(
    environment: Environment,
    row: Rollout,
    reading: Reading,
    verdict: Verdict,
    move: Move,
    now: datetime,
    incidents: Mapping[Key, str],
) -> bool:
    """Do what follows from a verdict; returns whether something moved."""
    because = "; ".join(verdict.reasons)
    match move:
        case Consult():
            webhooks_consult(row, now)
            return False
        case Begin():
            first_begin(environment, row, reading.fleet.members, reading.inside, now)
        case Step():
            step_begin(environment, row, reading.fleet.members, reading.inside, now)
        case Promote():
            states_keep(row, reading)
            rollout_promote(environment, row, now, because)
        case TakeBack(names=names, over=over):
            # What was refused is the same on both sides from now on, and nobody refuses it any more.
            states_keep(row, reading)
            names_revert(environment, row, names, because=because, incidents=incidents)
            if over:
                aborts = settings_of(row).on_failure is OnFailure.ABORT
                state = ended_as(row, RolloutState.ABORTED if aborts else RolloutState.REVERTED)
                rollout_end(environment, row, state, now, because)
        case AskMore(asks=asks):
            picks = _seconds(asks, reading, row.seed)
            if not picks:
                return False
            more_ask(environment, row, picks)
        case Stay() | AskPerson():
            return False
    return True


def _seconds(asks: tuple[Ask, ...], reading: Reading, seed: str) -> tuple[Pick, ...]:
    """Whom else to ask: for each kind and name one client more, which may do for several names."""
    found: dict[str, Pick] = {}
    for ask in asks:
        if any(pick.member.kind == ask.kind and ask.key in pick.member.asks for pick in found.values()):
            continue
        inside = reading.inside | {pick.member.digest for pick in found.values()}
        member = second(ask.kind, ask.key, reading.fleet.members, inside=inside, parties=ask.parties, seed=seed)
        if member is not None:
            why, because = Why.SECOND, f"who was asked of {ask.kind} before refused it, was lost, or did not answer"
            if not ask.parties:
                why, because = Why.PILOT, f"no {ask.kind} had been asked for the {ask.key[0]} '{ask.key[1]}'"
            found[member.digest] = Pick(member, why, because)
    return tuple(found.values())


def states_keep(row: Rollout, reading: Reading) -> None:
    """Keep what each client that was chosen had said, because nobody can tell once the rollout is over; who refused
    something of it once is kept as that.
    """
    rules = rules_of(settings_of(row), row.step)
    states = {asked.client: state_of(asked, rules).value for asked in reading.cohort}
    for pick in RolloutPick.objects.filter(rollout=row).exclude(state=ClientState.REFUSED.value):
        pick.state = states.get(pick.client, "")
        pick.save(update_fields=["state"])


def verdict_is_noted(row: Rollout, reading: Reading, verdict: Verdict, rules: Rules, move: Move, now: datetime) -> bool:
    """Whether the rollout says already what the judge says now, so that there is nothing to write."""
    return _is_noted(row, _said(row, reading, verdict, reading.counts(rules), rules, move, now))


def verdict_note(row: Rollout, reading: Reading, verdict: Verdict, rules: Rules, move: Move, now: datetime) -> None:
    """Write what the judge says now into the rollout, where it says something else than before."""
    counts = reading.counts(rules)
    if reading.facts.served_s is not None or not reading.facts.begun:
        verdict_keep(row, reading.facts, verdict, counts, now)
    said = _said(row, reading, verdict, counts, rules, move, now)
    if _is_noted(row, said):
        return
    waited = row.state == RolloutState.WAITING
    for name, value in said.items():
        setattr(row, name, value)
    row.save(update_fields=list(said))
    if row.state == RolloutState.WAITING and not waited:
        because = "; ".join(verdict.reasons) if verdict.outcome is Outcome.INCONCLUSIVE else verdict.waits_for
        rollout_told("rollout.waiting", row, because=because)


def _is_noted(row: Rollout, said: Mapping[str, object]) -> bool:
    return all(getattr(row, name) == value for name, value in said.items())


def _said(
    row: Rollout, reading: Reading, verdict: Verdict, counts: Counts, rules: Rules, move: Move, now: datetime
) -> dict[str, object]:
    """What the judge says now, by column of the rollout."""
    until = now + timedelta(seconds=verdict.left_s) if verdict.left_s is not None else None
    if row.until is not None and until is not None and abs((row.until - until).total_seconds()) < _SAME_S:
        until = row.until
    waits = verdict.outcome is None and rules.approve and verdict.waits_for.startswith("a person")
    state = RolloutState.WAITING if isinstance(move, AskPerson) or waits else RolloutState.RUNNING
    waits_for = verdict.waits_for or ("a person to say how it goes on" if isinstance(move, AskPerson) else "")
    return {
        "state": state.value,
        "outcome": verdict.outcome.value if verdict.outcome is not None else "",
        "reasons": list(verdict.reasons),
        "waits_for": waits_for[:_WORDS_CHARS],
        "control": reading.control,
        "until": until,
        "counts": asdict(counts),
    }
