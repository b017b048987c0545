"""Whoever holds the event loop up is named while it does (reliability F30)."""

import time

import structlog

from tests.support.ads import Running, running
from tests.support.ads_client import until

_LONGEST_S = 10.0


def blocks(run: Running) -> float:
    return run.sample("parley_ads_loop_blocks_total")


def hold_the_loop_up(run: Running) -> None:
    """Until the watchdog has told of it, and some more."""
    started = time.monotonic()
    while not blocks(run) and time.monotonic() - started < _LONGEST_S:
        time.sleep(0.01)
    time.sleep(0.15)


async def test_watchdog__loop_is_held_up__is_told_once_with_the_place() -> None:
    async with running() as run:
        with structlog.testing.capture_logs() as events:
            hold_the_loop_up(run)

        assert blocks(run) == 1
        [told] = [each for each in events if each["event"] == "loop.blocked"]
        assert "hold_the_loop_up" in told["where"][0]
        assert told["since_s"] >= 0.25


async def test_watchdog__server_stopped__its_thread_ends() -> None:
    async with running() as run:
        watching = run.server._watchdog._thread

        assert watching.is_alive()
    await until(lambda: not watching.is_alive())
