"""Reads what a rollout's row holds as values: its settings, steps, groups and the rules of its present step."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Final

from controlplane.catalog.rollout_settings import (
    GateSettings,
    RolloutMode,
    RolloutSettings,
    RolloutStep,
    settings_stored,
)
from controlplane.rollouts.cohort import PILOT, StepSize, size_of
from controlplane.rollouts.facts import Rules
from controlplane.rollouts.models import Rollout
from controlplane.rollouts.values import Counts, Outcome, StepView
from xdscore.client_groups import ClientGroup

# rollouts.md "Gates": on for steps. A cohort may lose so many percent more than the others.
LOST_PERCENT: Final = 5


@dataclass(frozen=True, slots=True)
class StoredStep:
    """One step as a rollout keeps it."""

    who: str
    meant: int
    bake_s: int
    approve: bool
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Outcome | None = None

    def as_json(self) -> dict[str, object]:
        """The step as the JSON object that `step_stored` reads."""
        at = {"started_at": self.started_at, "ended_at": self.ended_at}
        return {
            **asdict(self),
            **{name: moment.isoformat() if moment is not None else None for name, moment in at.items()},
            "outcome": self.outcome.value if self.outcome is not None else None,
        }


def step_stored(data: Mapping[str, object]) -> StoredStep:
    """The step that `StoredStep.as_json` made this of."""
    step = StoredStep(**data)  # type: ignore[arg-type]  # as as_json wrote it
    return replace(
        step,
        started_at=datetime.fromisoformat(str(step.started_at)) if step.started_at else None,
        ended_at=datetime.fromisoformat(str(step.ended_at)) if step.ended_at else None,
        outcome=Outcome(step.outcome) if step.outcome else None,
    )


def sizes_of(settings: RolloutSettings) -> tuple[StepSize, ...]:
    """Whom the steps of these settings mean: a pilot is one step of its own."""
    return (PILOT,) if settings.mode is RolloutMode.PILOT else tuple(map(size_of, settings.steps))


def settings_of(row: Rollout) -> RolloutSettings:
    """The settings that the rollout opened with."""
    return settings_stored(row.settings)


def groups_of(row: Rollout) -> tuple[ClientGroup, ...]:
    """The client groups that the settings name, as they were when the rollout opened."""
    return tuple(ClientGroup.from_json(group) for group in row.groups)


def table_groups(row: Rollout, step: int) -> tuple[ClientGroup, ...]:
    """The groups whose members are on the candidate side at this step: those of it and of all steps before, and none
    before the first went out.
    """
    if not row.begun:
        return ()
    named = {key for size in sizes_of(settings_of(row))[: step + 1] for key in size.groups}
    return tuple(group for group in groups_of(row) if group.key in named)


def gates_of(settings: RolloutSettings, step: int) -> GateSettings:
    """The gates of a step: its own, and where it has none, those of the environment."""
    if settings.mode is RolloutMode.PILOT:
        return settings.gates
    return settings.steps[step].gates.over(settings.gates)


def webhooks_of(settings: RolloutSettings) -> tuple[str, ...]:
    """The URLs of all webhooks that a rollout with these settings asks, each once."""
    steps = range(len(sizes_of(settings)))
    return tuple(dict.fromkeys(url for step in steps for url in gates_of(settings, step).webhooks or ()))


def rules_of(settings: RolloutSettings, step: int) -> Rules:
    """How a step of these settings is judged."""
    pilot = settings.mode is RolloutMode.PILOT
    own: RolloutStep | None = None if pilot else settings.steps[step]
    gates = gates_of(settings, step)
    lost = gates.lost_percent if gates.lost_percent is not None else LOST_PERCENT
    return Rules(
        pilot=pilot,
        answer_within_s=settings.answer_within_s,
        bake_s=own.bake_s if own is not None else 0,
        silent_percent=settings.silent_percent,
        unexposed=settings.when_unexposed,
        errors=gates.errors is not False,
        lost_percent=None if pilot else lost,
        approve=own is not None and own.approve,
        last=pilot or step + 1 == len(settings.steps),
    )


def steps_of(row: Rollout) -> list[StoredStep]:
    """The steps of a rollout."""
    return [step_stored(data) for data in row.steps]


def step_views(row: Rollout, approvals: Mapping[int, tuple[str, ...]]) -> tuple[StepView, ...]:
    """The steps of a rollout as they are shown, from 1. `approvals`: who approved each, by its number from 0."""
    return tuple(
        StepView(
            number=number + 1,
            who=step.who,
            meant=step.meant,
            bake_s=step.bake_s,
            approve=step.approve,
            started_at=step.started_at,
            ended_at=step.ended_at,
            outcome=step.outcome,
            approvals=approvals.get(number, ()),
        )
        for number, step in enumerate(steps_of(row))
    )


def counts_of(data: Mapping[str, int]) -> Counts:
    """The counts that are stored in this object."""
    return Counts(**data)
