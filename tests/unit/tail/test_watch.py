"""What a watcher takes from its channel, and what it loses when it reads slowly."""

import asyncio

import pytest

from controlplane.tail.sealed import batch_sealed
from controlplane.tail.values import Batch, Filter, Interest
from controlplane.tail.watching import MAX_WAITING, Watch

CHANNEL = "parley:tail:to:user:1:x"


@pytest.fixture
async def watch() -> Watch:
    return Watch(Interest(CHANNEL, "default", Filter()), None, None)


def batch(
    *texts: str, number: int = 1, environment: str = "default", channel: str = CHANNEL, left_out: int = 0
) -> bytes:
    events = tuple(("sent", text) for text in texts)
    return batch_sealed(Batch("process", number, environment, events, left_out), channel)


async def test_watch__batches__are_heard_once_and_in_order(watch: Watch) -> None:
    watch.take(batch("a", "b", number=1))
    watch.take(batch("c", number=2, left_out=3))

    heard = await watch.heard(1)

    assert ([text for _, text in heard.events], heard.left_out) == (["a", "b", "c"], 3)
    assert (await watch.heard(0)).events == ()


@pytest.mark.parametrize(
    "message",
    [b"", b"x", batch("x", number=2, environment="prod"), batch("x", number=2, channel=f"{CHANNEL}2"), batch("x")],
    ids=["nothing", "noise", "another environment", "another watcher's", "sent once more"],
)
async def test_watch__message_that_is_not_for_it__is_ignored(watch: Watch, message: bytes) -> None:
    watch.take(batch("a", number=1))

    watch.take(message)

    assert [text for _, text in (await watch.heard(1)).events] == ["a"]


async def test_watch__reads_slowly__keeps_the_newest_and_is_told_how_many_it_lost(watch: Watch) -> None:
    for number in range(1, 4):
        watch.take(batch(*(f"{number}-{each}" for each in range(MAX_WAITING)), number=number))

    heard = await watch.heard(1)

    assert (len(heard.events), heard.left_out) == (MAX_WAITING, 2 * MAX_WAITING)
    assert heard.events[-1] == ("sent", f"3-{MAX_WAITING - 1}")


async def test_watch__nothing_happens__answers_after_the_time_it_was_given(watch: Watch) -> None:
    async with asyncio.timeout(5):
        heard = await watch.heard(0.01)

    assert (heard.events, heard.left_out) == ((), 0)
