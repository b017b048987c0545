"""Celery's door to the builder. A task takes an id, calls a service, and may run twice."""

from celery import shared_task

from controlplane.builder.services import build_in_turn


@shared_task(name="controlplane.builder.tasks.build", ignore_result=True)
def build(environment_id: int) -> None:
    """Build an environment as soon as it is its turn."""
    build_in_turn(environment_id=environment_id)
