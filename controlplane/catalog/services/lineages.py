"""Begins a new history of an environment's epochs, after the database lost some of the old one (decisions D5b)."""

import uuid

from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.catalog.models import Environment
from controlplane.journal.services import audit_record


def lineage_renew(*, environment: Environment, actor: Principal, reason: str) -> None:
    """Give the environment a new lineage (the id under which its snapshots are numbered), so that it is built anew. The
    caller has locked its row.

    ADS processes take the snapshot of another lineage whatever its epoch is; within a lineage they never go back
    (reliability P5). No hint is sent, since ADS calls this and has no broker: workers look for builds by themselves.
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
    """Give every environment a new lineage (the id under which its snapshots are numbered), after the database was
    restored from a backup. Returns the environments' keys.
    """
    environments = list(Environment.objects.select_for_update().order_by("pk"))
    for environment in environments:
        lineage_renew(environment=environment, actor=actor, reason=reason)
    return tuple(environment.key for environment in environments)
