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
    """The access rules (`table`) of one environment and the names of which it serves something, at one time. Only those
    names are in it that the write may take from somebody.
    """

    environment: str
    table: AccessTable
    names: Names

    def allowed(self, audience: Audience, word: str, names: Iterable[str]) -> frozenset[str]:
        """The names among `names` that the audience may read, whether or not something is served of them."""
        kind = by_word[word]
        if self.table.unrestricted(audience, kind):
            return frozenset(names)
        if self.table.refuses_all(audience, kind):
            return frozenset()
        may = self.table.permissions(audience, kind)
        return frozenset(name for name in names if may.ruling(name).effect is Effect.ALLOW)

    def had(self, audience: Audience, word: str) -> frozenset[str]:
        """The names of this type in `names` of this object that the audience gets if it asks for them."""
        return self.allowed(audience, word, self.names.get(word, ()))


@dataclass(frozen=True, slots=True)
class Links:
    """What refers to the names that a write may take away.

    `now`, `then`: for each name, the resources that refer to it before the write, and after it.
    `once`: the names, by type, that any resource ever referred to.
    """

    now: Mapping[EntryKey, Collection[EntryKey]] = field(default_factory=lambda: MappingProxyType({}))
    then: Mapping[EntryKey, Collection[EntryKey]] = field(default_factory=lambda: MappingProxyType({}))
    once: Names = field(default_factory=lambda: NOWHERE)


class RulesInQuestion:
    """Finds the names that two tables of access rules of one environment may decide differently. These are the names
    that match a rule which is not in both at the same place, or whose client groups differ; all names where the
    defaults differ.
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
        """Whether the later table certainly allows everything that the earlier one does, so that no client loses
        anything by it.
        """
        return self._only_gives

    def concerns_type(self, kind: ResourceType) -> bool:
        """Whether the tables may decide any name of this type differently."""
        return self._all or any(rule.covers(kind) for rule in self._rules)

    def concerned(self, kind: ResourceType, names: frozenset[str]) -> frozenset[str]:
        """The names among `names`, of this type, that the tables may decide differently."""
        if self._all or any(rule.pattern == "*" and rule.covers(kind) for rule in self._rules):
            return names
        rules, matching = self._rules, self._index.matching
        return frozenset(name for name in names if any(rules[number].covers(kind) for number in matching(name)))

    @property
    def names(self) -> frozenset[str] | None:
        """All names that the tables may decide differently; None where they cannot be listed, because a rule has a
        pattern.
        """
        patterns = {rule.pattern for rule in self._rules}
        return None if self._all or any("*" in pattern for pattern in patterns) else frozenset(patterns)


def _differing(before: AccessTable, after: AccessTable) -> tuple[list[Rule], list[Rule]]:
    """The rules of each table without those that both have in common at their beginning and at their end."""
    old, new = list(before.rules), list(after.rules)
    shortest = min(len(old), len(new))
    head = next((place for place in range(shortest) if old[place] != new[place]), shortest)
    rest = shortest - head
    tail = next((place for place in range(rest) if old[-1 - place] != new[-1 - place]), rest)
    return old[head : len(old) - tail], new[head : len(new) - tail]


def _regrouped(before: AccessTable, after: AccessTable) -> tuple[Rule, ...]:
    """The rules in both tables that name client groups to which different clients belong in the two."""
    was, there = {group.key: group for group in before.groups}, frozenset(before.rules)
    changed = {group.key for group in after.groups if was.get(group.key) != group}
    return tuple(rule for rule in after.rules if rule in there and not changed.isdisjoint(rule.client_groups))
