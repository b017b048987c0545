"""Answers which names the access rules keep from which clients. For whoever counts what a fleet runs.

A client that asks for a name it may not read is told so and acknowledges that (xRFC TP3): an ACK of the type then says
nothing of the name. The table that decides for streams decides here too (architecture.md law 2). Metadata of clients is
not kept, so groups over it hold nobody.
"""

from collections.abc import Collection
from dataclasses import dataclass

from controlplane.access.selectors import access_table
from xdscore.access import AccessTable, Audience, Effect
from xdscore.resource_types import by_word
from xdscore.selectors import ClientFacts

Key = tuple[str, str]
"""(type word, name)."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """What the rules say of a few names, which are of the types with these `words`. `table` holds no rule but those
    that match one of them, so that only the groups of these tell one client from another.
    """

    environment_key: str
    words: frozenset[str]
    table: AccessTable

    @property
    def open(self) -> bool:
        """Whether none of the names can be kept from anybody."""
        defaults = {self.table.by_default(by_word[word]).effect for word in self.words}
        return defaults | {rule.effect for rule in self.table.rules} <= {Effect.ALLOW}

    def audience(self, facts: ClientFacts) -> Audience:
        """Clients of one audience may read the same of these names."""
        return self.table.audience(self.environment_key, facts)

    def keeps(self, audience: Audience, key: Key) -> bool:
        """Whether this audience may not read this name: it is told PERMISSION_DENIED or NOT_FOUND if it asks."""
        word, name = key
        return self.table.verdict(audience, by_word[word], name).effect is not Effect.ALLOW


def barrier_of(*, environment_key: str, keys: Collection[Key]) -> Barrier:
    """What the rules say of these names now. Raises NotFound."""
    whole = access_table(environment_key=environment_key)
    numbers = {number for word, name in keys for number in whole.row(by_word[word], name)}
    return Barrier(environment_key, frozenset(word for word, _ in keys), whole.only(numbers))
