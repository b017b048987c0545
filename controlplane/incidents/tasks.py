"""Celery's door to the digest. It may run at any time, any number of times."""

from celery import shared_task

from controlplane.incidents import services


@shared_task(name="controlplane.incidents.tasks.digest", ignore_result=True)
def digest() -> None:
    """Turn what ADS reported (ACKs, NACKs, probes) into incidents, as `services.digesting.digest` does."""
    services.digest()
