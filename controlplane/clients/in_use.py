"""What clients acknowledged and do not use yet, as far as the protocol shows it (truth.md H5): who is expected to ask
for what, and the sentences about who did not. Pure.

Acknowledged is not applied (envoyproxy/envoy#39891, #46550). But who uses a listener asks for its routes, who uses a
cluster for its endpoints, and both for their secrets: by what a client did not ask for it is known what it waits with.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from xdscore.client_kinds import ClientFamily
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET

Key = tuple[str, str]
"""A type's word and a name."""
ANSWER_WITHIN: Final = timedelta(seconds=30)
"""So long after its ACK a client is expected to have asked for what it needs (interfaces.md section 8)."""
USERS: Final = frozenset({LISTENER.word, CLUSTER.word})
"""The types of resources that a client uses only once it asked for others."""
USED: Final = frozenset({ROUTE.word, ENDPOINT.word, SECRET.word})
"""The types of the others."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Unused:
    """A resource that `clients` clients acknowledged and do not use yet. `missing`: what it refers to and at least one
    of them did not ask for.
    """

    type: str
    name: str
    clients: int
    missing: tuple[Key, ...]

    @property
    def sentence(self) -> str:
        """The sentence that says so, such as "12 clients took listener 'web' and did not ask for route 'shop'"."""
        who = "1 client" if self.clients == 1 else f"{self.clients} clients"
        return f"{who} took {self.type} '{self.name}' and did not ask for {_listed(self.missing)}."


@dataclass(frozen=True, slots=True)
class NotInUse:
    """The ids of the clients that do not use yet something that they acknowledged, and what that is, by which most
    clients come first. `waits`: it is too early to say it of all.
    """

    clients: frozenset[str] = frozenset()
    resources: tuple[Unused, ...] = ()
    waits: bool = False


def not_asked_for(needs: Iterable[Key], asked: Collection[Key], family: ClientFamily) -> tuple[Key, ...]:
    """Which of the names that a resource refers to (`needs`) a client of this family that acknowledged it is expected
    to ask for and does not; `asked`: those of them that it asks for.
    """
    # gRPC has its certificates from providers of its own bootstrap, and asks for no secrets.
    expected = USED if family is ClientFamily.ENVOY else USED - {SECRET.word}
    return tuple(sorted({each for each in needs if each[0] in expected and each not in asked}))


def unused_sentence(missing: Collection[Key]) -> str:
    """The sentence that says that a client has something and does not use it; `missing`: what it did not ask for."""
    return f"Held, not in use yet: it has not asked for {_listed(missing)}."


def _listed(missing: Collection[Key]) -> str:
    named = [f"{word} '{name}'" for word, name in sorted(missing)]
    return ", ".join(named[:_SHOWN]) + (f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else "")
