"""Reads the connected clients as rollouts see them: what each asks for of what differs, and may read."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from controlplane.access.selectors import access_table, group_list, group_state
from controlplane.clients.fleet import Ask, Fleet, NameSet
from controlplane.clients.fleet import Member as Connected
from controlplane.clients.fleet_reading import fleet_read
from controlplane.rollouts.cohort import Member, kind_word, kinds_told_apart
from controlplane.rollouts.key_sets import Universe
from controlplane.rollouts.values import Key
from xdscore.access import AccessTable, Audience, Effect
from xdscore.client_groups import ClientGroup, GroupIndex
from xdscore.client_kinds import ClientKind, kind_of
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import by_word
from xdscore.sides import client_digest


@dataclass(frozen=True, slots=True)
class Known:
    """A client with what is known of it. `certain`: whether it is known to be connected."""

    member: Member
    facts: ClientFacts
    certain: bool = True


@dataclass(frozen=True, slots=True)
class ReadFleet:
    """The connected clients, by id, and the kinds that are told apart among them."""

    clients: Mapping[str, Known]
    apart: frozenset[ClientKind]

    @property
    def members(self) -> tuple[Member, ...]:
        """The clients that are known to be connected: only they can be asked."""
        return tuple(known.member for known in self.clients.values() if known.certain)


# The last reading of each environment: a judge looks each second, and a page every two, at a fleet that mostly stands.
_MAX_KEPT: Final = 4
_kept: dict[str, tuple[Fleet, tuple[AccessTable, tuple[ClientGroup, ...], frozenset[Key]], ReadFleet]] = {}


def groups_read(*, environment_key: str, keys: Collection[str]) -> tuple[ClientGroup, ...]:
    """The client groups of an environment with these keys, as they are now."""
    rows = group_list(environment_key=environment_key).filter(key__in=list(keys))
    return tuple(group_state(row).draft.group for row in rows)


def members_read(*, environment_key: str, names: Collection[Key], groups: Iterable[ClientGroup]) -> ReadFleet:
    """The clients that are connected to an environment, with what they ask for of `names` and may read, and to which of
    these groups they belong.

    A client's metadata is not kept, so that a group whose matchers look at it has nobody here.
    """
    fleet, table = fleet_read(environment_key=environment_key), access_table(environment_key=environment_key)
    chosen, wanted = tuple(groups), frozenset(names)
    kept = _kept.get(environment_key)
    if kept is not None and kept[0] is fleet and kept[1] == (table, chosen, wanted):
        return kept[2]
    found = _members(environment_key, fleet, table, chosen, wanted)
    if len(_kept) >= _MAX_KEPT:
        _kept.clear()
    _kept[environment_key] = fleet, (table, chosen, wanted), found
    return found


def _members(
    environment_key: str, fleet: Fleet, table: AccessTable, chosen: tuple[ClientGroup, ...], names: frozenset[Key]
) -> ReadFleet:
    asks = _Asks(environment_key, fleet, table, names)
    kinds = {each.client: kind_of(*each.agent) for each in fleet.members}
    apart = kinds_told_apart((kinds[each.client], each.identity) for each in fleet.members)
    index = GroupIndex(chosen)
    clients = {}
    for each in fleet.members:
        facts = each.facts
        of_names, wildcards = asks.of(each)
        member = Member(
            client=each.client,
            node_id=each.node_id,
            digest=client_digest(environment_key, facts),
            identity=each.identity,
            kind=kind_word(kinds[each.client], apart),
            asks=of_names,
            wildcards=wildcards,
            groups=frozenset(group.key for group in index.of(facts)),
        )
        clients[each.client] = Known(member, facts, each.certain)
    return ReadFleet(clients, apart)


_Found = tuple[AbstractSet[Key], frozenset[tuple[str, str]]]


class _Asks:
    """What clients ask for of some names, and may read. Computed once for all that ask for the same and are alike to
    the access rules, and ruled once for all names that the same rules match.
    """

    def __init__(self, environment_key: str, fleet: Fleet, table: AccessTable, names: Collection[Key]) -> None:
        self._environment = environment_key
        self._fleet = fleet
        self._table = table
        self._universe = Universe(names)
        of_word: defaultdict[str, set[str]] = defaultdict(set)
        alike: defaultdict[str, defaultdict[tuple[int, ...], set[Key]]] = defaultdict(lambda: defaultdict(set))
        for word, name in names:
            of_word[word].add(name)
            alike[word][table.row(by_word[word], name)].add((word, name))
        self._names = {word: frozenset(some) for word, some in of_word.items()}
        self._alike = {
            word: {row: self._universe.of(some) for row, some in rows.items()} for word, rows in alike.items()
        }
        self._known: dict[tuple[str, Audience], _Found] = {}
        self._readable: dict[tuple[str, Audience], AbstractSet[Key]] = {}
        self._named: dict[tuple[str, NameSet], AbstractSet[Key]] = {}

    def of(self, client: Connected) -> _Found:
        """The names, and the (type word, audience) of the wildcards that hold any of them."""
        audience = self._table.audience(self._environment, client.facts)
        place = (client.asks, audience)
        if place not in self._known:
            self._known[place] = self._read(client.asks, audience)
        return self._known[place]

    def _read(self, text: str, audience: Audience) -> _Found:
        keys: AbstractSet[Key] = self._universe.of(())
        wildcards: set[tuple[str, str]] = set()
        for ask in self._fleet.all_asks(text):
            if readable := self._of_ask(ask, audience):
                keys = keys | readable
                if ask.wildcard:
                    wildcards.add((ask.word, ",".join(sorted(audience.groups))))
        return keys, frozenset(wildcards)

    def _of_ask(self, ask: Ask, audience: Audience) -> AbstractSet[Key]:
        """What the subscription asks for and clients of this audience may read."""
        place = (ask.word, audience)
        if place not in self._readable:
            may = self._table.permissions(audience, by_word[ask.word])
            allowed = [
                keys for row, keys in self._alike.get(ask.word, {}).items() if may.of_row(row).effect is Effect.ALLOW
            ]
            self._readable[place] = reduce(or_, allowed, self._universe.of(()))
        readable = self._readable[place]
        if ask.wildcard or not readable:
            return readable
        named = (ask.word, ask.names)
        if named not in self._named:
            some = ask.of(self._names[ask.word])
            self._named[named] = self._universe.of((ask.word, name) for name in some)
        return readable & self._named[named]
