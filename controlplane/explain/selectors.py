"""Gathers what an explanation needs and asks the one decision."""

import difflib

from controlplane.access.review import rules_for_nobody, rules_shadowed
from controlplane.access.selectors import access_table
from controlplane.catalog.selectors import environment_get, resource_names
from controlplane.clients.selectors import client_facts
from controlplane.explain.answers import Answer, answer_of
from controlplane.snapshots.selectors import snapshot_of_name
from xdscore.access import Audience
from xdscore.decision import Missing, decide
from xdscore.findings import Finding
from xdscore.resource_types import ResourceType
from xdscore.selectors import ClientFacts

_CLOSEST = 3

NOBODY_IN_PARTICULAR = ClientFacts()


def explain_name(
    *, environment_key: str, kind: ResourceType, name: str, client: ClientFacts = NOBODY_IN_PARTICULAR
) -> Answer:
    """What this client of this environment gets for this name now, and which access rule decided; without a client:
    what those get that belong to no group. Raises NotFound for an unknown environment.
    """
    environment_get(key=environment_key)
    snapshot = snapshot_of_name(environment_key=environment_key, kind=kind, name=name)
    audience = Audience(environment_key) if snapshot is None else snapshot.access.audience(environment_key, client)
    decision = decide(audience, kind, name, snapshot)
    rules = () if snapshot is None else snapshot.access.trace(audience, kind, name)
    near: tuple[str, ...] = ()
    if isinstance(decision, Missing):
        known = resource_names(environment_key=environment_key, kind=kind)
        near = tuple(difflib.get_close_matches(name, known, n=_CLOSEST))
    return answer_of(decision, kind=kind, name=name, environment=environment_key, near=near, rules=rules)


def rules_review(*, environment_key: str) -> tuple[Finding, ...]:
    """Access rules that never decide: those behind others, and those that speak of no known client. Raises NotFound."""
    table = access_table(environment_key=environment_key)
    return (*rules_shadowed(table), *rules_for_nobody(table, client_facts(environment_key=environment_key)))
