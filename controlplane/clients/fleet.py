"""The connected clients, and what they ask for, for the loss guard. Pure.

A fleet of thousands asks for few different things, so clients are told apart by a text that says all a client asks for
(`Member.asks`); it is read once for all clients that share it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.selectors import ClientFacts
from xdscore.xdstp import Glob, glob_of

Names = Mapping[str, "NameSet"]


class Member(NamedTuple):
    """One client with an open stream. `asks` is what its streams ask for, as `Fleet.asks` reads it; `agent` is (name,
    version) of its software. `certain`: its ADS process reports now, so that it is known to be connected.
    """

    client: str
    environment: str
    identity: str
    node_id: str
    node_cluster: str
    agent: tuple[str, str]
    asks: str
    certain: bool = True

    @property
    def facts(self) -> ClientFacts:
        """What rules and selectors look at; the metadata of clients is not kept."""
        return ClientFacts(self.identity, self.node_id, self.node_cluster)


@dataclass(frozen=True)
class NameSet:
    """Names that are asked for together, as canonical names and the collections among them."""

    written: tuple[str, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(map(canonical, self.written))

    @cached_property
    def globs(self) -> tuple[Glob, ...]:
        return tuple(glob for name in self.names if (glob := glob_of(name)) is not None)


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked for of one type, on one stream."""

    word: str
    wildcard: bool
    names: NameSet

    def by_name(self, name: str) -> bool:
        """Whether it asks for this canonical name by itself."""
        return name in self.names.names

    def covers(self, name: str) -> bool:
        """Whether it asks for this canonical name, by itself, by a wildcard or by a collection (protocol.md C2, H3)."""
        return self.wildcard or self.by_name(name) or any(glob.contains(name) for glob in self.names.globs)

    def of(self, names: frozenset[str]) -> frozenset[str]:
        """Those of these canonical names that it asks for."""
        if self.wildcard:
            return names
        asked = self.names.names & names
        if self.names.globs:
            asked |= {name for name in names if any(glob.contains(name) for glob in self.names.globs)}
        return asked


@dataclass(frozen=True, slots=True)
class Fleet:
    """Connected clients, and the name sets that they ask for, by id."""

    members: tuple[Member, ...]
    names: Names

    @property
    def words(self) -> tuple[str, ...]:
        """The types that anybody asks for."""
        found = {
            part.partition(":")[0] for text in {member.asks for member in self.members} for part in text.split(",")
        }
        return tuple(sorted(found & by_word.keys()))

    def asks(self, text: str) -> tuple[Ask, ...]:
        """What a `Member.asks` says. Subscriptions that were pruned meanwhile are left out."""
        found = []
        for part in text.split(","):
            word, wildcard, name_set = part.split(":")
            if word in by_word and name_set in self.names:
                found.append(Ask(word, wildcard == "1", self.names[name_set]))
        return tuple(found)
