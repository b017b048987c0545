"""The life of the stream: when it is wanted, how long to wait for it, which server, and events that do not fit."""

import pytest

from tests.unit.xdsclient.driver import LOST, Driver, connected, valid
from xdsclient.engine.engine import Engine, EngineSettings
from xdsclient.engine.events import (
    ChannelFailed,
    Connect,
    Event,
    RequestWritten,
    Response,
    SotwRequest,
    StreamClosed,
    StreamOpened,
    Tick,
    Updates,
    Variant,
    Violated,
    WatchStarted,
    WatchStopped,
)
from xdsclient.engine.values import CacheState, ServerFeature, cache_state_label
from xdscore.resource_types import CLUSTER, ROUTE, RUNTIME


def test_watch__first__connects_and_last__disconnects() -> None:
    driver = Driver()

    first = driver.watch(CLUSTER, "a")
    second = driver.watch(CLUSTER, "a")
    driver.unwatch(first)
    assert driver.disconnects() == 0
    driver.unwatch(second)

    assert (driver.connects(), driver.disconnects()) == ([(0, 0.0)], 1)


def test_back_off__streams_without_a_response__grows_and_is_bounded() -> None:
    driver = Driver()
    driver.watch(CLUSTER, "a")

    for _ in range(13):
        driver.open()
        driver.close()

    waits = [after_s for _, after_s in driver.connects()]
    assert waits[:5] == [0.0, 1.0, 1.6, 2.56, 4.1]
    assert waits[-1] == 120.0


def test_back_off__after_a_response__starts_anew() -> None:
    driver = Driver()
    driver.watch(CLUSTER, "a")
    for _ in range(5):
        driver.open()
        driver.close()
    driver.open()
    driver.respond(CLUSTER, valid("a"))

    driver.close()

    assert driver.connects()[-1] == (0, 1.0)


def test_back_off__nobody_watched_meanwhile__is_not_forgotten() -> None:
    driver = Driver()
    watch = driver.watch(CLUSTER, "a")
    driver.open()
    driver.close()
    driver.unwatch(watch)

    driver.watch(CLUSTER, "a")

    assert driver.connects()[-1] == (0, 1.0)


def test_fallback__something_missing__tries_the_next_server_before_anybody_is_told() -> None:
    driver = Driver(servers=(frozenset(), frozenset()))
    watch = driver.watch(CLUSTER, "a")
    driver.open()

    driver.close()

    assert (driver.connects()[-1], driver.heard[watch]) == ((1, 0.0), [])


def test_fallback__every_server_fails__is_told_and_begins_with_the_first() -> None:
    driver = Driver(servers=(frozenset(), frozenset()))
    watch = driver.watch(CLUSTER, "a")
    for _ in range(2):
        driver.open()
        driver.close()

    assert (driver.connects()[-1], driver.heard[watch]) == ((0, 1.0), ["!UNAVAILABLE"])


def test_fallback__everything_cached__stays_with_the_first_server() -> None:
    driver = Driver(servers=(frozenset(), frozenset()))
    watch = driver.watch(CLUSTER, "a")
    driver.open()
    driver.respond(CLUSTER, valid("a"))
    driver.close()
    driver.open()

    driver.close()

    assert (driver.connects()[-1], driver.heard[watch]) == ((0, 1.0), ["v1", "~UNAVAILABLE"])


def test_fallback__features__are_those_of_the_server_that_speaks() -> None:
    driver = Driver(servers=(frozenset(), frozenset({ServerFeature.RESOURCE_TIMER_IS_TRANSIENT_ERROR})))
    driver.watch(CLUSTER, "a")
    driver.open()
    driver.close()
    driver.open()

    driver.wait(30)

    assert driver.label(CLUSTER, "a") == "timeout"


def test_attempt__channel_fails_before_there_is_a_stream__is_told_and_tried_again() -> None:
    driver = Driver()
    watch = driver.watch(CLUSTER, "a")

    for _ in range(3):
        driver.do(ChannelFailed(LOST))

    assert driver.connects() == [(0, 0.0), (0, 1.0), (0, 1.6), (0, 2.56)]
    assert driver.statuses[watch][-1].message == "the xDS server cannot be reached: UNAVAILABLE: connection refused"
    assert driver.connectivity() == [(0, False)]


def test_attempt__channel_fails_with_another_server_in_the_list__that_one_is_next() -> None:
    driver = Driver(servers=(frozenset(), frozenset()))
    watch = driver.watch(CLUSTER, "a")

    driver.do(ChannelFailed(LOST))

    assert (driver.connects()[-1], driver.heard[watch]) == ((1, 0.0), [])


def test_channel__fails_under_an_open_stream_with_another_server_in_the_list__nobody_is_told() -> None:
    """The stream's end leads to that server; with everything cached there is nothing to look for there."""
    driver = Driver(servers=(frozenset(), frozenset()))
    watch = driver.watch(CLUSTER, "a")
    driver.open()

    driver.do(ChannelFailed(LOST))
    assert (driver.heard[watch], driver.connectivity()) == ([], [(0, True), (0, False)])

    driver.respond(CLUSTER, valid("a"))
    driver.do(ChannelFailed(LOST))
    assert driver.heard[watch] == ["v1", "~UNAVAILABLE"]


def test_connectivity__from_first_stream_over_failure_to_first_response__is_what_a78_says() -> None:
    driver = Driver()
    driver.watch(CLUSTER, "a")
    driver.open()
    driver.close()
    driver.open()
    assert driver.connectivity() == [(0, True), (0, False)]

    driver.respond(CLUSTER, valid("a"))
    driver.close()

    assert driver.connectivity() == [(0, True), (0, False), (0, True)]


def test_updates__are_counted_per_response() -> None:
    driver, _ = connected(CLUSTER, cached=True)

    assert Updates(CLUSTER, 1, 0) in driver.effects


def test_watch__during_an_outage__is_told_of_it() -> None:
    driver = Driver()
    driver.watch(CLUSTER, "a")
    driver.open()
    driver.close()

    late = driver.watch(CLUSTER, "b")

    assert driver.heard[late] == ["!UNAVAILABLE"]


def test_timer__starts_when_the_request_is_written__not_when_it_is_composed() -> None:
    engine = Engine(EngineSettings(), [CLUSTER])
    engine.handle(WatchStarted(1, CLUSTER, "a"), 0.0)
    engine.handle(StreamOpened(), 0.0)
    request = engine.request()
    assert request is not None
    assert engine.deadline() == float("inf")

    engine.handle(RequestWritten(request), 5.0)

    assert engine.deadline() == 20.0


@pytest.mark.parametrize(
    "event",
    [
        WatchStopped(7),
        WatchStarted(1, CLUSTER, "again"),
        WatchStarted(2, RUNTIME, "a type the client does not have"),
        StreamOpened(),
        RequestWritten(SotwRequest(RUNTIME, ("a",))),
        RequestWritten(SotwRequest(CLUSTER, ("z",))),
        Tick(),
    ],
    ids=lambda event: type(event).__name__,
)
def test_engine__event_that_does_not_fit__changes_nothing(event: Event) -> None:
    engine = Engine(EngineSettings(), [CLUSTER, ROUTE])
    engine.handle(WatchStarted(1, CLUSTER, "a"), 0.0)
    engine.handle(StreamOpened(), 0.0)
    before = engine.entries()

    assert engine.handle(event, 1.0) == ()

    assert engine.entries() == before


@pytest.mark.parametrize(
    "event",
    [
        StreamOpened(),
        StreamClosed(LOST),
        ChannelFailed(LOST),
        RequestWritten(SotwRequest(CLUSTER, ("a",))),
        Response(CLUSTER.url, "1", "1", (valid("a"),)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_engine__nobody_watches__has_no_stream_to_speak_of(event: Event) -> None:
    engine = Engine(EngineSettings(), [CLUSTER])

    assert engine.handle(event, 0.0) == ()
    assert engine.request() is None


def test_response__of_a_type_the_client_does_not_have__is_a_violation_and_unanswered() -> None:
    engine = Engine(EngineSettings(variant=Variant.DELTA), [CLUSTER])
    assert engine.handle(WatchStarted(1, CLUSTER, "a"), 0.0) == (Connect(0, 0.0),)
    engine.handle(StreamOpened(), 0.0)
    engine.request()

    effects = engine.handle(Response(RUNTIME.url, "1", "1"), 0.0)

    assert [effect for effect in effects if isinstance(effect, Violated)] != []
    assert engine.request() is None


@pytest.mark.parametrize(
    ("state", "cached", "label"),
    [
        (CacheState.REQUESTED, False, "requested"),
        (CacheState.DOES_NOT_EXIST, False, "does_not_exist"),
        (CacheState.DOES_NOT_EXIST, True, "does_not_exist_but_cached"),
        (CacheState.ACKED, True, "acked"),
        (CacheState.NACKED, False, "nacked"),
        (CacheState.NACKED, True, "nacked_but_cached"),
        (CacheState.RECEIVED_ERROR, False, "received_error"),
        (CacheState.RECEIVED_ERROR, True, "received_error_but_cached"),
        (CacheState.TIMEOUT, False, "timeout"),
    ],
)
def test_cache_state_label__of_each_state__is_the_value_of_a78_and_a88(
    state: CacheState, cached: bool, label: str
) -> None:
    assert cache_state_label(state, cached=cached) == label


def test_cache_state__numbers__are_those_of_csds() -> None:
    """A88: those states map directly to the states in the CSDS ClientResourceStatus enum."""
    from envoy.admin.v3 import config_dump_shared_pb2  # noqa: PLC0415 - slow, and only here

    ours = {state.name: state.value for state in CacheState}

    assert ours == {name: number for name, number in config_dump_shared_pb2.ClientResourceStatus.items() if number}
