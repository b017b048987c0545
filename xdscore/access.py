"""Who may read what, compiled: the table that `decision` asks before anything else.

Access is decided on the name alone, before existence, so that a denial says nothing about what exists (reliability
threat 6). The first rule that covers the type, matches the name and speaks of one of the audience's groups decides; the
environment's default closes the list. A default that allows never covers secrets: they are allowed by a rule that names
their type, or not at all.

What a name has to do with the rules is its row: the rules that match it, in order. The builder computes the row of
every published name and stores it with the name (`Served.rules`); a pattern is matched here only for names that clients
ask for and may not read, whether or not they exist, so that both take the same time.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TypeVar

from xdscore.client_groups import ClientGroup, GroupIndex, Trust
from xdscore.denials import Denied, Missing
from xdscore.environment_choice import ClientFacts
from xdscore.patterns import PatternIndex
from xdscore.resource_types import ResourceType
from xdscore.sides import Side

# Names that were asked for and are remembered with their ruling, for each audience and type.
_MAX_VERDICTS = 10_000
# Audiences that are remembered with what they may do, for each table; where nothing is verified, a client can be in any
# set of groups it likes.
_MAX_AUDIENCES = 4_096


CLOSED = 0
"""What stands at the end of a secret's row where the default is closed to secrets: no rule's number, but that of the
default. By it whoever holds rows alone can tell a secret, and a process of the version before decides as we do.
"""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Effect(Enum):
    """What an access rule, or the default of an environment, lets a client do with a name."""

    ALLOW = "allow"
    DENY = "deny"
    HIDE = "hide"


@dataclass(frozen=True, slots=True)
class Audience:
    """What a client is to the rules: the client groups it belongs to, as far as access rules mention them. Clients of
    one audience are sent the same, from shared bytes.

    groups: keys of client groups, so that an audience stays the same whatever becomes of the rules.
    verified: True keeps declared groups from letting it read secrets, because its clients proved an identity (decisions
      C15). False where no rule would let them either.
    kind: the kind of its clients, where content is withheld from that kind; else empty.
    probes: the (type word, name, version) that it is sent although they are withheld from everybody, to find out
      whether its clients take them.
    side: the side of its clients in an open rollout. Neither `kind` nor `probes` nor `side` concerns access.
    """

    environment: str
    groups: frozenset[str] = frozenset()
    verified: bool = False
    kind: str = ""
    probes: frozenset[tuple[str, str, str]] = frozenset()
    side: Side = Side.STABLE
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        said = self.environment, self.groups, self.verified, self.kind, self.probes, self.side
        object.__setattr__(self, "_hash", hash(said))

    def __hash__(self) -> int:
        """The hash of what the audience is. It is made once, because every stream that is woken looks its views up by
        its audience.
        """
        return self._hash


@dataclass(frozen=True, slots=True)
class Rule:
    """One access rule. `number` is what people call it by, 1 or more. A rule without groups is about every client, one
    without types about every type. `message`: words for clients that are denied.
    """

    number: int
    effect: Effect
    pattern: str = "*"
    client_groups: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    message: str = ""

    def covers(self, kind: ResourceType) -> bool:
        """Whether the rule is about this type. A rule that allows is about secrets only if it names their type
        (reliability threat 5).
        """
        if self.types:
            return kind.word in self.types
        return not (kind.secret and self.effect is Effect.ALLOW)


@dataclass(frozen=True)
class Ruling:
    """The effect for one name, the number of the rule that decided it (0: the environment's default) and that rule's
    words for clients.
    """

    effect: Effect
    rule: int = 0
    message: str = ""

    @cached_property
    def denial(self) -> Missing | Denied | None:
        """What the client is told when the name is denied or hidden; None when it is allowed. Computed once, because
        many names share a ruling.
        """
        match self.effect:
            case Effect.DENY:
                return Denied(self.rule, self.message)
            case Effect.HIDE:
                return Missing(hidden=True, rule=self.rule)
            case Effect.ALLOW:
                return None


_BY_DEFAULT = {effect: Ruling(effect) for effect in Effect}


@dataclass(frozen=True, slots=True)
class RuleStep:
    """One rule that matches a name, as an explanation shows it, and whether it decided."""

    rule: Rule
    decided: bool


@dataclass(frozen=True, slots=True)
class AccessTable:
    """The access rules of one environment, in order. Equal tables decide alike.

    `default_covers_secrets`: whether a default of allow also allows secrets. True only in a snapshot built by an
    earlier version, so that clients keep the secrets they have until the next build, which waits for a rule that allows
    them.

    Raises ValueError, when made, for two groups with one key, two rules with one number, and a rule that mentions an
    unknown group.
    """

    default: Effect
    groups: tuple[ClientGroup, ...] = ()
    rules: tuple[Rule, ...] = ()
    default_covers_secrets: bool = False
    _compiled: "_Compiled" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compiled", _Compiled(self.groups, self.rules))

    def audience(self, environment: str, client: ClientFacts) -> Audience:
        """The audience of a client: the groups that some rule mentions and to which this client belongs (decisions
        D16).
        """
        compiled = self._compiled
        groups = frozenset(group.key for group in compiled.mentioned_index.of(client))
        return Audience(environment, groups, client.verified and compiled.secrets_by_declared_groups)

    @property
    def groups_mentioned(self) -> tuple[ClientGroup, ...]:
        """The client groups that some rule mentions; two clients that belong to the same ones are treated alike."""
        return self._compiled.mentioned

    def row(self, kind: ResourceType, name: str) -> tuple[int, ...]:
        """The numbers of the rules whose pattern and types match this name of this type, in order.

        Rules behind the first one that is about every client are left out, because they are never asked. Where there is
        no such rule and the default allows everything but secrets, the numbers for a secret end with `CLOSED`.
        """
        found = []
        rules = self.rules
        for position in self._compiled.index.matching(name):
            rule = rules[position]
            if rule.covers(kind):
                found.append(rule.number)
                if not rule.client_groups:
                    return tuple(found)
        if self._closed_to(kind):
            found.append(CLOSED)
        return tuple(found)

    def matching(self, name: str) -> Iterator[Rule]:
        """The rules whose pattern matches this name, in order, whatever types and clients they are about."""
        return (self.rules[position] for position in self._compiled.index.matching(name))

    @property
    def closed(self) -> bool:
        """Whether the environment's default allows everything except secrets."""
        return self.default is Effect.ALLOW and not self.default_covers_secrets

    def by_default(self, kind: ResourceType) -> Ruling:
        """The ruling for a name of this type that no rule is about."""
        return _BY_DEFAULT[Effect.DENY if self._closed_to(kind) else self.default]

    def only(self, numbers: Collection[int]) -> "AccessTable":
        """A copy of this table with only the rules that have these numbers. It decides as this one does for names that
        no other rule matches; groups that only other rules mention do not count in it.
        """
        return replace(self, rules=tuple(rule for rule in self.rules if rule.number in numbers))

    def knows(self, numbers: Iterable[int]) -> bool:
        """Whether every number is that of a rule in this table, or is `CLOSED` where the default allows everything but
        secrets.
        """
        return all(number in self._compiled.by_number or (number == CLOSED and self.closed) for number in numbers)

    def ruling(self, audience: Audience, kind: ResourceType, name: str) -> Ruling:
        """What this audience may do with this name, whether or not the name exists."""
        return self.permissions(audience, kind).ruling(name) if self.rules else self.by_default(kind)

    def permissions(self, audience: Audience, kind: ResourceType) -> "Permissions":
        """What this audience may do with names of this type. The same object is returned each time, as long as it is
        remembered.
        """
        key = (audience, kind.word)
        known = self._compiled.permissions.get(key)
        if known is None:
            known = _remember(self._compiled.permissions, key, Permissions(self, audience, kind), _MAX_AUDIENCES)
        return known

    def trace(self, audience: Audience, kind: ResourceType, name: str) -> tuple[RuleStep, ...]:
        """Every rule that matches the name up to the one that decides, in the order in which the Explain page shows
        them.
        """
        decided = self.ruling(audience, kind, name).rule
        rules = (self._compiled.by_number[number] for number in self.row(kind, name) if number != CLOSED)
        steps = [RuleStep(rule, rule.number == decided) for rule in rules]
        last = next((place for place, step in enumerate(steps) if step.decided), len(steps))
        return tuple(steps[: last + 1])

    def heard_by(self, audience: Audience, kind: ResourceType) -> Mapping[int, Ruling]:
        """What each rule that is about this audience and this type rules, by rule number, in the order of the rules."""
        return self._compiled.heard_by(audience, kind)

    def decides_alike(self, audience: Audience, other: "AccessTable", for_audience: Audience) -> bool:
        """Whether this table decides for `audience` every name as the table `other` does for `for_audience`. False also
        where that is not certain.
        """
        if self is other and audience == for_audience:
            return True
        if audience.verified != for_audience.verified:
            return False
        if (self.default, self.default_covers_secrets) != (other.default, other.default_covers_secrets):
            return False
        return self.spoken_to(audience) == other.spoken_to(for_audience)

    def spoken_to(self, audience: Audience) -> tuple[Rule, ...]:
        """The rules that are about this audience, in order: those without groups, and those that mention one of its
        groups.
        """
        return self._compiled.spoken_to(audience)

    def unrestricted(self, audience: Audience, kind: ResourceType) -> bool:
        """Whether this audience may read every name of this type. Its view may then be the snapshot's own mapping."""
        if self.by_default(kind).effect is not Effect.ALLOW:
            return False
        return all(ruling.effect is Effect.ALLOW for ruling in self.heard_by(audience, kind).values())

    def refuses_all(self, audience: Audience, kind: ResourceType) -> bool:
        """Whether the first rule about this audience and this type denies or hides every name."""
        first = next(iter(self.heard_by(audience, kind)), None)
        rule = self._compiled.by_number.get(first) if first is not None else None
        return rule is not None and rule.pattern == "*" and rule.effect is not Effect.ALLOW

    def _closed_to(self, kind: ResourceType) -> bool:
        return kind.secret and self.closed


class Permissions:
    """What one audience may do with names of one type. Results are remembered for this audience alone, because a name
    that another audience asked for must not be answered faster (reliability T11).
    """

    __slots__ = ("_by_default", "_heard", "_kind", "_names", "_table")

    def __init__(self, table: AccessTable, audience: Audience, kind: ResourceType) -> None:
        self._table = table
        self._kind = kind
        self._heard = table.heard_by(audience, kind)
        self._by_default = table.by_default(kind)
        self._names: dict[str, Ruling] = {}

    def of_row(self, numbers: tuple[int, ...]) -> Ruling:
        """The ruling for a name that the rules with these numbers match, and no others."""
        heard = self._heard
        for number in numbers:
            if number in heard:
                return heard[number]
        return self._by_default

    def ruling(self, name: str) -> Ruling:
        """The ruling for this name, whether or not a resource of that name exists."""
        known = self._names.get(name)
        if known is None:
            known = _remember(self._names, name, self.of_row(self._table.row(self._kind, name)), _MAX_VERDICTS)
        return known


def _remember(memory: dict[_Key, _Value], key: _Key, value: _Value, at_most: int) -> _Value:
    """Put `value` into `memory` and return it; a memory with `at_most` values is emptied before."""
    if len(memory) >= at_most:
        memory.clear()
    memory[key] = value
    return value


class _Compiled:
    """What an access table computes once, and the results it remembers; none of it counts when tables are compared."""

    def __init__(self, groups: Sequence[ClientGroup], rules: Sequence[Rule]) -> None:
        self.by_number = {rule.number: rule for rule in rules}
        by_key = {group.key: group for group in groups}
        mentioned = {key for rule in rules for key in rule.client_groups}
        if len(by_key) != len(groups) or len(self.by_number) != len(rules) or not mentioned <= by_key.keys():
            raise ValueError("an access table with a group or rule that is there twice, or a group that is missing")
        self.mentioned = tuple(group for group in groups if group.key in mentioned)
        declared = frozenset(group.key for group in self.mentioned if group.trust is Trust.DECLARED)
        self.secrets_by_declared_groups = any(
            rule.effect is Effect.ALLOW and "secret" in rule.types and not declared.isdisjoint(rule.client_groups)
            for rule in rules
        )
        self.permissions: dict[tuple[Audience, str], Permissions] = {}
        self._declared = declared
        self._rules = tuple(rules)
        self._verdicts = {rule.number: Ruling(rule.effect, rule.number, rule.message) for rule in rules}
        self._spoken_to: dict[Audience, tuple[Rule, ...]] = {}

    @cached_property
    def mentioned_index(self) -> GroupIndex:
        return GroupIndex(self.mentioned)

    @cached_property
    def index(self) -> PatternIndex:
        """The index of all rules' patterns. Made when a name is first matched, because a process that only reads stored
        rulings never needs it.
        """
        return PatternIndex([rule.pattern for rule in self._rules])

    def spoken_to(self, audience: Audience) -> tuple[Rule, ...]:
        known = self._spoken_to.get(audience)
        if known is None:
            apart = audience.groups.isdisjoint
            rules = [rule for rule in self._rules if not rule.client_groups or not apart(rule.client_groups)]
            known = _remember(self._spoken_to, audience, tuple(rules), _MAX_AUDIENCES)
        return known

    def heard_by(self, audience: Audience, kind: ResourceType) -> dict[int, Ruling]:
        rules = [rule for rule in self.spoken_to(audience) if rule.covers(kind)]
        if kind.secret and audience.verified:
            # Whoever could prove who they are does not get a secret for what they merely say (decisions C15).
            proven = audience.groups - self._declared
            rules = [
                rule
                for rule in rules
                if rule.effect is not Effect.ALLOW
                or not rule.client_groups
                or not proven.isdisjoint(rule.client_groups)
            ]
        return {rule.number: self._verdicts[rule.number] for rule in rules}
