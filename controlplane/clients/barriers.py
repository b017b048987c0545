"""Answers which names the access rules keep from which clients. For whoever counts what a fleet runs.

A client that asks for a name it may not read is told so and acknowledges that (xRFC TP3): an ACK of the type then says
nothing of the name. The table that decides for streams decides here too (architecture.md law 2). Metadata of clients is
not kept, so groups over it hold nobody.
"""

from collections.abc import Collection
from dataclasses import dataclass

from controlplane.access.selectors import access_table
from xdscore.access import AccessTable, Audience, Effect
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import by_word

Key = tuple[str, str]
"""The word of a type, and a resource's name."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """The access rules that matter to a few names, whose types have these `words`. `table` holds no rule but those that
    match one of the names, so that only the groups of these rules tell one client from another.
    """

    environment_key: str
    words: frozenset[str]
    table: AccessTable

    @property
    def open(self) -> bool:
        """Whether every client may read all of the names."""
        defaults = {self.table.by_default(by_word[word]).effect for word in self.words}
        return defaults | {rule.effect for rule in self.table.rules} <= {Effect.ALLOW}

    def audience(self, facts: ClientFacts) -> Audience:
        """The audience of a client. Clients of one audience may read the same of these names."""
        return self.table.audience(self.environment_key, facts)

    def keeps(self, audience: Audience, key: Key) -> bool:
        """Whether this audience may not read this name: it is told PERMISSION_DENIED or NOT_FOUND if it asks."""
        word, name = key
        return self.table.ruling(audience, by_word[word], name).effect is not Effect.ALLOW


def barrier_of(*, environment_key: str, keys: Collection[Key]) -> Barrier:
    """The barrier of these names, by the access rules as they are now. Raises NotFound."""
    whole = access_table(environment_key=environment_key)
    numbers = {number for word, name in keys for number in whole.row(by_word[word], name)}
    return Barrier(environment_key, frozenset(word for word, _ in keys), whole.only(numbers))
