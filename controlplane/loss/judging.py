"""Who would lose what. Pure.

The rule (interfaces.md section 8, "Loss"): a client loses a name that it gets now and would not get any more, if it
asks for it by itself, or if something that it goes on having refers to it. What was asked for only because something
referred to it is no loss once nothing does: that is how configuration is changed. Under a wildcard nobody sees why a
name is wanted; there a name that something in the environment ever referred to counts as asked for because of that.

Clients that ask for the same and may read the same lose the same, so each such group of them is judged once; and names
are judged as sets, by type.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge, nsmallest
from itertools import chain, islice
from operator import attrgetter

from controlplane.catalog.guarding import MAX_LOSERS, MAX_NAMES, Loser, Loss, LostName
from controlplane.clients.fleet import Ask, Fleet, Member
from controlplane.loss.worlds import NOWHERE, Links, Names, World
from xdscore.access import Audience
from xdscore.client_kinds import kind_of
from xdscore.environment_choice import ClientFacts
from xdscore.snapshot import EntryKey


@dataclass(frozen=True, eq=False)
class Passage:
    """The environment in which some clients are before the write, and that in which they are after it; `after` is None
    where no environment would serve them.
    """

    before: World
    after: World | None

    @cached_property
    def groups_matter(self) -> bool:
        """Whether an access rule, before or after the write, names client groups, so that clients may differ in what
        they lose.
        """
        return any(world.table.groups_mentioned for world in self.worlds)

    @property
    def worlds(self) -> Sequence[World]:
        """The rules and names that serve these clients before the write, then those that serve them after it, which may
        be another environment's. The first alone where no environment would serve them after it.
        """
        return (self.before,) if self.after is None else (self.before, self.after)


Standing = tuple[Audience, Audience | None]
"""The audience of a client before the write, and the one after it."""


@dataclass(frozen=True, slots=True)
class Group:
    """Clients that lose the same, because they ask for the same and may read the same.

    `standings`: their audiences before and after; more than one where it is not known to which client groups they
        belong.
    `doubtful`: whether that is so, or they may not be connected any more.
    """

    passage: Passage
    asks: tuple[Ask, ...]
    standings: tuple[Standing, ...]
    members: Sequence[Member]
    doubtful: bool


Way = tuple[Passage, Sequence[Member], bool]
"""Members of one crowd (`Fleet.crowds`) in their order, their passage, and whether that is certain."""


def grouped(fleet: Fleet, ways: Iterable[Way]) -> Iterator[Group]:
    """Put clients into groups whose members lose the same. `ways`: clients, each with where they are before and after
    the write.
    """
    alone: dict[tuple[Passage, bool], Standing] = {}
    for passage, members, certain in ways:
        asks = fleet.asks(members[0].asks)
        doubtful = not (certain and members[0].certain)
        if not passage.groups_matter:
            facts = members[0].facts
            standing = alone.get((passage, facts.verified)) or _standing(passage, facts)
            alone[passage, facts.verified] = standing
            yield Group(passage, asks, (standing,), members, doubtful)
            continue
        alike: dict[tuple[Standing, ...], list[Member]] = {}
        for member in members:
            alike.setdefault(_standings(passage, member.facts), []).append(member)
        for standings, some in alike.items():
            yield Group(passage, asks, standings, some, doubtful or len(standings) > 1)


def _standing(passage: Passage, facts: ClientFacts) -> Standing:
    before, after = passage.before, passage.after
    later = after.table.audience(after.environment, facts) if after is not None else None
    return before.table.audience(before.environment, facts), later


def _standings(passage: Passage, facts: ClientFacts) -> tuple[Standing, ...]:
    """The client's audiences before and after the write, by what is known of it; and, where they differ, the audiences
    it would have in the further groups to which its metadata, which is not kept, may put it.
    """
    before, after = known = _standing(passage, facts)
    joined = _joined(before, passage.before, facts)
    later = after if after is None or passage.after is None else _joined(after, passage.after, facts)
    return (known,) if (joined, later) == known else (known, (joined, later))


def _joined(audience: Audience, world: World, facts: ClientFacts) -> Audience:
    more = {group.key for group in world.table.groups_mentioned if group.may_have(facts)}
    return Audience(audience.environment, audience.groups | more, audience.verified) if more else audience


class Judge:
    """Judges what groups of clients lose. What the write takes away is worked out once for all clients of equal
    audiences.

    First call `taken`, read what refers to these names, and then call `losses` with it.
    """

    def __init__(self, groups: Iterable[Group]) -> None:
        self._takings: dict[tuple[Passage, Standing], _Taking] = {}
        # Every standing is asked about: `losses` looks at each.
        self._losing = [group for group in groups if True in [self._taken(group, each) for each in group.standings]]

    def taken(self) -> Mapping[str, frozenset[EntryKey]]:
        """The names that clients could have before the write and cannot have after it, by environment key."""
        found: dict[str, set[EntryKey]] = {}
        for (passage, _), taking in self._takings.items():
            for world in passage.worlds:
                found.setdefault(world.environment, set()).update(
                    (word, name) for word, names in taking.names.items() for name in names
                )
        return {environment: frozenset(keys) for environment, keys in found.items()} if self._losing else {}

    def losses(self, links: Mapping[str, Links], connected: Mapping[str, int]) -> Mapping[str, Loss]:
        """The loss of connected clients, by environment key. `links`: what refers to the names that `taken` returned;
        `connected`: how many clients each environment has.
        """
        losing: dict[str, list[tuple[Group, Names]]] = {}
        for group in self._losing:
            lost: dict[str, frozenset[str]] = {}
            for standing in group.standings:
                taking = self._takings[group.passage, standing]
                for word, names in taking.lost(group.asks, links):
                    lost[word] = lost.get(word, frozenset()) | names
            if lost:
                losing.setdefault(group.passage.before.environment, []).append((group, lost))
        return {environment: _counted(each, connected[environment]) for environment, each in losing.items()}

    def _taken(self, group: Group, standing: Standing) -> bool:
        """Whether a group asks for a name that clients of this standing (audiences before and after) cannot have after
        the write.
        """
        taking = self._takings.get((group.passage, standing))
        if taking is None:
            taking = self._takings[group.passage, standing] = _Taking(group.passage, standing)
        return any(taking.asked(ask) for ask in group.asks)


class _Taking:
    """What a write takes from clients of one standing (audiences before and after), and what leads these clients to it.

    `names`: the names they can have before the write and not after it.
    """

    def __init__(self, passage: Passage, standing: Standing) -> None:
        self._passage = passage
        self._standing = standing
        self.names = {word: taken for word in passage.before.names if (taken := self._taken_of(word))}
        self._asked: dict[tuple[str, bool, int], frozenset[str]] = {}
        self._led: dict[tuple[bool, str, bool, int], Names] = {}
        self._users: tuple[_Users, _Users | None] | None = None

    def _taken_of(self, word: str) -> frozenset[str]:
        (before, after), there = self._standing, self._passage.after
        had = self._passage.before.had(before, word)
        return had if there is None or after is None else had - there.had(after, word)

    def asked(self, ask: Ask) -> frozenset[str]:
        """The names that the subscription asks for and that the write takes away."""
        key = (ask.word, ask.wildcard, id(ask.names))
        if key not in self._asked:
            self._asked[key] = ask.of(self.names.get(ask.word, frozenset()))
        return self._asked[key]

    def lost(self, asks: Sequence[Ask], links: Mapping[str, Links]) -> Iterator[tuple[str, frozenset[str]]]:
        """For each type, by its word, the names that clients with the subscriptions `asks` lose by the rule of this
        class. `links`: what refers to names, by environment key.
        """
        led_before, led_after = self._led_to(asks, links, after=False), self._led_to(asks, links, after=True)
        once = links[self._passage.before.environment].once
        for word in {ask.word for ask in asks}:
            own = [ask for ask in asks if ask.word == word]
            taken = _union([self.asked(ask) for ask in own])
            alone = taken - led_before.get(word, _NONE)
            by_name = alone & _union([ask.names.names for ask in own])
            unexplained = alone - once.get(word, _NONE)
            found = by_name | unexplained | (taken & led_after.get(word, _NONE))
            if found:
                yield word, found

    def _led_to(self, asks: Sequence[Ask], links: Mapping[str, Links], *, after: bool) -> Names:
        """The names that the write takes away and that a resource which these clients have refers to. `after`:
        references as they are after the write; else those before it.
        """
        led: dict[str, list[frozenset[str]]] = {}
        for ask in asks:
            key = (after, ask.word, ask.wildcard, id(ask.names))
            if key not in self._led:
                users = self._users_of(links)[after]
                self._led[key] = users.of(ask) if users is not None else NOWHERE
            for word, names in self._led[key].items():
                led.setdefault(word, []).append(names)
        return {word: _union(sets) for word, sets in led.items()}

    def _users_of(self, links: Mapping[str, Links]) -> "tuple[_Users, _Users | None]":
        """The resources that refer to names which the write takes away: as they are before it, and as they are after it
        (None where no environment would serve the clients).
        """
        if self._users is None:
            (before, after), here, there = self._standing, self._passage.before, self._passage.after
            now = links[here.environment].now
            leads = _leads_of(now)
            later = None
            if there is not None and after is not None:
                then = links[there.environment].then
                later = _Users(there, after, leads if then is now else _leads_of(then))
            self._users = (_Users(here, before, leads), later)
        return self._users


_NONE: frozenset[str] = frozenset()


def _union(sets: Sequence[frozenset[str]]) -> frozenset[str]:
    """The union of the sets. A single set, which is the usual case, is returned itself, without a copy."""
    return sets[0] if len(sets) == 1 else _NONE.union(*sets)


class _Users:
    """The resources that an audience may read and that refer to names which the write takes away."""

    def __init__(self, world: World, audience: Audience, leads: "_Leads") -> None:
        self._leads = leads
        self._allowed = {
            (user_word, word): world.allowed(audience, user_word, users) for (user_word, word), users in leads.items()
        }

    def of(self, ask: Ask) -> Names:
        """The names to which those of the resources refer that the subscription asks for."""
        return {
            word: _NONE.union(*map(self._leads[user_word, word].__getitem__, ask.of(allowed)))
            for (user_word, word), allowed in self._allowed.items()
            if user_word == ask.word and allowed
        }


_Leads = Mapping[tuple[str, str], Mapping[str, Collection[str]]]
"""The referring names and the names that each refers to, by the types of both."""


def _leads_of(links: Mapping[EntryKey, Collection[EntryKey]]) -> _Leads:
    leads: dict[tuple[str, str], dict[str, set[str]]] = {}
    for (word, name), users in links.items():
        for user_word, user in users:
            leads.setdefault((user_word, word), {}).setdefault(user, set()).add(name)
    return leads


def _counted(losing: Sequence[tuple[Group, Names]], connected: int) -> Loss:
    names = _names_counted(losing)
    members = [member for group, _ in losing for member in group.members]
    agents = Counter(map(_AGENT, members))
    kinds: Counter[str] = Counter()
    for agent, clients in agents.items():
        kinds[str(kind_of(*agent))] += clients
    first = nsmallest(MAX_NAMES, names, key=lambda key: (-names[key], key))
    who = islice(merge(*(group.members for group, _ in losing), key=_NODE_AND_ID), MAX_LOSERS)
    return Loss(
        clients=len(members),
        connected=connected,
        kinds=kinds,
        names=tuple(LostName(*key, names[key]) for key in first),
        truncated=len(names) > MAX_NAMES,
        doubtful=sum(len(group.members) for group, _ in losing if group.doubtful),
        who=tuple(Loser(each.client, each.node_id, str(kind_of(*each.agent))) for each in who),
    )


_AGENT = attrgetter("agent")
_NODE_AND_ID = attrgetter("node_id", "client")


def _names_counted(losing: Sequence[tuple[Group, Names]]) -> Mapping[EntryKey, int]:
    """The number of clients that lose each name. Groups with equally many clients are counted together, because there
    may be thousands of them.
    """
    alike: dict[tuple[str, int], list[frozenset[str]]] = {}
    for group, lost in losing:
        for word, some in lost.items():
            alike.setdefault((word, len(group.members)), []).append(some)
    names: dict[EntryKey, int] = {}
    for (word, clients), sets in alike.items():
        for name, times in Counter(chain.from_iterable(sets)).items():
            names[word, name] = names.get((word, name), 0) + times * clients
    return names
