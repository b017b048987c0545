"""Who is asked first: chooses the clients of a rollout's steps. Pure, and the same for the same fleet and seed.

A pilot asks few clients for much: a greedy cover finds clients that ask for many of the changed resources, until every
kind of client was asked for each resource that it asks for. Fields of a node can be forged, so kinds count by the
verified identities that are behind them (rollouts.md "Words").
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from controlplane.catalog.rollout_settings import Measure, RolloutStep
from controlplane.rollouts.values import Key, Why
from xdscore.client_kinds import UNKNOWN_VERSION, ClientFamily, ClientKind
from xdscore.sides import WHOLE_PERMILLE, place_of

MAX_PILOTS: Final = 50
# rollouts.md "Words": so many kinds are told apart.
MAX_KINDS: Final = 20
OTHER: Final = "other"
"""The kind of all clients whose own is unknown, or not among those that are told apart."""


@dataclass(frozen=True, slots=True)
class Member:
    """A connected client, as far as it matters to whom a rollout asks.

    client: its public id. digest: what the rollout's table calls it (`sides.client_digest`).
    identity: verified; empty where none was.
    kind: the word of its kind, as `kinds_told_apart` says.
    asks: the names that differ between the sides, that it asks for and may read.
    wildcards: the (type word, audience) of its wildcards that hold such names.
    groups: the keys of the client groups to which it belongs.
    """

    client: str
    node_id: str
    digest: str
    identity: str
    kind: str
    asks: AbstractSet[Key] = frozenset()
    wildcards: frozenset[tuple[str, str]] = frozenset()
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pick:
    """A client that was chosen, why, and in words."""

    member: Member
    why: Why
    because: str


@dataclass(frozen=True, slots=True)
class StepSize:
    """Whom a step means: exactly one of so many clients of each kind, so many clients, so many of a thousand of them;
    or, where it is a `pilot`, none of these. The members of `groups` are meant beside them.
    """

    pilot: bool = False
    kinds: int | None = None
    clients: int | None = None
    permille: int | None = None
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Whom the step means, in words."""
        if self.pilot:
            said = "a pilot of each kind of client"
        elif self.kinds is not None:
            said = "one client of each kind" if self.kinds == 1 else f"{self.kinds} clients of each kind"
        elif self.clients is not None:
            said = "one client" if self.clients == 1 else f"{self.clients} clients"
        else:
            said = f"{(self.permille or 0) / 10:g} % of the clients"
        groups = " and ".join(f"'{key}'" for key in self.groups)
        return f"{said}, and the members of {groups}" if groups else said


@dataclass(frozen=True, slots=True)
class Cohort:
    """Whom a step adds. `picks`: the clients that are chosen one by one. `permille`: how many of a thousand the step
    means; 0 where it means none by chance. `uncovered`: the kinds that ask for something that differs and of which
    nobody would be asked for some of it.
    """

    picks: tuple[Pick, ...]
    permille: int = 0
    uncovered: tuple[str, ...] = ()


PILOT: Final = StepSize(pilot=True)


def size_of(step: RolloutStep) -> StepSize:
    """Whom a step of an environment's settings means."""
    match step.measure:
        case Measure.KINDS:
            return StepSize(kinds=step.amount, groups=step.groups)
        case Measure.CLIENTS:
            return StepSize(clients=step.amount, groups=step.groups)
        case Measure.PERCENT:
            return StepSize(permille=step.amount, groups=step.groups)


def kinds_told_apart(clients: Iterable[tuple[ClientKind, str]]) -> frozenset[ClientKind]:
    """The kinds that are told apart among clients with these kinds and identities: those with most verified identities
    and, among equals, most clients.
    """
    counted: Counter[ClientKind] = Counter()
    identities: defaultdict[ClientKind, set[str]] = defaultdict(set)
    for kind, identity in clients:
        if kind.family is ClientFamily.OTHER or kind.version == UNKNOWN_VERSION:
            continue
        counted[kind] += 1
        if identity:
            identities[kind].add(identity)
    ranked = sorted(counted, key=lambda kind: (-len(identities[kind]), -counted[kind], kind))
    return frozenset(ranked[:MAX_KINDS])


def kind_word(kind: ClientKind, apart: Collection[ClientKind]) -> str:
    """What the kind of a client is called in a rollout in which the kinds `apart` are told apart."""
    return str(kind) if kind in apart else OTHER


def step_cohort(
    size: StepSize, fleet: Sequence[Member], *, inside: Collection[str], seed: str, prefer_group: str | None = None
) -> Cohort:
    """Whom a step of this size adds to the clients that are on the candidate side already, whose digests are `inside`.

    Equal fleets, in any order, and equal seeds give equal cohorts. `prefer_group`: of clients that would do alike,
    those of this group come first.
    """
    draw = _Draw(seed, prefer_group)
    already = [member for member in fleet if member.digest in inside or not member.groups.isdisjoint(size.groups)]
    taken = {member.digest for member in already}
    left = draw.ordered(member for member in fleet if member.digest not in taken)
    picks: list[Pick] = []
    permille = 0
    if size.pilot:
        picks = _cover(left, draw, done=_Known(already), at_most=MAX_PILOTS)
    elif size.kinds is not None:
        picks = _of_each_kind(left, already, size.kinds)
    elif size.clients is not None:
        room = max(size.clients - len(already), 0)
        picks = _cover(left, draw, done=_Known(already), at_most=room)
        chosen = {pick.member.digest for pick in picks}
        more = [member for member in _by_use(left) if member.digest not in chosen][: room - len(picks)]
        picks += [Pick(member, Why.STEP, f"it is one of {size}") for member in more]
    elif size.permille is not None:
        permille = size.permille
        number = math.ceil(len(fleet) * permille / WHOLE_PERMILLE)
        picks = _to_fill(left, seed, permille, missing=number - len(already))
    by_chance = [member for member in left if place_of(seed, member.digest) < permille]
    asked = [*already, *(pick.member for pick in picks), *by_chance]
    return Cohort(tuple(picks), permille, uncovered(fleet, asked))


def uncovered(fleet: Iterable[Member], asked: Iterable[Member]) -> tuple[str, ...]:
    """The kinds of which somebody asks for a name that differs, and nobody of the kind among `asked` asks for it, by
    word (R14).
    """
    given = _asked_for(asked)
    return tuple(sorted(kind for kind, keys in _asked_for(fleet).items() if not keys <= given.get(kind, frozenset())))


def _asked_for(members: Iterable[Member]) -> dict[str, AbstractSet[Key]]:
    """What clients of each kind ask for. Thousands ask for the same, or nearly."""
    alike: defaultdict[str, set[AbstractSet[Key]]] = defaultdict(set)
    for member in members:
        alike[member.kind].add(member.asks)
    return {kind: reduce(or_, asks) for kind, asks in alike.items()}


def meant(sizes: Sequence[StepSize], fleet: Sequence[Member]) -> tuple[int, ...]:
    """How many clients each of these steps means in this fleet, members of its groups among them. A step never means
    fewer than the one before it, because nobody is moved back (rollouts.md, settled question 7).
    """
    numbers: list[int] = []
    for size in sizes:
        members = sum(not member.groups.isdisjoint(size.groups) for member in fleet)
        number = max(_number(size, fleet), members, numbers[-1] if numbers else 0)
        numbers.append(min(number, len(fleet)))
    return tuple(numbers)


def second(
    kind: str, key: Key, fleet: Iterable[Member], *, inside: Collection[str], parties: Collection[str], seed: str
) -> Member | None:
    """Another client of this kind that may be asked for this name beside those that are on the candidate side, whose
    digests are `inside`; None where there is none. One whose identity nobody has who was asked (`parties`) comes first
    (R8).
    """
    others = [member for member in fleet if member.kind == kind and key in member.asks and member.digest not in inside]
    ordered = _Draw(seed, None).ordered(others)
    return min(ordered, key=lambda member: member.identity in parties, default=None)


def _number(size: StepSize, fleet: Sequence[Member]) -> int:
    if size.kinds is not None:
        kinds = Counter(member.kind for member in fleet)
        return sum(min(size.kinds, clients) for clients in kinds.values())
    if size.clients is not None:
        return size.clients
    if size.permille is not None:
        return math.ceil(len(fleet) * size.permille / WHOLE_PERMILLE)
    draw = _Draw("meant", None)
    return len(_cover(draw.ordered(fleet), draw, done=_Known(()), at_most=MAX_PILOTS))


class _Draw:
    """The order in which clients that would do alike are chosen: members of the preferred group first, then as the
    rollout's seed has it.
    """

    def __init__(self, seed: str, prefer_group: str | None) -> None:
        self._seed = seed
        self._prefer = prefer_group

    def preferred(self, member: Member) -> bool:
        return self._prefer is not None and self._prefer in member.groups

    def ordered(self, members: Iterable[Member]) -> list[Member]:
        """The members, those that are to be chosen first in front."""
        return sorted(
            members, key=lambda each: (not self.preferred(each), place_of(self._seed, each.digest), each.digest)
        )


class _Known:
    """What is known once some clients have answered: of each kind, the names and the wildcards that they ask for."""

    def __init__(self, members: Iterable[Member]) -> None:
        self._names: dict[str, AbstractSet[Key]] = {}
        self._wildcards: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for asks, kind, wildcards in {(each.asks, each.kind, each.wildcards) for each in members}:
            self._add(asks, kind, wildcards)

    def add(self, member: Member) -> None:
        """Let this client answer, too."""
        self._add(member.asks, member.kind, member.wildcards)

    def new_names(self, member: Member) -> int:
        """The number of names of which this client would tell something that is not known."""
        known = self._names.get(member.kind)
        return len(member.asks - known) if known is not None else len(member.asks)

    def new(self, member: Member) -> int:
        """The number of names and wildcards of which this client would tell something that is not known."""
        return self.new_names(member) + len(member.wildcards - self._wildcards[member.kind])

    def _add(self, asks: AbstractSet[Key], kind: str, wildcards: frozenset[tuple[str, str]]) -> None:
        known = self._names.get(kind)
        self._names[kind] = known | asks if known is not None else asks
        self._wildcards[kind] |= wildcards


def _cover(ordered: Sequence[Member], draw: _Draw, *, done: _Known, at_most: int) -> list[Pick]:
    """A few clients that together ask for all that anybody asks for, by a greedy cover: next comes always who tells of
    most that is not known yet (`done`, to which they are added). Clients of the preferred group come before all others.
    """
    # Clients of one kind that ask for the same do alike: the first of them stands for all.
    alike: dict[tuple[object, ...], Member] = {}
    for member in ordered:
        if member.asks:
            alike.setdefault((member.kind, member.asks, member.wildcards), member)
    picks: list[Pick] = []
    left = list(alike.values())
    while len(picks) < at_most:
        new = [(number, member) for member in left if (number := done.new(member))]
        if not new:
            break
        _, best = max(new, key=lambda each: (draw.preferred(each[1]), each[0]))
        picks.append(Pick(best, Why.PILOT, _pilot_words(best, done.new_names(best))))
        done.add(best)
        left = [member for _, member in new]
    return picks


def _pilot_words(member: Member, names: int) -> str:
    asks = "a changed resource" if names == 1 else f"{names} changed resources"
    return f"it is the {member.kind} that asks for {asks} that nobody else of its kind was chosen for"


def _of_each_kind(left: Sequence[Member], already: Iterable[Member], number: int) -> list[Pick]:
    have = Counter(member.kind for member in already)
    known: defaultdict[str, set[str]] = defaultdict(set)
    for member in already:
        known[member.kind].add(member.identity)
    by_kind: defaultdict[str, list[Member]] = defaultdict(list)
    for member in _by_use(left):
        by_kind[member.kind].append(member)
    picks: list[Pick] = []
    for kind in sorted(by_kind):
        for _ in range(number - have[kind]):
            others = by_kind[kind]
            if not others:
                break
            # The first of those that are of most use, with an identity that was not chosen yet where there is one.
            best = min(others, key=lambda each: (-len(each.asks), each.identity in known[kind]))
            others.remove(best)
            known[kind].add(best.identity)
            word = "the client" if number == 1 else f"one of {number} clients"
            picks.append(Pick(best, Why.KIND, f"it is {word} of kind {kind} that asks for most of what changed"))
    return picks


def _to_fill(left: Sequence[Member], seed: str, permille: int, *, missing: int) -> list[Pick]:
    """The clients that a share lacks: chance may leave a small fleet with fewer clients than the step means. Those that
    ask for something that differs come first, and then those whose turn is next, who stay when the share grows.
    """
    lucky = sum(place_of(seed, member.digest) < permille for member in left)
    others = [member for member in left if place_of(seed, member.digest) >= permille]
    others.sort(key=lambda member: (not member.asks, place_of(seed, member.digest), member.digest))
    because = "fewer clients than the step means were drawn, and it is next"
    return [Pick(member, Why.SHARE, because) for member in others[: max(missing - lucky, 0)]]


def _by_use(members: Iterable[Member]) -> list[Member]:
    """The members, those that ask for most of what differs first; otherwise in the order they come in."""
    return sorted(members, key=lambda each: -len(each.asks))


def counted(members: Iterable[Member]) -> Mapping[str, int]:
    """How many clients of each kind there are."""
    return Counter(member.kind for member in members)
