"""Celery's door to the builder. A task takes an id, calls a service, and may run twice."""

from celery import shared_task

from controlplane.builder.services import build_when_quiet


@shared_task(name="controlplane.builder.tasks.build", ignore_result=True)
def build(environment_id: int) -> None:
    """Build an environment as soon as its edits pause."""
    build_when_quiet(environment_id=environment_id)
