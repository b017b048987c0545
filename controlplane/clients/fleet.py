"""The connected clients, and what they ask for, for the loss guard and rollouts. Pure.

A fleet of thousands asks for few different things, so clients are told apart by a text that says all a client asks for
(`Member.asks`); it is read once for all clients that share it.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from xdscore.environment_choice import ClientFacts
from xdscore.names import XDSTP, canonical
from xdscore.resource_types import by_word
from xdscore.xdstp import Glob, glob_of


class Member(NamedTuple):
    """A client with an open stream.

    `agent`: the name and version of its software.
    `asks`: its subscriptions as one text, which `Fleet.asks` and `Fleet.all_asks` read.
    `certain`: whether it is known to be connected, because its ADS process still reports.
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
        """The facts about the client by which rules and selectors judge it, without its metadata, which is not kept."""
        return ClientFacts(self.identity, self.node_id, self.node_cluster)


class NameSet:
    """A set of names that subscriptions ask for: `names` are canonical; `globs` are the collections among them, whose
    xdstp names end in a star.
    """

    __slots__ = ("globs", "names")

    def __init__(self, written: tuple[str, ...]) -> None:
        names = frozenset(written)
        self.globs: tuple[Glob, ...] = ()
        if any(name.startswith(XDSTP) for name in names):
            names = frozenset(map(canonical, names))
            self.globs = tuple(glob for name in names if (glob := glob_of(name)) is not None)
        self.names = names


@dataclass(frozen=True, slots=True)
class Ask:
    """A subscription to one type (`word`) on one stream: a wildcard, or names. `refused_all`: the client refused what
    it was sent of the type and never took anything of it, so that it has nothing to lose.
    """

    word: str
    wildcard: bool
    names: NameSet
    refused_all: bool = False

    def of(self, names: frozenset[str]) -> frozenset[str]:
        """The names among `names`, which are canonical, that the subscription asks for: by name, by a wildcard or by a
        collection (protocol.md C2, H3).
        """
        if self.wildcard:
            return names
        asked = self.names.names & names
        if self.names.globs:
            asked |= {name for name in names if any(glob.contains(name) for glob in self.names.globs)}
        return asked


class Crowd(NamedTuple):
    """What clients have in common that would lose the same by a write: their environment, what they ask for, whether
    their identity is verified, and whether they are known to be connected.
    """

    environment: str
    asks: str
    verified: bool
    certain: bool


@dataclass(frozen=True)
class Fleet:
    """The connected clients (`members`), by node id, and each set of names that they ask for, by the id of the set."""

    members: tuple[Member, ...]
    names: Mapping[str, NameSet]

    @cached_property
    def crowds(self) -> Mapping[Crowd, list[Member]]:
        """The connected clients, put together where all that a `Crowd` holds is equal."""
        found: dict[Crowd, list[Member]] = {}
        for member in self.members:
            crowd = Crowd(member.environment, member.asks, member.identity != "", member.certain)
            found.setdefault(crowd, []).append(member)
        return found

    @cached_property
    def connected(self) -> Mapping[str, int]:
        """The number of connected clients, by environment key."""
        return Counter(member.environment for member in self.members)

    @cached_property
    def asked(self) -> Mapping[str, tuple[Ask, ...]]:
        """The different subscriptions of which connected clients may lose something, by type word."""
        found: dict[str, dict[tuple[bool, int], Ask]] = {}
        for text in {crowd.asks for crowd in self.crowds}:
            for ask in self.asks(text):
                found.setdefault(ask.word, {})[ask.wildcard, id(ask.names)] = ask
        return {word: tuple(asks.values()) for word, asks in found.items()}

    def asks_for(self, names: Mapping[str, Collection[str]]) -> bool:
        """Whether any connected client may lose one of these names. They are canonical, and given by type word."""
        return any(ask.of(frozenset(some)) for word, some in names.items() for ask in self.asked.get(word, ()))

    def asks(self, text: str) -> tuple[Ask, ...]:
        """The subscriptions that the text `Member.asks` stands for, but for those of which the client has nothing to
        lose. One whose name set was deleted meanwhile is left out.
        """
        known = self._asks.get(text)
        if known is None:
            known = self._asks[text] = tuple(ask for ask in self.all_asks(text) if not ask.refused_all)
        return known

    def all_asks(self, text: str) -> tuple[Ask, ...]:
        """The subscriptions that the text `Member.asks` stands for. One whose name set was deleted meanwhile is left
        out.
        """
        return tuple(
            Ask(word, wildcard == "1", self.names[name_set], refused == "1")
            for word, wildcard, refused, name_set in (part.split(":") for part in text.split(",") if part)
            if word in by_word and name_set in self.names
        )

    @cached_property
    def _asks(self) -> dict[str, tuple[Ask, ...]]:
        return {}
