"""Celery's door to rollouts. A task takes an id, calls a service, and may run twice."""

from celery import shared_task

from controlplane.rollouts.services import rollout_tick


@shared_task(name="controlplane.rollouts.tasks.advance", ignore_result=True)
def advance(environment_id: int) -> None:
    """Open the rollout that is due in an environment, or bring the open one as far as facts allow."""
    rollout_tick(environment_id=environment_id)
