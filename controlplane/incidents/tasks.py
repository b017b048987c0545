"""Celery's door to the digest. It may run at any time, any number of times."""

from celery import shared_task

from controlplane.incidents import services


@shared_task(name="controlplane.incidents.tasks.digest", ignore_result=True)
def digest() -> None:
    """Digest the proofs, probes and NACKs that wait."""
    services.digest()
