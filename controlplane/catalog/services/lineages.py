"""Begins a new history of an environment's epochs, after the database lost some of the old one (decisions D5b)."""

import uuid

from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.catalog.models import Environment
from controlplane.journal.services import audit_record


def lineage_renew(*, environment: Environment, actor: Principal, reason: str) -> None:
    """Give the environment, whose row the caller has locked, a new lineage, and have it built.

    Replicas take the snapshot of another lineage whatever its epoch is; within one they never go back (reliability P5).
    The builder finds the work within its sweep: nobody is hinted, since ADS calls this and has no broker's client.
    """
    before = environment.lineage
    environment.lineage = uuid.uuid4()
    environment.generation += 1
    environment.save(update_fields=["lineage", "generation"])
    audit_record(
        actor=actor,
        verb="environment.lineage_renewed",
        subject=environment.key,
        environment=environment.key,
        detail={"reason": reason, "before": str(before), "after": str(environment.lineage)},
    )


@transaction.atomic
def lineages_renew(*, actor: Principal, reason: str) -> tuple[str, ...]:
    """Give every environment a new lineage, after a restore of the database; the environments' keys."""
    environments = list(Environment.objects.select_for_update().order_by("pk"))
    for environment in environments:
        lineage_renew(environment=environment, actor=actor, reason=reason)
    return tuple(environment.key for environment in environments)
