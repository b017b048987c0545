"""Which client groups a client belongs to, as far as what is kept of it tells."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from controlplane.access.selectors import group_list, group_state
from controlplane.clients.selectors import ClientSummary
from xdscore.client_groups import ClientGroup, Trust
from xdscore.selectors import ClientFacts


@dataclass(frozen=True, slots=True)
class Membership:
    """The keys of the groups it belongs to, and of those whose metadata, which is not kept, would decide."""

    groups: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


def memberships_of(*, environment_key: str, clients: Collection[ClientSummary]) -> Mapping[str, Membership]:
    """By client id, the groups of these clients of one environment. One query."""
    groups = [group_state(row).draft.group for row in group_list(environment_key=environment_key)]
    return {client.id: _membership(groups, client) for client in clients}


def may_have(group: ClientGroup, client: ClientFacts) -> bool:
    """Whether metadata, which is not kept of clients, would decide whether the group has this one."""
    matchers = [matcher for matcher in group.matchers if matcher.metadata]
    if not matchers or group.has(client) or (group.trust is Trust.VERIFIED and not client.verified):
        return False
    return any(replace(matcher, metadata={}, node_id=matcher.node_id or "*").fits(client) for matcher in matchers)


def _membership(groups: Collection[ClientGroup], client: ClientSummary) -> Membership:
    facts = client.facts
    return Membership(
        tuple(group.key for group in groups if group.has(facts)),
        tuple(group.key for group in groups if may_have(group, facts)),
    )
