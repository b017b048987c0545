"""Says who may read a name, whether or not it exists: the rules that speak of it, and how many known clients each
effect is for; and what edits would mean to the clients that are connected. The same table decides that decides for
streams (architecture.md law 2).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.access.selectors import access_table
from controlplane.clients.fleet_selectors import fleet_asks
from controlplane.clients.selectors import client_facts
from controlplane.explain.impact import Edited, Impact, impact_of
from xdscore.access import AccessTable, Effect, Rule
from xdscore.resource_types import ResourceType


@dataclass(frozen=True, slots=True)
class Reach:
    """How many known clients may read a name, are denied it, or have it hidden from them, and by which access rules.

    `rules`: those that match the name, in order.
    `default`: the effect for clients for which none of them decides. For secrets it never allows, whatever the
        environment's default is.
    """

    kind: ResourceType
    name: str
    allowed: int
    denied: int
    hidden: int
    rules: tuple[Rule, ...]
    default: Effect

    @property
    def clients(self) -> int:
        """The number of all known clients of the environment."""
        return self.allowed + self.denied + self.hidden

    @property
    def closed(self) -> bool:
        """Whether the name is of a secret and no access rule allows anybody to read it."""
        return self.kind.secret and all(rule.effect is not Effect.ALLOW for rule in self.rules)


def reach_of(*, environment_key: str, kind: ResourceType, name: str) -> Reach:
    """How many known clients may read this name now, whether or not it exists. Metadata of clients is not stored, so
    that groups by metadata count nobody. Raises NotFound for an unknown environment.
    """
    whole = access_table(environment_key=environment_key)
    table = whole.only(whole.row(kind, name))
    audiences = Counter(table.audience(environment_key, each) for each in client_facts(environment_key=environment_key))
    count: Counter[Effect] = Counter()
    for audience, clients in audiences.items():
        count[table.ruling(audience, kind, name).effect] += clients
    default = table.by_default(kind).effect
    return Reach(kind, name, count[Effect.ALLOW], count[Effect.DENY], count[Effect.HIDE], table.rules, default)


def impact_read(*, environment_key: str, edits: Sequence[Edited], table: AccessTable | None = None) -> Impact:
    """How the edits would affect the clients that are connected now. `table`: the access rules that hold with the
    edits; None: those that hold now. Metadata of clients is not stored, so that groups by metadata hold nobody. Raises
    NotFound for an unknown environment.
    """
    table = access_table(environment_key=environment_key) if table is None else table
    fleet = fleet_asks(environment_key=environment_key, words={edit.word for edit in edits})
    return impact_of(edits, environment=environment_key, table=table, fleet=fleet)
