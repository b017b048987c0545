"""Who would lose what. Pure.

The rule (interfaces.md section 8, "Loss"): a client loses a name that it gets now and would not get any more, if it
asks for it by itself, or if something that it goes on having refers to it. What was asked for only because something
referred to it is no loss once nothing does: that is how configuration is changed. Under a wildcard nobody sees why a
name is wanted; there a name that something in the environment ever referred to counts as asked for because of that.

Clients that ask for the same and may read the same lose the same, so each such crowd is judged once.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from controlplane.catalog.guarding import MAX_LOSERS, MAX_NAMES, Loser, Loss, LostName
from controlplane.clients.fleet import Ask, Fleet, Member
from controlplane.loss.worlds import Links, World, asks_by_name, asks_for
from xdscore.access import AccessTable, Audience
from xdscore.client_kinds import kind_of
from xdscore.selectors import ClientFacts
from xdscore.snapshot import EntryKey


@dataclass(frozen=True, slots=True)
class Passage:
    """Where some clients are now, and where they would be after the write; `after` None: they would not be served."""

    before: World
    after: World | None


Standing = tuple[Audience, Audience | None]
"""Which audience a client belongs to before the write and after it."""


@dataclass(slots=True)
class Crowd:
    """Clients that ask for the same, of one passage. `standings` has more than one where it is not known which groups
    they belong to. `taken`: what they get now and would not get any more.
    """

    passage: Passage
    asks: tuple[Ask, ...]
    standings: tuple[Standing, ...]
    members: list[Member] = field(default_factory=list)
    taken: frozenset[EntryKey] = frozenset()
    doubtful: bool = False


Way = tuple[Member, Passage]
"""A client, and what it has now and after the write."""


def crowds_of(fleet: Fleet, ways: Iterable[Way]) -> tuple[Crowd, ...]:
    """The crowds from which something is taken that they ask for. `links_needed` and `losses` go on from here."""
    judge = _Judge(fleet)
    for member, passage in ways:
        judge.add(member, passage)
    return tuple(crowd for crowd in judge.crowds if judge.take(crowd))


def links_needed(crowds: Iterable[Crowd]) -> Mapping[str, frozenset[EntryKey]]:
    """By environment, the names of which has to be known what refers to them."""
    needed: dict[str, set[EntryKey]] = {}
    for crowd in crowds:
        for world in (crowd.passage.before, crowd.passage.after):
            if world is not None:
                needed.setdefault(world.environment, set()).update(crowd.taken)
    return {environment: frozenset(keys) for environment, keys in needed.items()}


def losses(crowds: Iterable[Crowd], links: Mapping[str, Links], connected: Mapping[str, int]) -> Mapping[str, Loss]:
    """What the clients of each environment lose. `links` and `connected`, the number of clients, are by environment."""
    losing: dict[str, list[tuple[Crowd, frozenset[EntryKey]]]] = {}
    for crowd in crowds:
        lost = frozenset().union(*(_lost(crowd, standing, links) for standing in crowd.standings))
        if lost:
            losing.setdefault(crowd.passage.before.environment, []).append((crowd, lost))
    return {environment: _counted(each, connected[environment]) for environment, each in losing.items()}


class _Judge:
    """Puts clients into crowds, and remembers what a question was answered: few differ."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._crowds: dict[object, Crowd] = {}
        self._asks: dict[str, tuple[Ask, ...]] = {}
        self._taken: dict[object, frozenset[EntryKey]] = {}

    @property
    def crowds(self) -> Iterable[Crowd]:
        return self._crowds.values()

    def add(self, member: Member, passage: Passage) -> None:
        standings, doubtful = self._standings(member, passage)
        key = (id(passage), member.asks, standings, doubtful)
        crowd = self._crowds.get(key)
        if crowd is None:
            asks = self._asks.get(member.asks)
            if asks is None:
                asks = self._asks[member.asks] = self._fleet.asks(member.asks)
            crowd = self._crowds[key] = Crowd(passage, asks, standings, doubtful=doubtful)
        crowd.members.append(member)

    def _standings(self, member: Member, passage: Passage) -> tuple[tuple[Standing, ...], bool]:
        """The audiences the member may be of, and whether something about it is not certain."""
        tables = [passage.before.table] + ([passage.after.table] if passage.after is not None else [])
        if not any(table.groups_mentioned for table in tables):
            facts = _ANYBODY_PROVEN if member.identity else _ANYBODY
            return (_standing(passage, facts),), not member.certain
        facts = member.facts
        known = _standing(passage, facts)
        doubtful = {group.key for table in tables for group in table.groups_mentioned if group.may_have(facts)}
        if not doubtful:
            return (known,), not member.certain
        return (known, _joined(passage, known, doubtful)), True

    def take(self, crowd: Crowd) -> bool:
        """Note what is taken from a crowd; whether it is anything."""
        crowd.taken = frozenset(
            key
            for standing in crowd.standings
            for ask in crowd.asks
            for key in self._taken_of(crowd.passage, standing, ask)
        )
        return bool(crowd.taken)

    def _taken_of(self, passage: Passage, standing: Standing, ask: Ask) -> frozenset[EntryKey]:
        question = (id(passage), standing, ask.word, ask.wildcard, id(ask.names))
        known = self._taken.get(question)
        if known is None:
            asked = ask.of(passage.before.names.get(ask.word, frozenset()))
            known = self._taken[question] = frozenset(
                (ask.word, name) for name in asked if _is_taken(passage, standing, (ask.word, name))
            )
        return known


_ANYBODY = ClientFacts()
_ANYBODY_PROVEN = ClientFacts(identity="*")  # what is proven does not matter where no group is asked for


def _standing(passage: Passage, facts: ClientFacts) -> Standing:
    before, after = passage.before, passage.after
    later = after.table.audience(after.environment, facts) if after is not None else None
    return before.table.audience(before.environment, facts), later


def _joined(passage: Passage, standing: Standing, groups: Collection[str]) -> Standing:
    """The same if the client is in these groups as well."""

    def joined(audience: Audience, table: AccessTable) -> Audience:
        mentioned = {group.key for group in table.groups_mentioned}
        more = audience.groups | (mentioned & set(groups))
        return Audience(audience.environment, more, audience.verified)

    before, after = standing
    later = joined(after, passage.after.table) if after is not None and passage.after is not None else None
    return joined(before, passage.before.table), later


def _is_taken(passage: Passage, standing: Standing, key: EntryKey) -> bool:
    before, after = standing
    if not passage.before.allows(before, key):
        return False
    return passage.after is None or after is None or not passage.after.has(after, key)


def _lost(crowd: Crowd, standing: Standing, links: Mapping[str, Links]) -> Iterator[EntryKey]:
    """Those of what is taken from a crowd that it loses by the rule above."""
    passage, asks = crowd.passage, crowd.asks
    before, after = standing
    links_before = links[passage.before.environment]
    for key in crowd.taken:
        if not _is_taken(passage, standing, key):
            continue
        if passage.after is not None and after is not None:
            later = links[passage.after.environment].then.get(key, ())
            if any(passage.after.allows(after, user) and asks_for(asks, user) for user in later):
                yield key
                continue
        users = links_before.now.get(key, ())
        if any(passage.before.allows(before, user) and asks_for(asks, user) for user in users):
            continue
        if asks_by_name(asks, key) or key not in links_before.once:
            yield key


def _counted(losing: Sequence[tuple[Crowd, frozenset[EntryKey]]], connected: int) -> Loss:
    names: Counter[EntryKey] = Counter()
    agents: Counter[tuple[str, str]] = Counter()
    doubtful = 0
    for crowd, lost in losing:
        for key in lost:
            names[key] += len(crowd.members)
        agents.update(member.agent for member in crowd.members)
        doubtful += len(crowd.members) if crowd.doubtful else 0
    kinds: Counter[str] = Counter()
    for agent, clients in agents.items():
        kinds[str(kind_of(*agent))] += clients
    first = nsmallest(MAX_NAMES, names, key=lambda key: (-names[key], key))
    members = (member for crowd, _ in losing for member in crowd.members)
    who = nsmallest(MAX_LOSERS, members, key=lambda member: (member.node_id, member.client))
    return Loss(
        clients=sum(agents.values()),
        connected=connected,
        kinds=kinds,
        names=tuple(LostName(*key, names[key]) for key in first),
        truncated=len(names) > MAX_NAMES,
        doubtful=doubtful,
        who=tuple(Loser(each.client, each.node_id, str(kind_of(*each.agent))) for each in who),
    )
