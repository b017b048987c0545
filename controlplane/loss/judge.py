"""The loss guard's judge: reads what connected clients ask for and what there is, and says who would lose what.

Reads only what a write can take: the names that go, or those that the rules in question speak of. A write that can take
nothing reads nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from controlplane.access.selectors import access_table
from controlplane.catalog.guarding import Loss, Prospect
from controlplane.clients.fleet import Fleet, Member
from controlplane.clients.fleet_reading import fleet_read
from controlplane.common.errors import NotFound
from controlplane.loss.judging import Judge, Passage, Way, grouped
from controlplane.loss.moving import destination
from controlplane.loss.names import links_read, names_served
from controlplane.loss.worlds import NOWHERE, RulesInQuestion, World
from xdscore.access import AccessTable
from xdscore.client_kinds import kind_of
from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.snapshot import client_mark


def losses_judge(prospect: Prospect) -> Mapping[str, Loss]:
    """What connected clients would lose by a write that is not stored yet (`prospect`), by environment key;
    environments without a loss are left out.
    """
    if prospect.nothing:
        return {}
    if prospect.choices is not None:
        return _by_moving(prospect)
    if prospect.gone and prospect.tables is None:
        return _by_going(prospect)
    return _by_rules(prospect)


def _by_going(prospect: Prospect) -> Mapping[str, Loss]:
    key = prospect.environment
    wanted: dict[str, set[str]] = {}
    for word, name in prospect.gone:
        wanted.setdefault(word, set()).add(name)
    fleet = fleet_read(environment_key=key)
    if not fleet.asks_for({word: {canonical(name) for name in names} for word, names in wanted.items()}):
        return {}
    names = names_served(environment_key=key, wanted=wanted)
    table = access_table(environment_key=key)
    passage = Passage(World(key, table, names), World(key, table, NOWHERE))
    return _judged(prospect, fleet, _all_of(fleet, passage, prospect))


def _by_rules(prospect: Prospect) -> Mapping[str, Loss]:
    """What clients would lose by other rules and, where the write deletes resources too, by both together."""
    key = prospect.environment
    before, after = _tables(prospect)
    question = RulesInQuestion(before, after)
    if question.takes_nothing and not prospect.gone:
        return {}
    going: dict[str, set[str]] = {}
    for word, name in prospect.gone:
        going.setdefault(word, set()).add(name)
    fleet = fleet_read(environment_key=key)
    ruled = {word for word in fleet.asked if question.concerns_type(by_word[word])}
    wanted: dict[str, Collection[str] | None] = {}
    for word in sorted(ruled | (going.keys() & fleet.asked.keys())):
        listed = question.names if word in ruled else frozenset()
        wanted[word] = None if listed is None else {*listed, *going.get(word, ())}
    served = names_served(environment_key=key, wanted=wanted)
    gone = {word: frozenset(canonical(name) for name in going.get(word, ())) for word in served}
    names = {
        word: (question.concerned(by_word[word], there) if word in ruled else frozenset()) | (there & gone[word])
        for word, there in served.items()
    }
    left = {word: there - gone[word] for word, there in names.items()}
    passage = Passage(World(key, before, names), World(key, after, left))
    return _judged(prospect, fleet, _all_of(fleet, passage, prospect))


def _by_moving(prospect: Prospect) -> Mapping[str, Loss]:
    """What clients would lose because the write assigns them to another environment, or to none, by the key of the
    environment that they are in now. What the other environment has for them is not lost.
    """
    fleet = fleet_read()
    return _judged(prospect, fleet, _Moving(prospect, fleet).ways())


def _all_of(fleet: Fleet, passage: Passage, prospect: Prospect) -> Iterator[Way]:
    """The connected clients that the write concerns, all with the same `passage`: those of the kinds of software that
    it names, where it names any, without those that refused the content it takes away.
    """
    kinds, refusers = prospect.kinds, prospect.refusers
    for members in fleet.crowds.values():
        taking = members
        if kinds:
            taking = [each for each in taking if str(kind_of(*each.agent)) in kinds]
        if refusers:
            taking = [each for each in taking if client_mark(each.facts) not in refusers]
        if taking:
            yield passage, taking, True


class _Moving:
    """Works out to which environment each connected client would be assigned after a write that changes how
    environments select clients, and what it could have there.
    """

    def __init__(self, prospect: Prospect, fleet: Fleet) -> None:
        self._fleet = fleet
        self._choices = prospect.choices or ((), ())
        self._changed = prospect.environment
        self._tables = _tables(prospect) if any(prospect.environment == each.key for each in self._choices[0]) else None
        self._worlds: dict[str, World | None] = {}
        self._passages: dict[tuple[str, str | None], Passage | None] = {}

    def ways(self) -> Iterator[Way]:
        """The clients for which anything would differ, in groups, each with where they are now and where they would be,
        and whether that is certain.
        """
        for crowd, members in self._fleet.crowds.items():
            alike: dict[tuple[Passage, bool], list[Member]] = {}
            for member in members:
                there = destination(member, *self._choices)
                passage = self._passage(crowd.environment, there.environment)
                if passage is not None:
                    alike.setdefault((passage, there.certain), []).append(member)
            for (passage, certain), some in alike.items():
                yield passage, some, certain

    def _passage(self, here: str, there: str | None) -> Passage | None:
        """The environment `here` as it is now and the environment `there` as it would be; None where they are the same
        environment and nothing differs. `there` None: no environment would serve the client.
        """
        if (here, there) not in self._passages:
            before = self._world(here)
            after = self._world(there) if there is not None else None
            if after is not None and there == self._changed and self._tables is not None:
                after = replace(after, table=self._tables[1])
            same = here == there and before == after
            self._passages[here, there] = None if before is None or same else Passage(before, after)
        return self._passages[here, there]

    def _world(self, key: str) -> World | None:
        """The access rules and served names of an environment; None for one that does not exist yet."""
        if key not in self._worlds:
            try:
                table = access_table(environment_key=key)
                names = names_served(environment_key=key, wanted=dict.fromkeys(self._fleet.asked))
                self._worlds[key] = World(key, table, names)
            except NotFound:
                self._worlds[key] = None
        return self._worlds[key]


def _judged(prospect: Prospect, fleet: Fleet, ways: Iterable[Way]) -> Mapping[str, Loss]:
    judge = Judge(grouped(fleet, ways))
    taken = judge.taken()
    if not taken:
        return {}
    links = {
        key: links_read(
            environment_key=key,
            keys=names,
            of_wildcards={word for word, asks in fleet.asked.items() if any(ask.wildcard for ask in asks)},
            prospect=prospect if key == prospect.environment else None,
        )
        for key, names in taken.items()
    }
    return judge.losses(links, fleet.connected)


def _tables(prospect: Prospect) -> tuple[AccessTable, AccessTable]:
    """The access rules of the environment that is written to, before the write and after it."""
    if prospect.tables is not None:
        return prospect.tables
    table = access_table(environment_key=prospect.environment)
    return table, table if prospect.default is None else replace(table, default=prospect.default)
