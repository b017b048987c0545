"""The judge of losses against the rule, said once more for one client and one name at a time."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.catalog.guarding import Loss
from controlplane.clients.fleet import Fleet, Member, NameSet
from controlplane.loss.judging import Judge, Passage, grouped
from controlplane.loss.worlds import Links, World
from xdscore.access import AccessTable, Effect, Rule
from xdscore.client_groups import ClientGroup
from xdscore.environment_choice import Selector
from xdscore.resource_types import by_word
from xdscore.snapshot import EntryKey

WORDS = ("listener", "route", "cluster")
NAMES = ("a", "b")
KEYS = tuple((word, name) for word in WORDS for name in NAMES)
SETS = {"".join(names): names for names in ((), ("a",), ("b",), ("a", "b"))}
GROUPS = (
    ClientGroup("even", (Selector(node_id="*0"),)),
    ClientGroup("blue", (Selector(metadata={"colour": "blue"}),)),
)
Asked = tuple[tuple[str, bool, str], ...]


@dataclass(frozen=True)
class Situation:
    """A fleet, what there is before and after, and what refers to what."""

    asks: tuple[Asked, ...]
    before: World
    after: World | None
    users: Mapping[EntryKey, frozenset[EntryKey]]
    users_then: Mapping[EntryKey, frozenset[EntryKey]]
    once: frozenset[EntryKey]

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(
            Member(f"id{number}", "default", "", f"node-{number}", "", ("envoy", "1.40.0"), _text(asks))
            for number, asks in enumerate(self.asks)
        )


def _text(asks: Asked) -> str:
    return ",".join(f"{word}:{int(wildcard)}:0:{names}" for word, wildcard, names in asks)


_ask = st.tuples(st.sampled_from(WORDS), st.booleans(), st.sampled_from(sorted(SETS)))
_rules = st.lists(
    st.tuples(
        st.sampled_from(Effect),
        st.sampled_from(["*", "a", "b*"]),
        st.sampled_from([frozenset[str](), frozenset({"even"}), frozenset({"blue"})]),
        st.sampled_from([frozenset[str](), frozenset({"cluster"})]),
    ),
    max_size=2,
)
_some = st.frozensets(st.sampled_from(KEYS), min_size=1, max_size=3)
_links = st.dictionaries(st.sampled_from(KEYS), _some, max_size=4)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    def world(keys: frozenset[EntryKey]) -> World:
        rules = tuple(Rule(number, *rule) for number, rule in enumerate(draw(_rules), 1))
        table = AccessTable(draw(st.sampled_from([Effect.ALLOW, Effect.ALLOW, Effect.DENY])), GROUPS, rules)
        return World("default", table, {word: frozenset(n for w, n in keys if w == word) for word in WORDS})

    there = frozenset(KEYS) - draw(st.frozensets(st.sampled_from(KEYS), max_size=2))
    left = draw(st.frozensets(st.sampled_from(KEYS)))
    users, users_then = draw(_links), draw(_links)
    once = draw(st.frozensets(st.sampled_from(KEYS))) | frozenset(users)
    asks = draw(st.lists(st.lists(_ask, min_size=1, max_size=4).map(tuple), min_size=1, max_size=3).map(tuple))
    after = world(there & left) if draw(st.integers(0, 9)) else None
    return Situation(asks, world(there), after, users, users_then, once)


@settings(max_examples=600)
@given(situations())
def test_judge__any_situation__says_what_the_rule_says_of_each_client_and_name(situation: Situation) -> None:
    clients: set[str] = set()
    names: Counter[EntryKey] = Counter()
    for member, asks in zip(situation.members, situation.asks, strict=True):
        lost = {key for key in KEYS if _loses(situation, member, asks, key)}
        names.update(lost)
        clients |= {member.client} if lost else set()

    loss = _judged(situation)

    assert loss.clients == len(clients)
    assert {(each.type, each.name): each.clients for each in loss.names} == dict(names)
    assert {each.client for each in loss.who} == clients


def _judged(situation: Situation) -> Loss:
    fleet = Fleet(situation.members, {key: NameSet(names) for key, names in SETS.items()})
    passage = Passage(situation.before, situation.after)
    judge = Judge(grouped(fleet, ((passage, members, True) for members in fleet.crowds.values())))
    judge.taken()
    once = {word: frozenset(name for each, name in situation.once if each == word) for word in WORDS}
    links = {"default": Links(situation.users, situation.users_then, once)}
    return judge.losses(links, {"default": len(fleet.members)}).get("default", Loss())


def _loses(situation: Situation, member: Member, asks: Asked, key: EntryKey) -> bool:
    """The rule, word by word; of a client that may be in the blue group, in either case."""
    return any(_loses_as(situation, member, asks, key, blue=blue) for blue in (False, True))


def _loses_as(situation: Situation, member: Member, asks: Asked, key: EntryKey, *, blue: bool) -> bool:
    def allows(world: World, of: EntryKey) -> bool:
        groups = {"even"} if member.node_id.endswith("0") else set()
        groups |= {"blue"} if blue else set()
        for rule in world.table.rules:
            spoken_to = not rule.client_groups or rule.client_groups & groups
            if spoken_to and rule.covers(by_word[of[0]]) and _matches(rule.pattern, of[1]):
                return rule.effect is Effect.ALLOW
        return world.table.default is Effect.ALLOW

    def asked(of: EntryKey, *, by_name: bool = False) -> bool:
        return any(
            word == of[0] and ((wildcard and not by_name) or of[1] in SETS[names]) for word, wildcard, names in asks
        )

    before, after = situation.before, situation.after
    had = asked(key) and key[1] in before.names[key[0]] and allows(before, key)
    has = after is not None and key[1] in after.names[key[0]] and allows(after, key)
    if not had or has:
        return False
    if after is not None and any(asked(user) and allows(after, user) for user in situation.users_then.get(key, ())):
        return True
    if any(asked(user) and allows(before, user) for user in situation.users.get(key, ())):
        return False
    return asked(key, by_name=True) or key not in situation.once


def _matches(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def test_judge__a_thousand_names__counts_all_and_tells_the_first_hundred() -> None:
    names = tuple(f"c{number:04}" for number in range(1_000))
    member = Member("id", "default", "", "node", "", ("envoy", "1.40.0"), "cluster:1:0:none")
    fleet = Fleet((member,), {"none": NameSet(())})
    allowing, denying = AccessTable(Effect.ALLOW), AccessTable(Effect.DENY)
    there = {"cluster": frozenset(names)}
    passage = Passage(World("default", allowing, there), World("default", denying, there))
    judge = Judge(grouped(fleet, [(passage, (member,), False)]))

    taken = judge.taken()
    loss = judge.losses({"default": Links()}, {"default": 1})["default"]

    assert len(taken["default"]) == 1_000
    assert (len(loss.names), loss.truncated, loss.doubtful, dict(loss.kinds)) == (100, True, 1, {"envoy 1.40": 1})


def test_name_set__xdstp__is_canonical_and_knows_its_collections() -> None:
    names = NameSet(("xdstp://a/t/x/*", "xdstp://a/t/y?b=1&a=2", "plain"))

    assert names.names == {"xdstp://a/t/x/*", "xdstp://a/t/y?a=2&b=1", "plain"}
    assert [glob.name for glob in names.globs] == ["xdstp://a/t/x/*"]
