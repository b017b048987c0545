"""Moves a rollout: whom else to ask, the next step, everybody, back, over. The only writes that reach a side.

Each of these is called within the caller's transaction, with the environment's row locked before the rollout's
(rollouts.md R12).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import uuid4

from controlplane.accounts.principal import SYSTEM, Principal
from controlplane.catalog.models import Environment
from controlplane.catalog.rollout_settings import RolloutSettings
from controlplane.catalog.services.staging import (
    names_promote,
    names_take_back,
    side_close,
    side_open,
    side_step,
)
from controlplane.catalog.staging import StagedView
from controlplane.rollouts.cohort import Member, Pick, meant, step_cohort
from controlplane.rollouts.models import Rollout, RolloutApproval, RolloutChange, RolloutPick, RolloutResource
from controlplane.rollouts.questions import webhooks_now
from controlplane.rollouts.services.consulting import webhooks_forget, webhooks_tell
from controlplane.rollouts.services.telling import rollout_told
from controlplane.rollouts.stored import StoredStep, settings_of, sizes_of, steps_of, table_groups
from controlplane.rollouts.values import Key, Outcome, ResourceOutcome, RolloutState
from controlplane.routecases.sides import cases_broken_by_rollout
from xdscore.client_groups import ClientGroup
from xdscore.sides import RolloutTable

_MAX_AUTHORS: Final = 50
_WORDS_CHARS: Final = 500
_BECAUSE_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Opening:
    """What a rollout opens with, all of it read before. `groups`: those that the settings name; `members`: the
    connected clients, with what they ask for of `names`.
    """

    settings: RolloutSettings
    groups: tuple[ClientGroup, ...]
    names: tuple[StagedView, ...]
    members: tuple[Member, ...]


def rollout_begin(environment: Environment, opening: Opening, now: datetime) -> Rollout:
    """Open a rollout with its first step. Raises Conflict where one is open."""
    settings = opening.settings
    sizes = sizes_of(settings)
    numbers = meant(sizes, opening.members)
    public_id = uuid4()
    row = Rollout(
        public_id=public_id,
        environment=environment,
        mode=settings.mode.value,
        state=RolloutState.RUNNING.value,
        settings=settings.as_json(),
        groups=[group.as_json() for group in opening.groups],
        seed=uuid4().hex,
        lineage=environment.lineage,
        generation=environment.generation,
        started_at=now,
        moved_at=now,
        authors=list(dict.fromkeys(view.author for view in opening.names))[:_MAX_AUTHORS],
    )
    by_step = settings.steps or (None,)
    row.steps = [
        StoredStep(
            who=str(size),
            meant=number,
            bake_s=step.bake_s if step is not None else 0,
            approve=step is not None and step.approve,
            started_at=now if place == 0 else None,
        ).as_json()
        for place, (size, number, step) in enumerate(zip(sizes, numbers, by_step, strict=False))
    ]
    names = frozenset(view.key for view in opening.names)
    # Where webhooks have to agree first, or route cases would break, the candidate side is there, and nobody is on it.
    row.begun = not webhooks_now(row) and not cases_broken_by_rollout(environment_id=environment.pk, names=names)
    picks = _cohort(row, 0, opening.members, inside=frozenset()) if row.begun else ()
    row.save()
    _picks_add(row, picks, step=0)
    side_open(environment, table=table_of(row), names=[view.key for view in opening.names])
    row.generation = environment.generation
    row.save(update_fields=["generation"])
    resources_note(row, opening.names)
    rollout_told("rollout.opened", row)
    return row


def first_begin(
    environment: Environment, row: Rollout, members: Collection[Member], inside: Collection[str], now: datetime
) -> None:
    """Let the first step of a rollout go out, now that it may. `members`: the connected clients."""
    row.begun = True
    row.reasons, row.outcome = [], ""
    _picks_add(row, _cohort(row, row.step, members, inside), step=row.step)
    row.evidence_at, row.moved_at = None, now
    _stepped(environment, row)


def step_begin(
    environment: Environment, row: Rollout, members: Collection[Member], inside: Collection[str], now: datetime
) -> None:
    """Begin the next step of a rollout. `members`: the connected clients; `inside`: the digests of those that are on
    the candidate side already.
    """
    steps = steps_of(row)
    steps[row.step] = replace(steps[row.step], ended_at=now, outcome=Outcome.PASS)
    row.step += 1
    steps[row.step] = replace(steps[row.step], started_at=now)
    row.steps = [step.as_json() for step in steps]
    _picks_add(row, _cohort(row, row.step, members, inside), step=row.step)
    row.evidence_at, row.moved_at = None, now
    # What was waited for was about the step before.
    row.waits_for = ""
    _stepped(environment, row)
    rollout_told("rollout.stepped", row)


def more_ask(environment: Environment, row: Rollout, picks: Collection[Pick]) -> None:
    """Ask more clients within the present step (R8, R9, R10)."""
    _picks_add(row, picks, step=row.step)
    _stepped(environment, row)


def cohort_renew(
    environment: Environment, row: Rollout, members: Collection[Member], inside: Collection[str], now: datetime
) -> None:
    """Begin the evidence of the present step again, because names of the rollout changed meanwhile (R5): clients that
    ask for what is new join the cohort, and nobody leaves it.
    """
    picks = _cohort(row, row.step, members, inside) if row.begun else ()
    row.evidence_at, row.moved_at = None, now
    if picks:
        more_ask(environment, row, picks)
    else:
        row.save()


def rollout_promote(environment: Environment, row: Rollout, now: datetime, because: str) -> None:
    """Let everybody have what the rollout still holds, and end it (rollouts.md R3)."""
    left = _candidates(row)
    promoted = names_promote(environment, names=left)
    steps = steps_of(row)
    steps[row.step] = replace(steps[row.step], ended_at=now, outcome=Outcome.PASS)
    row.steps = [step.as_json() for step in steps]
    for each in RolloutResource.objects.filter(rollout=row, outcome=ResourceOutcome.CANDIDATE.value):
        each.outcome = (
            ResourceOutcome.PROMOTED if (each.type, each.name) in promoted else ResourceOutcome.RETURNED
        ).value
        each.save(update_fields=["outcome"])
    rollout_end(environment, row, RolloutState.DONE, now, because)


def names_revert(
    environment: Environment,
    row: Rollout,
    names: Collection[Key],
    *,
    because: str,
    incidents: Mapping[Key, str],
    actor: Principal = SYSTEM,
) -> None:
    """Take these names back: both sides have what the stable one has, and what was taken back goes into quarantine
    (rollouts.md R7).
    """
    wanted = {key: incidents.get(key, "") for key in names}
    names_take_back(environment, incidents=wanted, reason=because, actor=actor, rollout_label=str(row))
    for each in RolloutResource.objects.filter(rollout=row, outcome=ResourceOutcome.CANDIDATE.value):
        if (each.type, each.name) in wanted:
            each.outcome = ResourceOutcome.REVERTED.value
            each.incident = wanted[each.type, each.name]
            each.because = because[:_WORDS_CHARS]
            each.save(update_fields=["outcome", "incident", "because"])
    row.generation = environment.generation
    row.save(update_fields=["generation"])
    rollout_told("rollout.took_back", row, because=because, actor="" if actor is SYSTEM else actor.name)


def rollout_end(
    environment: Environment, row: Rollout, state: RolloutState, now: datetime, because: str, actor: str = ""
) -> None:
    """End a rollout, and the candidate side with it. What it still holds waits for the next one."""
    side_close(environment)
    RolloutResource.objects.filter(rollout=row, outcome=ResourceOutcome.CANDIDATE.value).update(
        outcome=ResourceOutcome.RETURNED.value
    )
    row.state = state.value
    row.generation = environment.generation
    row.ended_at = now
    row.ended_because = because[:_WORDS_CHARS]
    row.waits_for, row.until = "", None
    row.save()
    webhooks_tell(row, now)
    rollout_told(f"rollout.{state.value}", row, because=because, actor=actor)


def resources_note(row: Rollout, names: Collection[StagedView]) -> bool:
    """Note the resources that the rollout holds now, and their changes; returns whether any of them is news."""
    known = {(each.type, each.name): each for each in RolloutResource.objects.filter(rollout=row)}
    news = False
    for view in names:
        each = known.get(view.key) or RolloutResource(rollout=row, type=view.key[0], name=view.key[1])
        said = (view.revision, ResourceOutcome.CANDIDATE.value)
        if (each.revision, each.outcome) == said:
            continue
        news = True
        each.revision, each.outcome = said
        each.from_revision, each.to_revision = view.from_revision, view.to_revision
        each.change, each.author = view.change, view.author
        each.save()
        RolloutChange.objects.get_or_create(rollout=row, change=view.change)
    return news


def approvals_void(row: Rollout) -> None:
    """Ask again for the approvals of the present step and of later ones, and the webhooks of the present one, because
    something of the rollout changed (rollouts.md, settled question 6).
    """
    webhooks_forget(row, passed=True)
    RolloutApproval.objects.filter(rollout=row, step__gte=row.step).update(void=True)


def table_of(row: Rollout) -> RolloutTable:
    """Who is on the candidate side by what the rollout's rows say."""
    picks = frozenset(RolloutPick.objects.filter(rollout=row).values_list("digest", flat=True))
    return RolloutTable(str(row.public_id), row.step, picks, table_groups(row, row.step), row.permille, row.seed)


def _stepped(environment: Environment, row: Rollout) -> None:
    side_step(environment, table=table_of(row))
    row.generation = environment.generation
    row.save()


def _cohort(row: Rollout, step: int, members: Collection[Member], inside: Collection[str]) -> tuple[Pick, ...]:
    settings = settings_of(row)
    cohort = step_cohort(
        sizes_of(settings)[step],
        tuple(members),
        inside=inside,
        seed=row.seed,
        prefer_group=settings.prefer_group or None,
    )
    # Nobody is moved back, whatever a later step means by itself (rollouts.md "Words").
    row.permille = max(row.permille, cohort.permille)
    row.uncovered = list(cohort.uncovered)
    return cohort.picks


def _picks_add(row: Rollout, picks: Collection[Pick], *, step: int) -> None:
    RolloutPick.objects.bulk_create(
        (
            RolloutPick(
                rollout=row,
                client=pick.member.client,
                digest=pick.member.digest,
                identity=pick.member.identity,
                node_id=pick.member.node_id,
                kind=pick.member.kind,
                why=pick.why.value,
                because=pick.because[:_BECAUSE_CHARS],
                step=step,
            )
            for pick in picks
        ),
        ignore_conflicts=True,
    )


def _candidates(row: Rollout) -> list[Key]:
    rows = RolloutResource.objects.filter(rollout=row, outcome=ResourceOutcome.CANDIDATE.value)
    return list(rows.values_list("type", "name"))
