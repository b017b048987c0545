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
from xdscore.access import Effect, Rule
from xdscore.resource_types import ResourceType


@dataclass(frozen=True, slots=True)
class Reach:
    """How many clients may read a name, and by which rules. `rules` match the name, in order; `default` is what holds
    where none of them speaks of a client. Of a secret that is never what the environment's default effect says if that
    allows.
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
        """The number of all clients that are known."""
        return self.allowed + self.denied + self.hidden

    @property
    def closed(self) -> bool:
        """Whether the name is a secret's that no rule lets anybody read."""
        return self.kind.secret and all(rule.effect is not Effect.ALLOW for rule in self.rules)


def reach_of(*, environment_key: str, kind: ResourceType, name: str) -> Reach:
    """How many clients may read this name now. Raises NotFound. Metadata of clients is not kept, so groups over it
    count nobody.
    """
    whole = access_table(environment_key=environment_key)
    table = whole.only(whole.row(kind, name))
    audiences = Counter(table.audience(environment_key, each) for each in client_facts(environment_key=environment_key))
    count: Counter[Effect] = Counter()
    for audience, clients in audiences.items():
        count[table.ruling(audience, kind, name).effect] += clients
    default = table.by_default(kind).effect
    return Reach(kind, name, count[Effect.ALLOW], count[Effect.DENY], count[Effect.HIDE], table.rules, default)


def impact_read(*, environment_key: str, edits: Sequence[Edited]) -> Impact:
    """How these edits would affect the clients that are connected now. Raises NotFound. Metadata of clients is not
    kept, so groups over it hold nobody.
    """
    table = access_table(environment_key=environment_key)
    fleet = fleet_asks(environment_key=environment_key, words={edit.word for edit in edits})
    return impact_of(edits, environment=environment_key, table=table, fleet=fleet)
