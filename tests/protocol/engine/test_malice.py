"""Four clients, one of them malicious: it refuses everything, names victims, answers what it was never sent and flaps.

The world with it and its twin without it are told the same; what the three others are sent must be the same to the
letter (reliability N1 to N8, threat 14), and it alone is never reason enough to take anything from the fleet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adsserver.engine.events import DeltaRequest, Fact, Nack, Rejected, Respond, SotwRequest, Variant
from adsserver.engine.session import Session
from controlplane.incidents.attribution import blame
from controlplane.incidents.verdict import Answers, ClientKey, Outcome, judge
from tests.protocol.engine.world import World, session_of
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ROUTE, SECRET, ResourceType, by_word

KINDS = (CLUSTER, ROUTE, SECRET)
NAMES = ("a", "b", "c")
HONEST: Mapping[str, Variant] = {"one": Variant.SOTW, "two": Variant.DELTA, "three": Variant.SOTW}
MALLORY = "mallory"

words = st.sampled_from([kind.word for kind in KINDS])
names = st.sampled_from(NAMES)
versions = st.integers(1, 4)


def ask(
    variant: Variant, kind: ResourceType, *, nonce: str = "", nack: Nack | None = None
) -> SotwRequest | DeltaRequest:
    """Everything of a type, by name."""
    if variant is Variant.SOTW:
        return SotwRequest(kind, NAMES, nonce, nack=nack)
    return DeltaRequest(kind, () if nonce else NAMES, nonce=nonce, nack=nack)


@dataclass
class Twin:
    """One of the two worlds with its honest clients, and everything each of them was sent."""

    world: World
    sessions: dict[str, Session] = field(default_factory=dict)
    sent: dict[str, list[Respond]] = field(default_factory=dict)

    def start(self) -> None:
        for name, variant in HONEST.items():
            self.sessions[name], self.sent[name] = session_of(self.world, variant), []
            for kind in KINDS:
                self.sessions[name].receive(ask(variant, kind), 0.0)

    def publish(self, now: float) -> None:
        publication = self.world.publish()
        for session in self.sessions.values():
            session.offer(publication, now)

    def read(self, name: str, now: float, poison: frozenset[str]) -> None:
        """Read and answer until nothing more comes; what is in `poison` is refused, with its name."""
        session, variant = self.sessions[name], HONEST[name]
        while (response := session.compose(now)) is not None:
            self.sent[name].append(response)
            bad = [m.name for m in response.resources if m.content.version in poison]
            nack = Nack(13, f"Error adding/updating cluster(s) {bad[0]}: no") if bad else None
            session.receive(ask(variant, response.kind, nonce=response.nonce, nack=nack), now)


class Malice(RuleBasedStateMachine):
    """Operators, honest clients and Mallory take turns."""

    @initialize(served=st.lists(st.tuples(words, names, versions), max_size=6), variant=st.sampled_from(Variant))
    def start(self, served: list[tuple[str, str, int]], variant: Variant) -> None:
        self.now = 0.0
        self.variant = variant
        self.poison: frozenset[str] = frozenset()
        self.twins = (Twin(World()), Twin(World()))
        for word, name, version in served:
            self.edit(word, name, version, proven=False)
        for twin in self.twins:
            twin.start()
        self.facts: list[Fact] = []
        self.received: set[tuple[str, str, str]] = set()
        self.flap()

    @rule(word=words, name=names, version=versions, proven=st.booleans())
    def edit(self, word: str, name: str, version: int, proven: bool) -> None:
        for twin in self.twins:
            content, good = f"{word}-{name}-{version}", f"{word}-{name}-0" if proven else ""
            twin.world.serve(by_word[word], name, content, proven=good)

    @rule()
    def publish(self) -> None:
        for twin in self.twins:
            twin.publish(self.now)
        self.mallory.offer(self.twins[0].world.publication or self.twins[0].world.publish(), self.now)

    @rule(word=words, name=names, version=versions)
    def honest_dislike(self, word: str, name: str, version: int) -> None:
        self.poison |= {f"{word}-{name}-{version}"}

    @rule(name=st.sampled_from(sorted(HONEST)))
    def honest_read(self, name: str) -> None:
        for twin in self.twins:
            twin.read(name, self.now, self.poison)

    @rule(seconds=st.sampled_from([0.5, 31.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(victim=names)
    def refuse_everything(self, victim: str) -> None:
        """Also what is fine, in words that blame somebody else."""
        text = f"Error adding/updating cluster(s) {victim}: no, victim: no"
        for _ in range(40):
            response = self.mallory.compose(self.now)
            if response is None:
                return
            self.received |= {(response.kind.word, m.name, m.content.version) for m in response.resources}
            self.say(ask(self.variant, response.kind, nonce=response.nonce, nack=Nack(13, text)))
        raise AssertionError("a loop: refused content is sent again and again")

    @rule(word=words, nonce=st.sampled_from(["0", "1", "7", "999", "x"]), text=st.text(max_size=20))
    def refuse_what_was_never_sent(self, word: str, nonce: str, text: str) -> None:
        self.say(ask(self.variant, by_word[word], nonce=nonce, nack=Nack(3, text)))

    @rule()
    def flap(self) -> None:
        self.mallory = session_of(self.twins[0].world, self.variant)
        for kind in KINDS:
            self.say(ask(self.variant, kind))

    def say(self, request: SotwRequest | DeltaRequest) -> None:
        self.facts.extend(self.mallory.receive(request, self.now))

    @invariant()
    def others_are_sent_the_same(self) -> None:
        if not hasattr(self, "mallory"):
            return
        for name in HONEST:
            self.honest_read(name)
            with_it, without_it = (twin.sent[name] for twin in self.twins)
            assert with_it == without_it, "N4, N5: what one client says changes what another gets"

    @invariant()
    def it_is_blamed_on_nobody_else_and_decides_nothing(self) -> None:
        everybody: dict[str, ClientKey] = {name: (f"spiffe://{name}", name) for name in (*HONEST, MALLORY)}
        for fact in getattr(self, "facts", ()):
            if not isinstance(fact, Rejected):
                continue
            found = blame(
                type_url=fact.kind.url,
                text=fact.nack.message,
                resources=[(m.name, m.content.version) for m in fact.resources],
                suspects=[(m.name, m.content.version) for m in fact.suspects],
                evidence=fact.evidence,
            )
            blamed = {(fact.kind.word, *content) for content in (*found.culprits, *found.suspects)}
            assert blamed <= self.received, "N2: never blame what was not received"
            for served in (everybody, {}):
                answers = Answers(1, {MALLORY: everybody[MALLORY]}, {}, served, proven=False, age_s=1e9)
                assert judge(answers).outcome is not Outcome.FAIL, "N4: one client rolls nobody back"
        self.facts = []

    @invariant()
    def the_ledger_is_bounded(self) -> None:
        if hasattr(self, "mallory"):
            streams = self.mallory._streams.values()
            assert all(len(stream.ledger.outstanding) <= Limits().unanswered_responses for stream in streams), "N8"


TestMalice = Malice.TestCase
TestMalice.settings = settings(
    max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
