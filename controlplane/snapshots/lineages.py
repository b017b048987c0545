"""Notices that the database lost snapshots: a backup was put back, power failed, a standby took over (D5b)."""

import structlog
from django.db import transaction

from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.services import environment_lock, lineage_renew
from controlplane.common.errors import NotFound
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.selectors import SnapshotHead

log = structlog.get_logger(__name__)


@transaction.atomic(durable=True)
def lineage_check(*, held: SnapshotHead) -> bool:
    """Whether the database has lost `held`, a snapshot that an ADS process still has. If so, the environment gets a new
    lineage (the id of one unbroken history of epochs).

    However many ADS processes notice the loss, only the first one's call gives a new lineage and returns True.
    """
    try:
        environment = environment_lock(key=held.environment)
    except NotFound:
        return False
    if str(environment.lineage) != held.lineage or not _lost(environment.pk, held):
        return False
    reason = f"the database went back behind epoch {held.epoch}, which is being served"
    lineage_renew(environment=environment, actor=SYSTEM, reason=reason)
    log.warning("lineage.renewed", environment=held.environment, epoch=held.epoch, reason=reason)
    return True


def _lost(environment_id: int, held: SnapshotHead) -> bool:
    newest = SnapshotRow.objects.filter(environment_id=environment_id, lineage=held.lineage).order_by("-epoch").first()
    if newest is None or newest.epoch < held.epoch:
        return True
    stored = newest.root_id, newest.access_id, newest.rollout_id or ""
    return newest.epoch == held.epoch and not held.is_of(stored)
