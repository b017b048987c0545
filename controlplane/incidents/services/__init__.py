"""The writes of this room: the digest makes incidents of facts, and operators act on them."""

from controlplane.incidents.services.actions import (
    incident_mended_next,
    incident_quarantine,
    incident_release,
    incident_set_state,
)
from controlplane.incidents.services.assigning import incident_assign
from controlplane.incidents.services.digesting import digest
from controlplane.incidents.services.many import revisions_quarantine, revisions_release
from controlplane.incidents.services.muting import incident_mute, incident_unmute
from controlplane.incidents.services.undoing import quarantine_undo, quarantine_undo_way

__all__ = [
    "digest",
    "incident_assign",
    "incident_mended_next",
    "incident_mute",
    "incident_quarantine",
    "incident_release",
    "incident_set_state",
    "incident_unmute",
    "quarantine_undo",
    "quarantine_undo_way",
    "revisions_quarantine",
    "revisions_release",
]
