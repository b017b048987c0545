"""Polled subscriptions, step by step and at random (protocol.md section L): what a client is told converges, whoever
loses answers, is started anew or refuses; and nobody is blamed who refused nothing.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adsserver.engine.events import Acknowledged, Fact, Nack, Rejected, SotwRequest, Variant, Violated
from adsserver.engine.poll import WORDLESS, Answer, Poll
from tests.protocol.engine.world import CLIENT, GRPC_CLIENT, SETTINGS, World, session_of
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import CLUSTER, ENDPOINT, ResourceType
from xdscore.snapshot import Served

each = pytest.mark.parametrize("kind", [CLUSTER, ENDPOINT], ids=lambda kind: kind.word)


@dataclass
class Poller:
    """A client, and what the shell around `Poll` does for it."""

    world: World
    kind: ResourceType
    names: tuple[str, ...]
    client: ClientFacts = CLIENT
    version: str = ""
    has: dict[str, str] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    poll: Poll | None = None
    begun: int = 0
    now: float = 100.0

    def begin(self) -> Poll:
        self.begun += 1
        poll = Poll(self.kind, self.client, session_of(self.world, Variant.SOTW, SETTINGS, self.client))
        self.poll = poll
        return poll

    def ask(self, version: str | None = None, nack: Nack | None = None, nonce: str = "") -> Answer:
        self.now += 1.0
        said = self.version if version is None else version
        request = SotwRequest(self.kind, self.names, nonce, said, nack)
        poll = self.poll or self.begin()
        if self.world.publication is not None:
            poll.session.offer(self.world.publication, self.now)
        if not poll.follows(request):
            poll = self.begin()
        self.facts += poll.ask(request, self.now)
        for _ in range(100):
            if poll.compose(self.now) is None and (poll.repeats or poll.session.wake_at() > self.now):
                break
        self.facts += poll.conclude(request, self.now)
        return poll.answer()

    def take(self, answer: Answer) -> None:
        if not answer.unchanged:
            self.version = answer.version
            told = {member.name: member.content.version for member in answer.resources}
            # In a type that comes in parts absence means nothing; an answer is whole all the same.
            self.has = told

    def read(self, answer: Answer) -> None:
        assert self.poll is not None
        self.poll.received(answer.nonce)

    def rejections(self) -> list[Rejected]:
        return [fact for fact in self.facts if isinstance(fact, Rejected)]


def started(kind: ResourceType, client: ClientFacts = CLIENT) -> Poller:
    world = World()
    world.serve(kind, "a", "a1")
    world.serve(kind, "b", "b1")
    world.publish()
    poller = Poller(world, kind, ("a", "b", "c"), client)
    poller.take(poller.ask())
    assert poller.ask().unchanged
    return poller


def change(poller: Poller, **versions: str) -> None:
    for name, version in versions.items():
        poller.world.serve(poller.kind, name, version)
    poller.world.publish()


@each
def test_answer__after_a_change__is_whole_with_its_errors(kind: ResourceType) -> None:
    poller = started(kind)
    change(poller, b="b2")

    answer = poller.ask()

    assert [(member.name, member.content.version) for member in answer.resources] == [("a", "a1"), ("b", "b2")]
    assert [error.name for error in answer.errors] == ["c"]


@each
def test_answer__was_lost__comes_again_as_it_was(kind: ResourceType) -> None:
    poller = started(kind)
    change(poller, b="b2")

    first, second = poller.ask(), poller.ask()

    assert first == second
    assert poller.rejections() == []


@each
def test_answer__read_twice_and_not_taken__is_refused_without_a_word(kind: ResourceType) -> None:
    poller = started(kind)
    change(poller, b="b2")

    for _ in range(2):
        poller.read(poller.ask())
    after = poller.ask()

    (fact,) = poller.rejections()
    assert fact.nack == WORDLESS
    assert [member.name for member in fact.suspects] == ["b"]
    assert after.unchanged
    change(poller, b="b3")
    poller.take(poller.ask())
    assert poller.has == {"a": "a1", "b": "b3"}


@each
def test_answer__read_once__refuses_nothing(kind: ResourceType) -> None:
    poller = started(kind)
    change(poller, b="b2")

    poller.read(poller.ask())
    poller.ask()
    poller.ask()

    assert poller.rejections() == []


@each
def test_answer__refused_and_its_neighbour_changes__neighbour_comes_and_the_refused_does_not(
    kind: ResourceType,
) -> None:
    poller = started(kind)
    change(poller, b="b2")
    for _ in range(2):
        poller.read(poller.ask())
    poller.ask()

    change(poller, a="a2")
    answer = poller.ask()

    assert "b2" not in {member.content.version for member in answer.resources}
    assert "a2" in {member.content.version for member in answer.resources}


@each
def test_answer__not_taken_and_something_newer_is_there__newer_comes(kind: ResourceType) -> None:
    poller = started(kind)
    change(poller, b="b2")
    poller.ask()
    change(poller, b="b3")

    poller.take(poller.ask())

    assert poller.has == {"a": "a1", "b": "b3"}


@each
def test_version__is_what_another_server_gave__unchanged_and_acknowledged(kind: ResourceType) -> None:
    poller = started(kind)
    poller.facts.clear()
    poller.poll = None

    assert poller.ask().unchanged

    (fact,) = (fact for fact in poller.facts if isinstance(fact, Acknowledged))
    assert [member.name for member in fact.resources] == ["a", "b"]


@each
def test_version__of_nobody__begins_anew(kind: ResourceType) -> None:
    poller = started(kind)

    answer = poller.ask("what")

    assert (poller.begun, answer.unchanged, len(answer.resources)) == (2, False, 2)


@each
def test_version__never_said_by_who_is_no_envoy__refuses_nothing(kind: ResourceType) -> None:
    poller = Poller(World(), kind, ("a",), GRPC_CLIENT)
    change(poller, a="a1")

    for _ in range(6):
        poller.read(poller.ask(""))

    assert poller.rejections() == []


@each
def test_error__with_the_nonce_of_another_answer__says_nothing(kind: ResourceType) -> None:
    poller = started(kind)
    change(poller, b="b2")
    answer = poller.ask()

    poller.ask(nack=Nack(3, "b"), nonce="999")
    assert poller.rejections() == []
    poller.ask(nack=Nack(3, "b"), nonce=answer.nonce)
    assert len(poller.rejections()) == 1


def test_error__in_the_first_poll__is_a_violation() -> None:
    poller = Poller(World(), CLUSTER, ())
    change(poller, a="a1")

    poller.ask(nack=Nack(3, "a"), nonce="1")

    assert [fact.rule for fact in poller.facts if isinstance(fact, Violated)] == ["N1"]


def test_heal__of_who_may_have_dropped_it__is_sent_although_the_version_is_the_same() -> None:
    poller = started(ENDPOINT, GRPC_CLIENT)
    change(poller, b="b2")
    answer = poller.ask()

    healed = poller.ask(nack=Nack(3, "b: no"), nonce=answer.nonce)

    assert not healed.unchanged
    assert {member.content.version for member in healed.resources} == {"a1", "b1"}


NAMES = ("a", "b", "c")


class Polling(RuleBasedStateMachine):
    """A client that polls, loses answers, is started anew and refuses some contents, while somebody publishes."""

    kind = CLUSTER

    @initialize()
    def start(self) -> None:
        self.world = World()
        self.world.publish()
        self.client = Poller(self.world, self.kind, NAMES)
        self.refuses: set[str] = set()
        self.refused = False
        self.count = 0

    @rule(name=st.sampled_from(NAMES), bad=st.booleans())
    def publishes(self, name: str, bad: bool) -> None:
        self.count += 1
        version = f"v{self.count}"
        if bad:
            self.refuses.add(version)
        self.world.serve(self.kind, name, version)
        self.world.publish()

    @rule(name=st.sampled_from(NAMES))
    def removes(self, name: str) -> None:
        self.world.remove(self.kind, name)
        self.world.publish()

    @rule(lost=st.booleans())
    def polls(self, lost: bool) -> None:
        self._poll(lost=lost)

    @rule()
    def starts_anew(self) -> None:
        self.client.version, self.client.has = "", {}

    @rule()
    def server_forgets(self) -> None:
        self.client.poll = None

    def _poll(self, *, lost: bool = False) -> None:
        answer = self.client.ask()
        if lost:
            return
        self.client.read(answer)
        if answer.unchanged:
            return
        bad = {member.content.version for member in answer.resources} & self.refuses
        if bad:
            self.refused = True
            return
        self.client.take(answer)

    @invariant()
    def blames_only_who_refused(self) -> None:
        for fact in self.client.rejections():
            assert self.refused
            assert fact.nack == WORDLESS

    @rule()
    def comes_to_rest(self) -> None:
        """Once nothing is lost and nothing changes, the client has every good content."""
        for _ in range(80):
            self._poll()
        for (_, name), entry in self.world.entries.items():
            version = entry.content.version if isinstance(entry, Served) else ""
            if version and version not in self.refuses:
                assert self.client.has.get(name) == version, (name, version, self.client.has)


class PollingInParts(Polling):
    kind = ENDPOINT


TestPolling = Polling.TestCase
TestPolling.settings = hypothesis_settings(max_examples=60, stateful_step_count=25, deadline=None)
TestPollingInParts = PollingInParts.TestCase
TestPollingInParts.settings = hypothesis_settings(max_examples=60, stateful_step_count=25, deadline=None)
