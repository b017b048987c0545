"""Random worlds, watches of names and collections, delays, lost streams, refusals and access changes: client and
server always converge.

`Pair` checks after every event that watchers and cache agree and, at rest, that what they show is what `decide` says.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.protocol.engine.world import World
from tests.protocol.xdsclient.pair import Pair
from xdsclient.engine.events import Variant
from xdsclient.engine.values import ServerFeature
from xdscore.access import Effect
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, by_word

KINDS = (LISTENER, ROUTE, CLUSTER, ENDPOINT)
words = st.sampled_from([kind.word for kind in KINDS])
GLOB = "xdstp://x/t/d/*"
names = st.sampled_from(["a", "b", "c", "xdstp://x/t/d/a", "xdstp://x/t/d/b"])
collections = st.sampled_from(["*", GLOB])
versions = st.integers(1, 3)
features = st.frozensets(
    st.sampled_from([ServerFeature.FAIL_ON_DATA_ERRORS, ServerFeature.RESOURCE_TIMER_IS_TRANSIENT_ERROR])
)


class Both(RuleBasedStateMachine):
    """The pair under everything that may happen to it."""

    variant: Variant

    @initialize(features=features, served=st.lists(st.tuples(words, names, versions), max_size=8))
    def start(self, features: frozenset[ServerFeature], served: list[tuple[str, str, int]]) -> None:
        self.pair = Pair(World(), self.variant, features, KINDS)
        for word, name, version in served:
            self.edit(word, name, version)
        self.pair.publish()

    @rule(word=words, name=names, version=versions)
    def edit(self, word: str, name: str, version: int) -> None:
        self.pair.world.serve(by_word[word], name, f"{word}-{name}-{version}")

    @rule(word=words, name=names, how=st.sampled_from(["remove", "forget", "withhold"]))
    def lose(self, word: str, name: str, how: str) -> None:
        getattr(self.pair.world, how)(by_word[word], name)

    @rule(word=words, name=names, effect=st.sampled_from(Effect))
    def permit(self, word: str, name: str, effect: Effect) -> None:
        self.pair.world.rule(by_word[word], name, effect)

    @rule()
    def publish(self) -> None:
        self.pair.publish()

    @rule(word=words, name=names)
    def watch(self, word: str, name: str) -> None:
        self.pair.watch(by_word[word], name)

    @rule(word=words, name=collections)
    def watch_collection(self, word: str, name: str) -> None:
        kind = by_word[word]
        self.pair.watch(kind, name if kind.wildcard else GLOB)

    @rule(word=words, effect=st.sampled_from(Effect))
    def permit_all(self, word: str, effect: Effect) -> None:
        """A rule for the collection itself, whose pattern fits every member."""
        self.pair.world.rule(by_word[word], GLOB, effect)

    @rule(which=st.integers(0, 20))
    def unwatch(self, which: int) -> None:
        self.pair.unwatch(which)

    @rule()
    def write_request(self) -> None:
        self.pair.write_request()

    @rule()
    def read_request(self) -> None:
        self.pair.read_request()

    @rule()
    def write_response(self) -> None:
        self.pair.write_response()

    @rule()
    def read_response(self) -> None:
        self.pair.read_response()

    @rule(seconds=st.sampled_from([0.5, 1.0, 5.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.pair.wait(seconds)

    @rule()
    def break_stream(self) -> None:
        self.pair.break_stream()

    @rule(reachable=st.booleans())
    def reach(self, reachable: bool) -> None:
        self.pair.reachable = reachable

    @rule()
    def settle(self) -> None:
        self.pair.settle()
        self.pair.check_converged()

    def teardown(self) -> None:
        if hasattr(self, "pair"):
            self.settle()


class BothWithRefusals(Both):
    """The same with content the client refuses."""

    @rule(word=words, name=names, version=versions)
    def dislike(self, word: str, name: str, version: int) -> None:
        self.pair.poison.add(f"{word}-{name}-{version}")


class SotwPair(Both):
    variant = Variant.SOTW


class DeltaPair(Both):
    variant = Variant.DELTA


class SotwRefusals(BothWithRefusals):
    variant = Variant.SOTW


class DeltaRefusals(BothWithRefusals):
    variant = Variant.DELTA


PROFILE = settings(max_examples=60, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck))

TestSotwPair = SotwPair.TestCase
TestSotwPair.settings = PROFILE
TestDeltaPair = DeltaPair.TestCase
TestDeltaPair.settings = PROFILE
TestSotwRefusals = SotwRefusals.TestCase
TestSotwRefusals.settings = PROFILE
TestDeltaRefusals = DeltaRefusals.TestCase
TestDeltaRefusals.settings = PROFILE
