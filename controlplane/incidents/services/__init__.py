"""The writes of this room: the digest makes incidents of facts, and operators act on them."""

from controlplane.incidents.services.actions import incident_quarantine, incident_release, incident_set_state
from controlplane.incidents.services.digesting import digest

__all__ = ["digest", "incident_quarantine", "incident_release", "incident_set_state"]
