"""What clients can have, before a write and after it. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from controlplane.clients.fleet import Ask
from xdscore.access import AccessTable, Audience, Effect, Rule
from xdscore.patterns import PatternIndex
from xdscore.resource_types import ResourceType, by_word
from xdscore.snapshot import EntryKey


@dataclass(frozen=True, slots=True)
class World:
    """One environment at one moment. `names` are those of its names by type word that something is served of, as far
    as they are in question.
    """

    environment: str
    table: AccessTable
    names: Mapping[str, frozenset[str]]

    def has(self, audience: Audience, key: EntryKey) -> bool:
        """Whether this audience gets the name if it asks for it."""
        word, name = key
        return name in self.names.get(word, ()) and self.allows(audience, key)

    def allows(self, audience: Audience, key: EntryKey) -> bool:
        """Whether this audience may read the name."""
        word, name = key
        return self.table.verdict(audience, by_word[word], name).effect is Effect.ALLOW


NOWHERE: Mapping[str, frozenset[str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Links:
    """What refers to the names in question: `now` and `then` (after the write) by resources that are there, `once` are
    those that a resource ever referred to.
    """

    now: Mapping[EntryKey, Collection[EntryKey]] = field(default_factory=lambda: MappingProxyType({}))
    then: Mapping[EntryKey, Collection[EntryKey]] = field(default_factory=lambda: MappingProxyType({}))
    once: Collection[EntryKey] = frozenset()


def asks_for(asks: Collection[Ask], key: EntryKey) -> bool:
    """Whether any of these asks for the name."""
    word, name = key
    return any(ask.word == word and ask.covers(name) for ask in asks)


def asks_by_name(asks: Collection[Ask], key: EntryKey) -> bool:
    """Whether any of these asks for just this name."""
    word, name = key
    return any(ask.word == word and ask.by_name(name) for ask in asks)


class RulesInQuestion:
    """Which names two tables of one environment may decide differently: those that a rule speaks of which is not in
    both at the same place, or whose groups are not the same in both; all of them where the defaults differ.
    """

    def __init__(self, before: AccessTable, after: AccessTable) -> None:
        old, new = _differing(before, after)
        regrouped = _regrouped(before, after)
        self._all = before.default is not after.default
        self._rules = (*old, *new, *regrouped)
        self._index = PatternIndex([rule.pattern for rule in self._rules])
        self._only_gives = (
            (not self._all or after.default is Effect.ALLOW)
            and all(rule.effect is not Effect.ALLOW for rule in old)
            and all(rule.effect is Effect.ALLOW for rule in new)
            and not regrouped
        )

    @property
    def takes_nothing(self) -> bool:
        """Whether the later table cannot refuse what the earlier one allows: all that differs gives."""
        return self._only_gives

    def concerns_type(self, kind: ResourceType) -> bool:
        """Whether any name of this type may be decided differently."""
        return self._all or any(rule.covers(kind) for rule in self._rules)

    def concerns(self, kind: ResourceType, name: str) -> bool:
        """Whether this name may be decided differently."""
        return self._all or any(self._rules[number].covers(kind) for number in self._index.matching(name))


def _differing(before: AccessTable, after: AccessTable) -> tuple[list[Rule], list[Rule]]:
    """The rules between those that both begin with and those that both end with."""
    old, new = list(before.rules), list(after.rules)
    shortest = min(len(old), len(new))
    head = next((place for place in range(shortest) if old[place] != new[place]), shortest)
    rest = shortest - head
    tail = next((place for place in range(rest) if old[-1 - place] != new[-1 - place]), rest)
    return old[head : len(old) - tail], new[head : len(new) - tail]


def _regrouped(before: AccessTable, after: AccessTable) -> tuple[Rule, ...]:
    """The rules that speak of groups which do not have the same clients any more."""
    was = {group.key: group for group in before.groups}
    changed = {group.key for group in after.groups if was.get(group.key) != group}
    return tuple(rule for rule in after.rules if not changed.isdisjoint(rule.client_groups))
