"""The engine against a model of A88: one resource, everything that may happen to it, in any order.

The model is written from the text of A88 and TP3 and shares nothing with the engine: plain variables, one `if` for each
sentence. After every step the cache entry and what the watch believes must be what the model says.
"""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.unit.xdsclient.driver import LOST, Driver, error, invalid, valid
from xdsclient.engine.events import Ambient, ChannelFailed, Deliver, Variant
from xdsclient.engine.values import CacheState, Resource, ServerFeature
from xdscore.resource_types import CLUSTER, ROUTE, ResourceType

NOT_FOUND, INVALID_ARGUMENT, UNAVAILABLE = 5, 3, 14


@dataclass
class Model:
    """What A88 says is true of one watched resource."""

    fails_on_data_errors: bool
    timer_is_transient: bool
    deletes_by_absence: bool
    state: str = "REQUESTED"
    cached: str = ""
    error: int = 0
    # A problem of the stream, newer than the entry's error.
    outage: bool = False
    timer_s: float | None = None

    def data_error(self, state: str, code: int) -> None:
        """Handling Data Errors."""
        if self.fails_on_data_errors:
            self.cached = ""
        self.fail(state, code)

    def fail(self, state: str, code: int) -> None:
        self.state, self.error, self.outage, self.timer_s = state, code, False, None

    def receive_error(self, code: int) -> None:
        """Support for Errors Provided by the xDS server, steps 1 to 3."""
        if code in {NOT_FOUND, 7} and self.fails_on_data_errors:
            self.cached = ""
        self.fail("RECEIVED_ERROR", code)

    def receive(self, version: str) -> None:
        self.state, self.cached, self.error, self.outage, self.timer_s = "ACKED", version, 0, False, None

    def nothing_said(self, full_state: bool) -> None:
        """A response without the name: in LDS and CDS a deletion, unless an error is remembered (TP3)."""
        self.outage = False
        if full_state and self.cached and self.state != "RECEIVED_ERROR":
            self.data_error("DOES_NOT_EXIST", NOT_FOUND)

    def subscribe(self) -> None:
        """The timer runs for what is asked for and not known."""
        if self.state == "REQUESTED" and self.timer_s is None:
            self.timer_s = 30.0 if self.timer_is_transient else 15.0

    def wait(self, seconds: float) -> None:
        if self.timer_s is None:
            return
        self.timer_s -= seconds
        if self.timer_s <= 0:
            if self.timer_is_transient:
                self.fail("TIMEOUT", UNAVAILABLE)
            else:
                self.fail("DOES_NOT_EXIST", NOT_FOUND)

    @property
    def news(self) -> str:
        """What `on_resource_changed` said last, if it had to say anything: the resource, or the error in its place."""
        return self.cached or self.trouble

    @property
    def ambient(self) -> str:
        return self.trouble if self.cached else ""

    @property
    def trouble(self) -> str:
        return f"!{UNAVAILABLE}" if self.outage else f"!{self.error}" if self.error else ""


class OneResource(RuleBasedStateMachine):
    """Every rule happens to the engine and to the model."""

    variant: Variant

    @initialize(
        features=st.frozensets(
            st.sampled_from([ServerFeature.FAIL_ON_DATA_ERRORS, ServerFeature.RESOURCE_TIMER_IS_TRANSIENT_ERROR])
        ),
        kind=st.sampled_from([CLUSTER, ROUTE]),
    )
    def start(self, features: frozenset[ServerFeature], kind: ResourceType) -> None:
        self.kind = kind
        self.driver = Driver(*features, variant=self.variant)
        self.model = Model(
            ServerFeature.FAIL_ON_DATA_ERRORS in features,
            ServerFeature.RESOURCE_TIMER_IS_TRANSIENT_ERROR in features,
            kind.full_state and self.variant is Variant.SOTW,
        )
        self.driver.watch(kind, "a")
        self.driver.open()
        self.model.subscribe()
        self.is_open, self.answered = True, False
        self.news = ""
        self.ambient = ""
        self.heard = 0

    # The stream.

    @precondition(lambda self: not self.is_open)
    @rule()
    def connects(self) -> None:
        self.driver.open()
        self.is_open, self.answered = True, False
        self.model.subscribe()

    @precondition(lambda self: self.is_open)
    @rule()
    def loses_the_stream(self) -> None:
        self.driver.close()
        # A57: without a response it is a failure; either way the timer stops.
        self.model.outage = self.model.outage or not self.answered
        self.model.timer_s = None
        self.is_open = False

    @precondition(lambda self: not self.is_open)
    @rule()
    def cannot_connect(self) -> None:
        self.driver.do(ChannelFailed(LOST))
        self.model.outage = True

    @precondition(lambda self: self.is_open)
    @rule()
    def channel_fails(self) -> None:
        self.driver.do(ChannelFailed(LOST))
        self.model.outage = True

    # Responses.

    @precondition(lambda self: self.is_open)
    @rule(version=st.sampled_from(["v1", "v2"]))
    def sends(self, version: str) -> None:
        self.answered = True
        self.driver.respond(self.kind, valid("a", version))
        self.model.receive(version)

    @precondition(lambda self: self.is_open)
    @rule()
    def sends_what_is_invalid(self) -> None:
        self.answered = True
        self.driver.respond(self.kind, invalid("a"))
        self.model.data_error("NACKED", INVALID_ARGUMENT)

    @precondition(lambda self: self.is_open)
    @rule(code=st.sampled_from([2, 5, 7, 8, 13, 14, 99]))
    def reports_an_error(self, code: int) -> None:
        self.answered = True
        self.driver.respond(self.kind, errors=[error("a", code)])
        self.model.receive_error(code)

    @precondition(lambda self: self.is_open)
    @rule()
    def sends_something_else(self) -> None:
        self.answered = True
        self.driver.respond(self.kind, valid("b"), errors=[error("c", 5)])
        self.model.nothing_said(self.model.deletes_by_absence)

    @precondition(lambda self: self.is_open and self.variant is Variant.DELTA)
    @rule()
    def removes(self) -> None:
        """A removal is a deletion whatever the type, and an answer to what was never there (TP3, Abstract)."""
        self.answered = True
        self.driver.respond(self.kind, removed=["a"])
        self.model.data_error("DOES_NOT_EXIST", NOT_FOUND)

    @rule(seconds=st.sampled_from([1.0, 14.0, 16.0]))
    def time_passes(self, seconds: float) -> None:
        self.driver.wait(seconds)
        self.model.wait(seconds)

    # What must hold.

    def listen(self) -> None:
        """What the watch believes, from the calls alone."""
        for effect in self.driver.effects[self.heard :]:
            if isinstance(effect, Deliver):
                self.ambient = ""
                self.news = str(effect.news.value) if isinstance(effect.news, Resource) else f"!{effect.news.code}"
            elif isinstance(effect, Ambient):
                self.ambient = "" if effect.error.ok else f"!{effect.error.code}"
        self.heard = len(self.driver.effects)

    @invariant()
    def entry_is_what_a88_says(self) -> None:
        if not hasattr(self, "driver"):
            return
        entry, model = self.driver.entry(self.kind, "a"), self.model
        assert entry.state is CacheState[model.state]
        assert entry.error.code == model.error
        assert (entry.resource.value if isinstance(entry.resource, Resource) else "") == model.cached

    @invariant()
    def watch_believes_what_a88_says(self) -> None:
        if not hasattr(self, "driver"):
            return
        self.listen()
        # Where nothing is known again (an outage that ended), what was said last stands: there is no call to unsay it.
        if self.model.news:
            assert self.news == self.model.news
        assert self.ambient == self.model.ambient

    @invariant()
    def timer_runs_as_a57_says(self) -> None:
        if not hasattr(self, "driver"):
            return
        left = self.driver.engine.deadline() - self.driver.now
        assert (left if left != float("inf") else None) == self.model.timer_s


class OneResourceSotw(OneResource):
    variant = Variant.SOTW


class OneResourceDelta(OneResource):
    variant = Variant.DELTA


PROFILE = settings(max_examples=60, stateful_step_count=30, deadline=None)

TestOneResourceSotw = OneResourceSotw.TestCase
TestOneResourceSotw.settings = PROFILE
TestOneResourceDelta = OneResourceDelta.TestCase
TestOneResourceDelta.settings = PROFILE
