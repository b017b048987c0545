"""Which client groups a client belongs to, as far as what is kept of it tells."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from controlplane.access.selectors import group_list, group_state
from controlplane.clients.selectors import ClientSummary
from xdscore.client_groups import ClientGroup


@dataclass(frozen=True, slots=True)
class Membership:
    """The keys of the groups a client belongs to, and of those for which its metadata, which is not kept, would
    decide.
    """

    groups: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


def memberships_of(*, environment_key: str, clients: Collection[ClientSummary]) -> Mapping[str, Membership]:
    """The groups of these clients of one environment, by client id. One query."""
    groups = [group_state(row).draft.group for row in group_list(environment_key=environment_key)]
    return {client.id: _membership(groups, client) for client in clients}


def _membership(groups: Collection[ClientGroup], client: ClientSummary) -> Membership:
    facts = client.facts
    return Membership(
        tuple(group.key for group in groups if group.has(facts)),
        tuple(group.key for group in groups if group.may_have(facts)),
    )
