"""Writes down what webhooks are to be asked about a rollout, and lets them be asked again. `services.asking` asks."""

from collections.abc import Collection
from datetime import datetime, timedelta

from controlplane.rollouts.models import Rollout, RolloutQuestion
from controlplane.rollouts.questions import phase_of, questions_now, webhooks_now
from controlplane.rollouts.stored import settings_of, webhooks_of
from controlplane.rollouts.values import Outcome, Phase


def webhooks_consult(row: Rollout, now: datetime) -> None:
    """Note that the webhooks of the present step are to be asked, those that were not yet."""
    _ask(row, phase_of(row), webhooks_now(row), now)


def webhooks_tell(row: Rollout, now: datetime) -> None:
    """Note that all webhooks of a rollout are to be told that it is over. What was not asked yet is asked no more."""
    RolloutQuestion.objects.filter(rollout=row, outcome="").delete()
    _ask(row, Phase.END, webhooks_of(settings_of(row)), now)


def webhooks_forget(row: Rollout, *, passed: bool) -> None:
    """Let webhooks be asked about the present step again. `passed`: also those that agreed."""
    rows = questions_now(row)
    (rows if passed else rows.exclude(outcome=Outcome.PASS.value)).delete()


def _ask(row: Rollout, phase: Phase, urls: Collection[str], now: datetime) -> None:
    until = now + timedelta(seconds=settings_of(row).answer_within_s)
    RolloutQuestion.objects.bulk_create(
        (
            RolloutQuestion(
                rollout=row, phase=phase.value, step=row.step, place=place, url=url, due_at=now, until=until
            )
            for place, url in enumerate(urls)
        ),
        ignore_conflicts=True,
    )
