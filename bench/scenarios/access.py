"""What access rules cost: a decision, the rows of a build, a new audience (decisions part 6).

Pure computations, which wait for nothing: the processor's time is measured, so that other work on the machine counts
for little.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.registry import Measurement, Parameters, scenario
from controlplane.builder.stages.permit import permit
from xdscore.access import AccessTable, Audience, Effect, Rule
from xdscore.client_groups import ClientGroup
from xdscore.decision import client_view, decide
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.resource_types import CLUSTER
from xdscore.snapshot import Content, Entry, EntryKey, Served, Snapshot, snapshot_from_entries

_GROUPS = 50
_SEED = 5
_ZONES = ("internal", "edge", "eu-west", "us-east")


@scenario("access", "Access rules: decisions, rows and audiences", parameters={"resources": 10_000, "repeat": 7})
def access(parameters: Parameters) -> Iterator[Measurement]:
    """Measure access decisions. performance.md: `decide` at most 20 µs at 500 rules and 60 µs at 5,000 for names it has
    not seen, 2 µs for known ones; the table for 5,000 rules and 10,000 names 500 ms; a new audience 5 ms.
    """
    resources, repeat = parameters["resources"], parameters["repeat"]
    yield from _decisions(500, resources, repeat, at_most_us=20)
    yield from _decisions(5_000, resources, repeat, at_most_us=60)
    yield from _tables(5_000, resources, repeat)


def _decisions(rules: int, resources: int, repeat: int, *, at_most_us: float) -> Iterator[Measurement]:
    world = _World(rules, resources)
    unseen: list[float] = []
    known: list[float] = []
    for round_ in range(repeat):
        snapshot = world.snapshot()
        audience = world.audience(round_)
        asked = [f"team{number % 40}.other{number}.edge" for number in range(5_000)]
        # The first decision compiles the patterns: `table` measures that.
        decide(audience, CLUSTER, "warm", snapshot)
        unseen.append(_us_for_each(lambda name: decide(audience, CLUSTER, name, snapshot), asked))  # noqa: B023 - now
        known.append(_us_for_each(lambda name: decide(audience, CLUSTER, name, snapshot), asked))  # noqa: B023 - now
    yield Measurement(f"decide, {rules:,} rules, name not seen", "µs", tuple(unseen), at_most=at_most_us)
    yield Measurement(f"decide, {rules:,} rules, known name", "µs", tuple(known), at_most=2.0)


def _tables(rules: int, resources: int, repeat: int) -> Iterator[Measurement]:
    compiled, audiences = [], []
    for round_ in range(repeat):
        world = _World(rules, resources)
        began = time.thread_time()
        permitted = permit(world.entries, world.table())
        compiled.append((time.thread_time() - began) * 1_000)
        snapshot = world.snapshot_of(permitted.entries, permitted.table)
        for state in snapshot.types.values():
            state.by_rules()  # as the loader's thread leaves it
        audience = world.audience(round_)
        began = time.thread_time()
        client_view(audience, CLUSTER, snapshot)
        audiences.append((time.thread_time() - began) * 1_000)
    yield Measurement(f"table and rows, {rules:,} rules, {resources:,} names", "ms", tuple(compiled), at_most=500)
    yield Measurement(
        f"a new audience's names, {rules:,} rules, {resources:,} names", "ms", tuple(audiences), at_most=5
    )


def _us_for_each(call: Callable[[str], object], names: Sequence[str]) -> float:
    began = time.thread_time()
    for name in names:
        call(name)
    return (time.thread_time() - began) * 1_000_000 / len(names)


class _World:
    """Generated services of teams in zones, with access rules. Of ten rules four are for one name, three for a team,
    one for the end of a name, one for a team in a zone, and one for something inside the name.
    """

    def __init__(self, rules: int, resources: int) -> None:
        chance = random.Random(_SEED)  # noqa: S311 - the same world every time
        self._groups = tuple(
            ClientGroup(f"group{number}", (Selector(node_cluster=f"fleet{number}"),)) for number in range(_GROUPS)
        )
        teams = [f"team{number}" for number in range(max(2, rules // 20))]
        self._names = [f"{chance.choice(teams)}.svc{number}.{chance.choice(_ZONES)}" for number in range(resources)]
        self._rules = tuple(self._rule(number, teams, chance) for number in range(1, rules + 1))
        content = Content(bytes(16), "v1", 1_200)
        self.entries: dict[EntryKey, Entry] = {("cluster", name): Served(content) for name in self._names}

    def table(self) -> AccessTable:
        """A new access table with the rules, not compiled yet."""
        return AccessTable(Effect.DENY, self._groups, self._rules)

    def snapshot(self) -> Snapshot:
        """A snapshot of all entries with a new access table, which was asked nothing before."""
        return self.snapshot_of(self.entries, self.table())

    def snapshot_of(self, entries: Mapping[EntryKey, Entry], table: AccessTable) -> Snapshot:
        """A snapshot of these entries with this access table."""
        return snapshot_from_entries(environment="bench", lineage="l", epoch=1, access=table, entries=entries.items())

    def audience(self, number: int) -> Audience:
        """The audience of a client in the group with this number."""
        return self.table().audience("bench", ClientFacts(node_id="n", node_cluster=f"fleet{number % _GROUPS}"))

    def _rule(self, number: int, teams: Sequence[str], chance: random.Random) -> Rule:
        team, service = chance.choice(teams), chance.randrange(len(self._names))
        pattern = {
            4: f"{team}.*",
            5: f"{team}.*",
            6: f"{team}.*",
            7: f"*.svc{service}.internal",
            8: f"{team}.*.edge",
            9: f"*svc{service}*",
        }.get(number % 10, chance.choice(self._names))
        groups = chance.sample([group.key for group in self._groups], chance.randrange(1, 4)) if number % 7 else []
        types = ["cluster"] if number % 3 == 0 else []
        return Rule(number, chance.choice(list(Effect)), pattern, frozenset(groups), frozenset(types), "ask the team")
