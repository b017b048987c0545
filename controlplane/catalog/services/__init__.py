"""The catalogue's writes. Each is one transaction that locks the environment first and counts its generation
(decisions D6).
"""

from controlplane.catalog.services.blobs import blobs_delete, blobs_prune, blobs_write
from controlplane.catalog.services.cases import Rewriting, cases_judged
from controlplane.catalog.services.changes import ALONE, Aside, Beside, Tables, change_apply, change_plan, change_write
from controlplane.catalog.services.environments import (
    environment_create,
    environment_default_ensure,
    environment_delete,
    environment_publish_fence,
    environment_publish_lock,
    environment_update,
    environments_publish_lock,
    quarantine_default,
)
from controlplane.catalog.services.expiring import certificates_watch
from controlplane.catalog.services.freezing import barrier_findings, barriers_pass, review_pass
from controlplane.catalog.services.guarding import loss_accept
from controlplane.catalog.services.lineages import lineage_renew, lineages_renew
from controlplane.catalog.services.planning import Prepared, Terms, prepare
from controlplane.catalog.services.quarantines import (
    Opening,
    proofs_record,
    quarantine_open,
    quarantine_probed,
    quarantine_refused,
    quarantine_release,
    quarantines_open,
    quarantines_release,
)
from controlplane.catalog.services.rehearsing import (
    rehearsal_close,
    rehearsal_expire,
    rehearsal_held,
    rehearsal_open,
    rehearsals_prune,
)
from controlplane.catalog.services.restoring import (
    earlier_parsed,
    parsed_again,
    resource_restore,
    revision_parsed,
)
from controlplane.catalog.services.rotation import Resealed, secrets_foreign, secrets_reseal
from controlplane.catalog.services.secrets import secrets_read_record
from controlplane.catalog.services.staging import names_promote, names_take_back, side_close, side_open, side_step
from controlplane.catalog.services.undoing import (
    resources_undo,
    resources_undo_way,
    settings_before,
    settings_undo,
    settings_undo_way,
)
from controlplane.catalog.services.writing import change_start, environment_lock

__all__ = [
    "ALONE",
    "Aside",
    "Beside",
    "Opening",
    "Prepared",
    "Resealed",
    "Rewriting",
    "Tables",
    "Terms",
    "barrier_findings",
    "barriers_pass",
    "blobs_delete",
    "blobs_prune",
    "blobs_write",
    "cases_judged",
    "certificates_watch",
    "change_apply",
    "change_plan",
    "change_start",
    "change_write",
    "earlier_parsed",
    "environment_create",
    "environment_default_ensure",
    "environment_delete",
    "environment_lock",
    "environment_publish_fence",
    "environment_publish_lock",
    "environment_update",
    "environments_publish_lock",
    "lineage_renew",
    "lineages_renew",
    "loss_accept",
    "names_promote",
    "names_take_back",
    "parsed_again",
    "prepare",
    "proofs_record",
    "quarantine_default",
    "quarantine_open",
    "quarantine_probed",
    "quarantine_refused",
    "quarantine_release",
    "quarantines_open",
    "quarantines_release",
    "rehearsal_close",
    "rehearsal_expire",
    "rehearsal_held",
    "rehearsal_open",
    "rehearsals_prune",
    "resource_restore",
    "resources_undo",
    "resources_undo_way",
    "review_pass",
    "revision_parsed",
    "secrets_foreign",
    "secrets_read_record",
    "secrets_reseal",
    "settings_before",
    "settings_undo",
    "settings_undo_way",
    "side_close",
    "side_open",
    "side_step",
]
