"""Finds the incidents about what a rollout took back, so that people find the one from the other (rollouts.md R7)."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from controlplane.clients.clock import database_now
from controlplane.incidents.selectors import incident_get, incidents_of_name
from controlplane.incidents.services import digest
from controlplane.incidents.values import IncidentCause, IncidentState
from controlplane.rollouts.models import RolloutResource
from controlplane.rollouts.services.situation import Situation
from controlplane.rollouts.values import Key, ResourceOutcome

# A refusal becomes an incident within a second or two; where none did after so long, there is none: clients were lost.
_LINK_FOR: Final = timedelta(minutes=10)
# Another process may take in facts at this moment, maybe not these ones: that takes some milliseconds, seldom a second.
_DIGEST_WAIT_S: Final = 1.0
_MAX_LINKS: Final = 100
_MAX_ASKED: Final = 50


def incidents_find(seen: Situation, names: Collection[Key]) -> dict[Key, str]:
    """The ids of the incidents about the present revisions of these names. What clients said until now is counted
    before, so that the incident of today is there.
    """
    digest(wait_s=_DIGEST_WAIT_S)
    revisions = {view.key: view.revision for view in seen.names}
    found = {}
    for key in sorted(names)[:_MAX_ASKED]:
        incident = incident_of(seen.environment.key, key, revisions.get(key, 0))
        if incident:
            found[key] = incident
    return found


def incident_of(environment_key: str, key: Key, revision: int) -> str:
    """The id of the newest incident in which clients refuse this revision; empty where there is none."""
    states = tuple(IncidentState)
    for each in incidents_of_name(environment_key=environment_key, word=key[0], name=key[1], states=states):
        if each.cause is IncidentCause.NACK and incident_get(public_id=each.id).revision == revision:
            return each.id
    return ""


def incidents_link() -> None:
    """Note the incidents that came after the rollout had taken something back."""
    rows = RolloutResource.objects.filter(
        outcome=ResourceOutcome.REVERTED.value, incident="", rollout__started_at__gte=database_now() - _LINK_FOR
    ).select_related("rollout__environment")
    for row in rows.order_by("-pk")[:_MAX_LINKS]:
        incident = incident_of(row.rollout.environment.key, (row.type, row.name), row.revision)
        if incident:
            RolloutResource.objects.filter(pk=row.pk).update(incident=incident)
