"""Gathers what an explanation needs and asks the one decision."""

import difflib

from controlplane.catalog.selectors import environment_get, resource_names
from controlplane.explain.answers import Answer, answer_of
from controlplane.snapshots.selectors import snapshot_of_name
from xdscore.access import Audience
from xdscore.decision import Missing, decide
from xdscore.resource_types import ResourceType

_CLOSEST = 3


def explain_name(*, environment_key: str, kind: ResourceType, name: str) -> Answer:
    """What any client of this environment gets for this name now. Raises NotFound for an unknown environment."""
    environment_get(key=environment_key)
    snapshot = snapshot_of_name(environment_key=environment_key, kind=kind, name=name)
    decision = decide(Audience(environment_key), kind, name, snapshot)
    near: tuple[str, ...] = ()
    if isinstance(decision, Missing):
        known = resource_names(environment_key=environment_key, kind=kind)
        near = tuple(difflib.get_close_matches(name, known, n=_CLOSEST))
    return answer_of(decision, kind=kind, name=name, environment=environment_key, near=near)
