"""Reads what webhooks were asked about a rollout, and what they said. Who asks them is `services.asking`."""

from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from controlplane.outside.targets import shown_target
from controlplane.rollouts.facts import WebhookSaid
from controlplane.rollouts.models import Rollout, RolloutQuestion
from controlplane.rollouts.stored import gates_of, settings_of
from controlplane.rollouts.values import Outcome, Phase

_SHOWN_CHARS: Final = 100


def phase_of(row: Rollout) -> Phase:
    """About what webhooks are asked now."""
    return Phase.STEP if row.begun else Phase.BEGIN


def webhooks_now(row: Rollout) -> tuple[str, ...]:
    """The URLs of the webhooks that are asked about the present step."""
    return gates_of(settings_of(row), row.step).webhooks or ()


def webhooks_said(row: Rollout, now: datetime) -> tuple[WebhookSaid, ...]:
    """What each webhook said of the present step, or before the first one."""
    urls = webhooks_now(row)
    if not urls:
        return ()
    asked = {each.place: each for each in questions_now(row)}
    return tuple(_said(url, asked.get(place), now) for place, url in enumerate(urls))


def _said(url: str, asked: RolloutQuestion | None, now: datetime) -> WebhookSaid:
    where = shown_target(url)[:_SHOWN_CHARS]
    if asked is None:
        return WebhookSaid(where)
    if not asked.outcome:
        return WebhookSaid(where, left_s=max((asked.until - now).total_seconds(), 0.0))
    return WebhookSaid(where, Outcome(asked.outcome), asked.reason)


def questions_now(row: Rollout) -> QuerySet[RolloutQuestion]:
    """What webhooks were asked about the present step, or before the first one."""
    return RolloutQuestion.objects.filter(rollout=row, phase=phase_of(row).value, step=row.step)
