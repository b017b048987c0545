"""A rollout among clients that take, refuse, die, are silent, come and go (rollouts.md "Evidence").

The actor here does what `services` do with the verdicts, without a database; clients and their answers are a model.
What must hold, whatever happens: the stable side never has anything but what was stable or promoted; nobody but those
asked sees what fails; the cohort only grows; nothing is promoted that a kind refuses; every rollout ends or waits for a
person.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controlplane.catalog.rollout_settings import OnFailure, Unexposed
from controlplane.rollouts.cohort import PILOT, Member, StepSize, second, step_cohort
from controlplane.rollouts.facts import Answer, Asked, Facts, Others, Rules, facts_from_json, facts_json
from controlplane.rollouts.judge import judge
from controlplane.rollouts.moves import AskMore, AskPerson, Needs, Position, Promote, Step, TakeBack, move_of
from controlplane.rollouts.values import Key
from xdscore.environment_choice import ClientFacts
from xdscore.sides import RolloutTable, Side, client_digest, side_of

NAMES: tuple[Key, ...] = (("cluster", "a"), ("cluster", "b"), ("route", "r"))
KINDS = ("envoy 1.40", "grpc-go 1.66")
IDENTITIES = ("", "one", "two")
ANSWER_S = 30.0
STEPS = (
    (PILOT,),
    (StepSize(kinds=1), StepSize(permille=1000)),
    (StepSize(clients=1), StepSize(permille=300), StepSize(permille=1000)),
)

Content = tuple[Key, int]
"""A name and the number of its version."""


@dataclass
class Person:
    """A client: what it asks for, what it holds of each name, what it was sent and did not answer."""

    facts: ClientFacts
    kind: str
    asks: frozenset[Key]
    has: dict[Key, int] = field(default_factory=dict)
    sent: dict[Key, int] = field(default_factory=dict)
    refused: dict[Key, int] = field(default_factory=dict)
    seen: set[Content] = field(default_factory=set)
    connected: bool = True
    silent: bool = False
    losses: int = 0
    asked_at: float | None = None

    @property
    def digest(self) -> str:
        return client_digest("default", self.facts)

    @property
    def member(self) -> Member:
        return Member(self.facts.node_id, self.facts.node_id, self.digest, self.facts.identity, self.kind, self.asks)


@dataclass
class Open:
    """An open rollout."""

    sizes: tuple[StepSize, ...]
    rules: Rules
    on_failure: OnFailure
    table: RolloutTable
    names: set[Key]
    evidence_at: float
    ever_inside: set[str] = field(default_factory=set)
    waits: bool = False


class Rollouts(RuleBasedStateMachine):
    """One environment. A version is a number; which kinds refuse it, and whether it kills, is drawn with it."""

    @initialize(
        fleet=st.lists(
            st.tuples(st.sampled_from(KINDS), st.sampled_from(IDENTITIES), st.frozensets(st.sampled_from(NAMES))),
            min_size=4,
            max_size=24,
        )
    )
    def start(self, fleet: list[tuple[str, str, frozenset[Key]]]) -> None:
        self.now = 0.0
        self.stable: dict[Key, int] = dict.fromkeys(NAMES, 0)
        self.head: dict[Key, int] = dict(self.stable)
        self.written: dict[Key, int] = dict(self.stable)
        self.promoted: set[Content] = {(key, 0) for key in NAMES}
        self.bad: dict[Content, frozenset[str]] = {}
        self.deadly: set[Content] = set()
        self.stopped: set[Content] = set()
        self.people: list[Person] = []
        self.open: Open | None = None
        self.opened = 0
        for kind, identity, asks in fleet:
            self.joins(kind, identity, asks)

    # Clients

    @precondition(lambda self: len(self.people) < 30)
    @rule(kind=st.sampled_from(KINDS), identity=st.sampled_from(IDENTITIES), asks=st.frozensets(st.sampled_from(NAMES)))
    def joins(self, kind: str, identity: str, asks: frozenset[Key]) -> None:
        self.people.append(Person(ClientFacts(identity, f"node-{len(self.people)}"), kind, asks, asked_at=self.now))
        self.send()

    @rule(data=st.data())
    def leaves(self, data: st.DataObject) -> None:
        self.lose(data.draw(st.sampled_from(self.people)))

    @rule()
    def come_back(self) -> None:
        for person in self.people:
            person.connected = True
        self.send()

    @rule(data=st.data(), silent=st.booleans())
    def falls_silent(self, data: st.DataObject, silent: bool) -> None:
        data.draw(st.sampled_from(self.people)).silent = silent

    # People

    @precondition(lambda self: self.open is not None)
    @rule(
        names=st.sets(st.sampled_from(NAMES), min_size=1),
        bad=st.frozensets(st.sampled_from(KINDS)),
        deadly=st.booleans(),
    )
    def writes(self, names: set[Key], bad: frozenset[str], deadly: bool) -> None:
        for key in sorted(names):
            self.written[key] += 1
            self.head[key] = self.written[key]
            content = (key, self.head[key])
            self.bad[content] = bad
            if deadly and bad:
                self.deadly.add(content)
        if self.open is not None and self.rollout.names & names:
            self.rollout.names |= names  # R5: it joins whole
            self.rollout.evidence_at = self.now
            self.renew()
        self.send()

    @precondition(lambda self: self.open is None)
    @rule(
        data=st.data(),
        sizes=st.sampled_from(STEPS),
        unexposed=st.sampled_from(Unexposed),
        on_failure=st.sampled_from(OnFailure),
        approve=st.booleans(),
    )
    def opens(
        self,
        data: st.DataObject,
        sizes: tuple[StepSize, ...],
        unexposed: Unexposed,
        on_failure: OnFailure,
        approve: bool,
    ) -> None:
        if not any(self.waiting()):
            self.writes(
                data.draw(st.sets(st.sampled_from(NAMES), min_size=1)),
                data.draw(st.frozensets(st.sampled_from(KINDS))),
                data.draw(st.booleans()),
            )
        self.opened += 1
        rules = Rules(sizes[0].pilot, ANSWER_S, unexposed=unexposed, approve=approve and not sizes[0].pilot)
        table = RolloutTable(f"r{self.opened}", 0, frozenset(), (), 0, f"seed{self.opened}")
        self.open = Open(sizes, rules, on_failure, table, set(self.waiting()), self.now)
        self.renew()
        self.send()

    @precondition(lambda self: self.open is not None)
    @rule(seldom=st.integers(0, 9))
    def aborts(self, seldom: int) -> None:
        if seldom == 0:
            self.take_back(set(self.rollout.names))
            self.end("aborted")

    @precondition(lambda self: self.open is not None)
    @rule(data=st.data(), seldom=st.integers(0, 9))
    def rolls_back(self, data: st.DataObject, seldom: int) -> None:
        """R13: the open rollout is aborted, and both sides have what once was stable."""
        if seldom:
            return
        for key in NAMES:
            version = data.draw(st.sampled_from(sorted(number for name, number in self.promoted if name == key)))
            self.head[key] = self.stable[key] = version
        self.end("aborted")

    # Workers

    @rule(seconds=st.sampled_from((1.0, 10.0, ANSWER_S + 1)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.open is not None)
    @rule(times=st.integers(1, 4), half=st.booleans(), approved=st.booleans())
    def they_answer_and_a_worker_looks(self, times: int, half: bool, approved: bool) -> None:
        for _ in range(times):
            for person in self.people[:: 2 if half else 1]:
                self.answer(person)
            if self.open is not None:
                self.worker_looks(approved=approved)

    def worker_looks(self, *, approved: bool) -> None:
        rollout = self.rollout
        facts = self.facts(approved=approved)
        rules = replace(rollout.rules, last=rollout.table.step + 1 == len(rollout.sizes))
        verdict = judge(facts, rules)
        assert judge(facts_from_json(facts_json(facts)), rules) == verdict, "R11: same facts, same verdict"
        position = Position(
            rollout.table.step, len(rollout.sizes), frozenset(rollout.names), rollout.on_failure, Needs()
        )
        move = move_of(verdict, position)
        rollout.waits = isinstance(move, AskPerson) or "a person" in verdict.waits_for
        match move:
            case Promote():
                self.check_promotable(facts)
                for key in rollout.names:
                    self.stable[key] = self.head[key]
                    self.promoted.add((key, self.head[key]))
                self.end("done")
            case Step():
                rollout.table = replace(rollout.table, step=rollout.table.step + 1)
                rollout.evidence_at = self.now
                self.renew()
            case TakeBack(names=names, over=over):
                assert names, "it fails without an end"
                self.take_back(set(names))
                if over:
                    self.end("reverted")
            case AskMore(asks=asks):
                members = [person.member for person in self.people if person.connected]
                for ask in asks:
                    found = second(
                        ask.kind,
                        ask.key,
                        members,
                        inside=self.inside(),
                        parties=ask.parties,
                        seed=rollout.table.seed,
                    )
                    if found is not None:
                        self.pick({found.digest})
            case _:
                return
        self.send()

    # The model

    @property
    def rollout(self) -> Open:
        """The rollout that is open."""
        assert self.open is not None
        return self.open

    def waiting(self) -> Iterable[Key]:
        staged = (key for key in NAMES if self.head[key] != self.stable[key])
        return [key for key in staged if (key, self.head[key]) not in self.stopped]

    def side(self, person: Person) -> Side:
        return side_of(self.rollout.table if self.open is not None else None, "default", person.facts)

    def inside(self) -> set[str]:
        return {person.digest for person in self.people if self.side(person) is Side.CANDIDATE} | set(
            self.rollout.table.picks if self.open is not None else ()
        )

    def pick(self, digests: set[str]) -> None:
        rollout = self.rollout
        rollout.table = replace(rollout.table, picks=rollout.table.picks | digests)
        for person in self.people:
            if person.digest in digests:
                person.asked_at = self.now

    def renew(self) -> None:
        rollout = self.rollout
        members = [
            replace(person.member, asks=person.asks & rollout.names) for person in self.people if person.connected
        ]
        size = rollout.sizes[rollout.table.step]
        cohort = step_cohort(size, members, inside=self.inside(), seed=rollout.table.seed)
        rollout.table = replace(rollout.table, permille=max(rollout.table.permille, cohort.permille))
        self.pick({pick.member.digest for pick in cohort.picks})
        for person in self.people:
            person.losses = 0

    def meant_for(self, person: Person, key: Key) -> int:
        if self.open is not None and key in self.rollout.names and self.side(person) is Side.CANDIDATE:
            return self.head[key]
        return self.stable[key]

    def send(self) -> None:
        for person in self.people:
            for key in person.asks if person.connected else ():
                number = self.meant_for(person, key)
                if person.has.get(key) != number and person.refused.get(key) != number:
                    person.sent[key] = number
                    person.seen.add((key, number))
                elif person.has.get(key) == number:
                    person.sent.pop(key, None)

    def answer(self, person: Person) -> None:
        if person.silent or not person.connected:
            return
        for key, number in list(person.sent.items()):
            if person.kind in self.bad.get((key, number), ()):
                if (key, number) in self.deadly:
                    self.lose(person)
                    return
                person.refused[key] = number
            else:
                person.has[key] = number
                person.refused.pop(key, None)
            del person.sent[key]

    def lose(self, person: Person) -> None:
        if not person.connected:
            return
        person.connected = False
        if self.open is not None and any(
            number == self.head[key] != self.stable[key] and key in self.rollout.names
            for key, number in person.sent.items()
        ):
            person.losses += 1
        person.refused.clear()

    def facts(self, *, approved: bool) -> Facts:
        rollout = self.rollout
        names = frozenset(rollout.names)
        inside = self.inside()
        cohort, others = [], dict[tuple[str, Key], Others]()
        for person in self.people:
            asks = person.asks & names
            if person.digest in inside:
                answers = {key: self.said(person, key) for key in asks}
                since = max(rollout.evidence_at, person.asked_at or 0.0)
                cohort.append(
                    Asked(
                        person.facts.node_id,
                        person.kind,
                        person.facts.identity,
                        answers,
                        self.now - since,
                        person.connected,
                        person.losses,
                    )
                )
                continue
            for key in asks if person.connected else ():
                before = others.get((person.kind, key), Others(0))
                others[person.kind, key] = Others(before.clients + 1, before.identities | {person.facts.identity})
        wanted = {key: sum(key in person.asks and person.connected for person in self.people) for key in names}
        return Facts(self.now - rollout.evidence_at, names, wanted, tuple(cohort), others, approved=approved)

    def said(self, person: Person, key: Key) -> Answer:
        number = self.head[key]
        if person.has.get(key) == number:
            return Answer.TAKEN
        if person.refused.get(key) == number:
            return Answer.REFUSED
        return Answer.SENT if person.sent.get(key) == number else Answer.UNSENT

    def take_back(self, names: set[Key]) -> None:
        for key in names:
            content = (key, self.head[key])
            self.stopped.add(content)
            # Nobody but those who were asked ever saw it, and of a kind that refuses it those are few: of each kind one
            # for each name, and two for their word (R8).
            saw = {person.digest for person in self.people if content in person.seen}
            assert saw <= self.inside() | self.rollout.ever_inside
            for kind in KINDS if self.rollout.rules.pilot else ():
                alike = (person for person in self.people if person.kind == kind)
                assert sum(person.refused.get(key) == content[1] for person in alike) <= len(NAMES) + 2
        self.rollout.names -= names

    def end(self, how: str) -> None:
        event(how)
        self.open = None
        for person in self.people:
            person.losses = 0
        self.send()

    def check_promotable(self, facts: Facts) -> None:
        """Nothing is promoted by itself that a kind refuses, or that too few of those that were asked took (R8 to R10).
        Counted anew, by clients alone.
        """
        rollout = self.rollout
        exposed = [asked for asked in facts.cohort if asked.answers]
        took = sum(Answer.TAKEN in asked.answers.values() for asked in exposed)
        assert took or (not exposed and rollout.rules.unexposed is Unexposed.PROMOTE), "nobody took it"
        for key in facts.names:
            for kind in KINDS:
                asked_of = [asked for asked in facts.cohort if asked.kind == kind and key in asked.answers]
                said = [asked.answers[key] for asked in asked_of]
                lost = any(asked.losses and not asked.answers[key].final for asked in asked_of)
                assert not lost or Answer.TAKEN in said, f"R9: {kind} was lost with {key}, and nobody of it took it"
                if Answer.REFUSED in said:
                    assert said.count(Answer.TAKEN) >= 2, f"{kind} refuses {key}, and {said} is what was said"
        if not rollout.rules.pilot:
            # Who took it before its stream ended has acknowledged it all the same.
            here = [asked for asked in exposed if asked.connected or asked.losses]
            silent = sum(not all(answer.final for answer in asked.answers.values()) for asked in here)
            assert silent * 10 <= len(here), "R10: silence is not consent"

    # What must hold

    @invariant()
    def stable_is_what_was_stable_or_promoted(self) -> None:
        if hasattr(self, "stable"):
            assert all((key, number) in self.promoted for key, number in self.stable.items())

    @invariant()
    def the_cohort_only_grows(self) -> None:
        if getattr(self, "open", None) is not None:
            inside = self.inside()
            assert self.rollout.ever_inside <= inside, "nobody is moved back"
            self.rollout.ever_inside |= inside

    @invariant()
    def nobody_else_has_seen_what_is_not_promoted(self) -> None:
        if getattr(self, "open", None) is None:
            return
        for key in self.rollout.names:
            content = (key, self.head[key])
            if content not in self.promoted:
                saw = {person.digest for person in self.people if content in person.seen}
                assert saw <= self.inside()

    def teardown(self) -> None:
        """As time goes by, every rollout ends or waits for a person, whoever is silent or gone."""
        if getattr(self, "open", None) is None:
            return
        for _ in range(60):
            if self.open is None:
                return
            for person in self.people:
                self.answer(person)
            self.worker_looks(approved=True)
            self.now += 5.0
        if self.open is not None:
            assert self.rollout.waits or self.rollout.rules.unexposed is Unexposed.WAIT, "it neither ends nor waits"


TestRollouts = Rollouts.TestCase
TestRollouts.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
