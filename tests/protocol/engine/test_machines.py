"""Streams under random worlds, subscriptions, delays, rejections and reconnects.

The client checks every response as it is written and, whenever the stream comes to rest, that it holds what `decide`
says: the invariants I1 to I10, T1 to T10 and N2, N3, N5; and that what it holds for a limited time is renewed in time,
and nothing else is (G1 to G3). Rollouts open, go on and end meanwhile, so that it changes
sides (rollouts.md R3).
"""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from adsserver.engine.events import Variant
from adsserver.engine.session import EngineSettings
from tests.protocol.engine.held import check_holdings, check_holdings_at_rest
from tests.protocol.engine.model import ModelClient
from tests.protocol.engine.profile import EXAMPLES
from tests.protocol.engine.world import CLIENT, GRPC_CLIENT, URL, World
from xdscore.access import Effect
from xdscore.client_kinds import ClientKind
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType, by_word

KINDS = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
ENVOY, GRPC = CLIENT.kind, GRPC_CLIENT.kind
MEMBERS = ("xdstp://x/t/d/c", "xdstp://x/t/d/d")
NAMES = ("a", "b", *MEMBERS)

words = st.sampled_from([kind.word for kind in KINDS])
names = st.sampled_from(NAMES)
# Some of them have a ttl.
versions = st.sampled_from(["v1", "v2", "v3", "v4", "v2-ttl90000", "v3-ttl30000"])
name_sets = st.frozensets(st.sampled_from([*NAMES, "xdstp://x/t/d/*"]))


class Stream(RuleBasedStateMachine):
    """One client and one server with the network between them."""

    variant: Variant

    @initialize(
        served=st.lists(st.tuples(words, names, versions), max_size=8),
        known=st.lists(st.tuples(words, names), max_size=3),
        before_tp3=st.booleans(),
        legacy=st.booleans(),
        drops=st.booleans(),
        at_once=st.sampled_from([1, 2, 1_000]),
    )
    def start(
        self,
        served: list[tuple[str, str, str]],
        known: list[tuple[str, str]],
        before_tp3: bool,
        legacy: bool,
        drops: bool,
        at_once: int,
    ) -> None:
        self.world = World()
        for word, name, version in served:
            self.world.serve(by_word[word], name, f"{word}-{name}-{version}")
        for word, name in known:
            self.world.remove(by_word[word], name)
        # With one name at a time there is something in the midst of which anything may happen.
        limits = Limits(names_per_step=at_once, errors_per_response=at_once)
        settings = EngineSettings(public_url=URL, limits=limits)
        self.client = ModelClient(self.world, self.variant, KINDS, drops_refused=drops, settings=settings)
        self.client.reads_errors, self.client.legacy_wildcard = not before_tp3, legacy

    @rule(word=words, wanted=name_sets, star=st.booleans())
    def subscribe(self, word: str, wanted: frozenset[str], star: bool) -> None:
        kind = by_word[word]
        self.client.want(kind, wanted, wildcard=star and kind.wildcard)

    @rule(word=words)
    def repeat(self, word: str) -> None:
        self.client.repeat(by_word[word])

    @rule(word=words, name=names, version=versions, proven=st.booleans())
    def edit(self, word: str, name: str, version: str, proven: bool) -> None:
        good = f"{word}-{name}-v0" if proven else ""
        self.world.serve(by_word[word], name, f"{word}-{name}-{version}", proven=good)

    @rule(word=words, name=names, how=st.sampled_from(["remove", "forget", "withhold", "unread"]))
    def lose(self, word: str, name: str, how: str) -> None:
        lose: Callable[[ResourceType, str], None] = getattr(self.world, how)
        lose(by_word[word], name)

    @rule(word=words, name=names, version=versions, kinds=st.sampled_from([(), (ENVOY,), (GRPC,), (ENVOY, GRPC)]))
    def withhold_partly(self, word: str, name: str, version: str, kinds: tuple[ClientKind, ...]) -> None:
        self.world.withhold_partly(by_word[word], name, f"{word}-{name}-{version}", *kinds)

    @rule(word=words, name=names, effect=st.sampled_from(Effect))
    def permit(self, word: str, name: str, effect: Effect) -> None:
        self.world.rule(by_word[word], name, effect)

    @rule(word=words, name=names, version=versions, removed=st.booleans())
    def stage(self, word: str, name: str, version: str, removed: bool) -> None:
        if removed:
            self.world.stage_removal(by_word[word], name)
        else:
            self.world.stage(by_word[word], name, f"{word}-{name}-{version}")

    @rule(there=st.booleans())
    def roll(self, there: bool) -> None:
        self.world.roll(permille=1000 if there else 0)

    @rule(promoted=st.booleans())
    def end_rollout(self, promoted: bool) -> None:
        if promoted:
            self.world.promote()
        else:
            self.world.take_back()

    @rule()
    def publish(self) -> None:
        self.client.publish()

    @rule(word=words, name=names, version=versions)
    def dislike(self, word: str, name: str, version: str) -> None:
        self.client.dislike(f"{word}-{name}-{version}")

    @rule(word=words, name=names, change=st.permutations(["v1", "v2"]) | st.permutations(["v1-ttl30000", "v2"]))
    def refuse_and_take_back(self, word: str, name: str, change: list[str]) -> None:
        good, bad = (f"{word}-{name}-{version}" for version in change)
        self.client.dislike(bad)
        for version in (good, bad, good):
            self.world.serve(by_word[word], name, version)
            self.rest()

    @rule(word=words, name=names, had=st.booleans(), how=st.sampled_from(["remove", "forget", "withhold", "kind"]))
    def refuse_and_lose(self, word: str, name: str, had: bool, how: str) -> None:
        """What is refused, at first sight or in place of what it had, is gone or quarantined, and may come again."""
        good, bad = f"{word}-{name}-v1", f"{word}-{name}-v2"
        self.client.dislike(bad)
        for version in (good, bad) if had else (bad,):
            self.world.serve(by_word[word], name, version)
            self.rest()
        if how == "kind":
            self.world.withhold_partly(by_word[word], name, bad, self.client.client.kind)
        else:
            self.lose(word, name, how)
        self.rest()
        self.world.serve(by_word[word], name, bad)
        self.rest()

    @rule(culprits=st.booleans(), partly=st.booleans())
    def temper(self, culprits: bool, partly: bool) -> None:
        self.client.names_culprits, self.client.uses_valid_part = culprits, partly

    @rule()
    def write(self) -> None:
        self.client.write()

    @precondition(lambda self: self.client.in_flight)
    @rule()
    def read(self) -> None:
        self.client.read()

    @rule(seconds=st.sampled_from([0.1, 1.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.client.now += seconds

    @rule(seconds=st.sampled_from([20.0, 200.0]))
    def live(self, seconds: float) -> None:
        self.rest()
        self.client.live(seconds)

    @rule()
    def reconnect(self) -> None:
        self.client.publish()
        self.client.reconnect()

    @rule()
    def rest(self) -> None:
        self.client.publish()
        self.client.rest()
        check_holdings_at_rest(self.client)

    @invariant()
    def holdings_are_true(self) -> None:
        if hasattr(self, "client"):
            check_holdings(self.client)

    @invariant()
    def bounded(self) -> None:
        if hasattr(self, "client"):
            assert len(self.client.in_flight) < 100

    def teardown(self) -> None:
        if hasattr(self, "client"):
            self.rest()


class SotwStream(Stream):
    variant = Variant.SOTW


class DeltaStream(Stream):
    variant = Variant.DELTA


# Some 10 s each on an idle machine. The suite's guard against hangs counts wall time, and would stop a busy one.
TestSotwStream = pytest.mark.timeout(600)(SotwStream.TestCase)
TestSotwStream.settings = EXAMPLES
TestDeltaStream = pytest.mark.timeout(600)(DeltaStream.TestCase)
TestDeltaStream.settings = EXAMPLES
