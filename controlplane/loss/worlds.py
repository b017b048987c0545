"""What clients can have, before a write and after it. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from xdscore.access import AccessTable, Audience, Effect, Rule
from xdscore.patterns import PatternIndex
from xdscore.resource_types import ResourceType, by_word
from xdscore.snapshot import EntryKey

Names = Mapping[str, frozenset[str]]
"""Canonical names of resources by type word."""
NOWHERE: Names = MappingProxyType({})


@dataclass(frozen=True)
class World:
    """The access rules and served names of one environment at one moment. `names` are those of its names that something
    is served of, as far as they are in question.
    """

    environment: str
    table: AccessTable
    names: Names

    def allowed(self, audience: Audience, word: str, names: Iterable[str]) -> frozenset[str]:
        """The names among these that the audience may read, whether or not something is served of them."""
        kind = by_word[word]
        if self.table.unrestricted(audience, kind):
            return frozenset(names)
        if self.table.refuses_all(audience, kind):
            return frozenset()
        may = self.table.permissions(audience, kind)
        return frozenset(name for name in names if may.ruling(name).effect is Effect.ALLOW)

    def had(self, audience: Audience, word: str) -> frozenset[str]:
        """The names of this type, among those in question, that the audience gets if it asks for them."""
        return self.allowed(audience, word, self.names.get(word, ()))


@dataclass(frozen=True, slots=True)
class Links:
    """The resources that refer to the names in question: `now` and `then` (after the write) by resources that are
    there, `once` are the names that a resource ever referred to.
    """

    now: Mapping[EntryKey, Collection[EntryKey]] = field(default_factory=lambda: MappingProxyType({}))
    then: Mapping[EntryKey, Collection[EntryKey]] = field(default_factory=lambda: MappingProxyType({}))
    once: Names = field(default_factory=lambda: NOWHERE)


class RulesInQuestion:
    """The names that two tables of one environment may decide differently: those that a rule speaks of which is not in
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
        """Whether the later table allows everything that the earlier one allows: all differences only give."""
        return self._only_gives

    def concerns_type(self, kind: ResourceType) -> bool:
        """Whether any name of this type may be decided differently."""
        return self._all or any(rule.covers(kind) for rule in self._rules)

    def concerned(self, kind: ResourceType, names: frozenset[str]) -> frozenset[str]:
        """The names among these, of this type, that may be decided differently."""
        if self._all or any(rule.pattern == "*" and rule.covers(kind) for rule in self._rules):
            return names
        rules, matching = self._rules, self._index.matching
        return frozenset(name for name in names if any(rules[number].covers(kind) for number in matching(name)))

    @property
    def names(self) -> frozenset[str] | None:
        """The only names that may be decided differently; None where they are patterns, not names."""
        patterns = {rule.pattern for rule in self._rules}
        return None if self._all or any("*" in pattern for pattern in patterns) else frozenset(patterns)


def _differing(before: AccessTable, after: AccessTable) -> tuple[list[Rule], list[Rule]]:
    """The rules of each table that are neither in the common beginning of both nor in their common end."""
    old, new = list(before.rules), list(after.rules)
    shortest = min(len(old), len(new))
    head = next((place for place in range(shortest) if old[place] != new[place]), shortest)
    rest = shortest - head
    tail = next((place for place in range(rest) if old[-1 - place] != new[-1 - place]), rest)
    return old[head : len(old) - tail], new[head : len(new) - tail]


def _regrouped(before: AccessTable, after: AccessTable) -> tuple[Rule, ...]:
    """The rules that speak of groups whose clients are not the same in both tables."""
    was = {group.key: group for group in before.groups}
    changed = {group.key for group in after.groups if was.get(group.key) != group}
    return tuple(rule for rule in after.rules if not changed.isdisjoint(rule.client_groups))
