"""What a server sends with a ttl is used while it renews that, and no longer (protocol.md G1, G2)."""

from dataclasses import replace
from math import inf

import pytest

from tests.unit.xdsclient.driver import FAIL, Driver, connected, valid
from xdsclient.engine.events import Heartbeat, Response, StreamClosed, Tick, Variant
from xdsclient.engine.values import Status, StatusCode
from xdscore.resource_types import CLUSTER, ROUTE

BOTH = pytest.mark.parametrize("variant", list(Variant))


def with_ttl(variant: Variant) -> tuple[Driver, int]:
    """A client that has just taken a route that it may keep for 30 s."""
    driver, watch = connected(ROUTE, cached=False, variant=variant)
    driver.respond(ROUTE, replace(valid("a"), ttl_s=30.0))
    return driver, watch


def beat(driver: Driver, version: str = "v1", ttl_s: float = 30.0) -> object:
    driver.do(Response(ROUTE.url, version, "beat", (Heartbeat("a", version, ttl_s),)))
    (request,) = driver.flush()
    return request.nack


@BOTH
def test_ttl__nobody_renews_it__ends_the_use_of_the_resource_at_its_time(variant: Variant) -> None:
    driver, watch = with_ttl(variant)
    due = driver.engine.deadline()

    driver.now = 29.9
    driver.do(Tick())
    before = list(driver.heard[watch])
    driver.now = due
    driver.do(Tick())

    assert due == 30.0
    assert (before, driver.heard[watch]) == (["v1"], ["v1", "!NOT_FOUND"])
    assert "its ttl ran out" in driver.statuses[watch][-1].message
    assert driver.engine.deadline() == inf


@BOTH
def test_ttl__stream_is_gone__runs_on(variant: Variant) -> None:
    driver, watch = with_ttl(variant)
    driver.do(StreamClosed(Status(StatusCode.UNAVAILABLE, "gone")))

    driver.now = 30.0
    driver.do(Tick())

    assert driver.heard[watch][-1] == "!NOT_FOUND"


def test_ttl__renewed__runs_anew_and_tells_nobody() -> None:
    driver, watch = with_ttl(Variant.DELTA)

    driver.now = 20.0
    nack = beat(driver)
    driver.now = 49.0
    driver.do(Tick())

    assert nack is None
    assert (driver.heard[watch], driver.engine.deadline()) == (["v1"], 50.0)


def test_ttl__heartbeat_or_content_without_one__ends_it() -> None:
    driver, _ = with_ttl(Variant.DELTA)
    beat(driver, ttl_s=0.0)
    after_beat = driver.engine.deadline()
    driver.respond(ROUTE, replace(valid("a"), ttl_s=30.0))
    driver.respond(ROUTE, valid("a"))

    assert (after_beat, driver.engine.deadline()) == (inf, inf)


def test_ttl__heartbeat_of_another_version__is_refused_and_renews_nothing() -> None:
    driver, _ = with_ttl(Variant.DELTA)
    driver.now = 20.0

    assert beat(driver, "v2") is not None
    assert driver.engine.deadline() == 30.0


def test_ttl__over_and_sent_again__is_used_again() -> None:
    driver, watch = with_ttl(Variant.DELTA)
    driver.now = 30.0
    driver.do(Tick())

    driver.respond(ROUTE, replace(valid("a"), ttl_s=30.0))

    assert driver.heard[watch] == ["v1", "!NOT_FOUND", "v1"]


def test_ttl__of_a_member_is_over__it_is_a_member_no_more() -> None:
    driver = Driver(FAIL, variant=Variant.DELTA)
    watch = driver.watch(CLUSTER, "*")
    driver.open()
    driver.respond(CLUSTER, replace(valid("a"), ttl_s=30.0), valid("b"))

    driver.now = 30.0
    driver.do(Tick())

    assert driver.heard[watch][-1] == "-a NOT_FOUND"
    assert driver.engine.deadline() == inf
