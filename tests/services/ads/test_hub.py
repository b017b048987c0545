"""What the hub carries to whom, and in slices. Streams are plain recorders."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from adsserver.engine.publication import Publication
from adsserver.ports import Directory
from adsserver.servicers.hub import Hub
from xdscore.access import AccessTable, Effect
from xdscore.environment_choice import ClientFacts, EnvironmentChoice, Selector
from xdscore.snapshot import Snapshot, snapshot_from_entries

PROD = EnvironmentChoice("prod", (Selector(node_id="p*"),))
DEFAULT = EnvironmentChoice("default", ())


def snapshot(environment: str, epoch: int) -> Snapshot:
    return snapshot_from_entries(
        environment=environment, lineage="l", epoch=epoch, access=AccessTable(Effect.ALLOW), entries=[]
    )


@dataclass(eq=False)
class Recorder:
    client: ClientFacts = field(default_factory=ClientFacts)
    offers: list[int] = field(default_factory=list)
    moves: int = 0
    cost_s: float = 0.0

    def offer(self, publication: Publication) -> None:
        self.offers.append(publication.snapshot.epoch)
        until = asyncio.get_running_loop().time() + self.cost_s
        while asyncio.get_running_loop().time() < until:
            pass

    def move(self) -> None:
        self.moves += 1


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    made = Hub(slice_s=0.005)
    work = asyncio.create_task(made.run())
    yield made
    work.cancel()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_hub__new_snapshot__is_offered_to_its_environment_only(hub: Hub) -> None:
    here, there = Recorder(), Recorder()
    hub.join("prod", here)
    hub.join("default", there)

    changed = hub.replace(Directory((PROD, DEFAULT), {"prod": snapshot("prod", 1)}))
    await settle()

    assert changed == 1
    assert (here.offers, there.offers) == ([1], [])


async def test_hub__same_snapshot_in_a_new_directory__is_not_offered_again(hub: Hub) -> None:
    stream, same = Recorder(), snapshot("prod", 1)
    hub.join("prod", stream)
    hub.replace(Directory((PROD,), {"prod": same}))
    await settle()

    changed = hub.replace(Directory((PROD,), {"prod": same}))
    await settle()

    assert changed == 0
    assert stream.offers == [1]


async def test_hub__listed_without_a_snapshot__keeps_the_last_one(hub: Hub) -> None:
    hub.replace(Directory((PROD,), {"prod": snapshot("prod", 1)}))

    hub.replace(Directory((PROD,), {}))

    kept = hub.publication("prod")
    assert kept is not None
    assert kept.snapshot.epoch == 1


async def test_hub__no_longer_listed__is_gone(hub: Hub) -> None:
    hub.replace(Directory((PROD,), {"prod": snapshot("prod", 1)}))

    hub.replace(Directory((DEFAULT,), {}))

    assert hub.publication("prod") is None


async def test_hub__selectors_change__only_who_belongs_elsewhere_moves(hub: Hub) -> None:
    staying, moving = Recorder(ClientFacts(node_id="a")), Recorder(ClientFacts(node_id="p-1"))
    hub.replace(Directory((DEFAULT,), {}))
    hub.join("default", staying)
    hub.join("default", moving)

    hub.replace(Directory((PROD, DEFAULT), {}))
    await settle()

    assert (staying.moves, moving.moves) == (0, 1)


async def test_hub__newer_snapshot_during_a_fan_out__the_rest_gets_only_the_newer(hub: Hub) -> None:
    streams = [Recorder(cost_s=0.006) for _ in range(6)]
    for stream in streams:
        hub.join("prod", stream)
    hub.replace(Directory((PROD,), {"prod": snapshot("prod", 1)}))
    await asyncio.sleep(0.001)
    seen = [stream for stream in streams if stream.offers]

    hub.replace(Directory((PROD,), {"prod": snapshot("prod", 2)}))
    await asyncio.sleep(0.15)

    assert 0 < len(seen) < 6
    assert all(stream.offers[0] == 2 for stream in streams if stream not in seen)
    assert all(stream.offers[-1] == 2 for stream in streams)


async def test_hub__long_fan_out__gives_the_loop_back_between_slices(hub: Hub) -> None:
    streams = [Recorder(cost_s=0.004) for _ in range(20)]
    for stream in streams:
        hub.join("prod", stream)
    turns = 0

    hub.replace(Directory((PROD,), {"prod": snapshot("prod", 1)}))
    async with asyncio.timeout(10):
        while not all(stream.offers for stream in streams):
            await asyncio.sleep(0)
            turns += 1

    # 20 offers of 4 ms in slices of 5 ms: about ten pauses, where one block would leave one.
    assert turns >= 8


@dataclass(eq=False)
class Answering(Recorder):
    """Says something as soon as it is told of a snapshot; `told_before`: how many had been told when that was heard."""

    hub: Hub | None = None
    others: list[Recorder] = field(default_factory=list)
    told_before: int = 0

    def offer(self, publication: Publication) -> None:
        super().offer(publication)
        turn = self.hub.answer_turn("prod") if self.hub is not None else None
        assert turn is not None
        turn.add_done_callback(lambda _: self._heard())

    def _heard(self) -> None:
        self.told_before = sum(bool(each.offers) for each in self.others)


async def told(hub: Hub, streams: int, *, cost_s: float) -> list[Recorder]:
    """The streams that a snapshot was offered to; each has answered."""
    others: list[Recorder] = []
    for _ in range(streams):
        stream = Answering(cost_s=cost_s, hub=hub, others=others)
        others.append(stream)
        hub.join("prod", stream)
    hub.replace(Directory((PROD,), {"prod": snapshot("prod", 1)}))
    async with asyncio.timeout(10):
        while not all(stream.told_before for stream in others if isinstance(stream, Answering)):
            await settle()
    return others


async def test_answers__during_a_short_fan_out__come_after_everybody_was_told(hub: Hub) -> None:
    assert hub.answer_turn("prod") is None

    streams = await told(hub, 20, cost_s=0.001)

    assert {stream.told_before for stream in streams if isinstance(stream, Answering)} == {20}
    assert hub.answer_turn("prod") is None


async def test_answers__of_another_environment__do_not_wait(hub: Hub) -> None:
    others = [Recorder(cost_s=0.006) for _ in range(6)]
    for stream in others:
        hub.join("prod", stream)

    hub.replace(Directory((PROD, DEFAULT), {"prod": snapshot("prod", 1)}))
    await asyncio.sleep(0.001)

    assert not all(stream.offers for stream in others)
    assert hub.answer_turn("prod") is not None
    assert hub.answer_turn("default") is None


async def test_answers__something_newer_comes_while_they_wait__it_goes_before_them(hub: Hub) -> None:
    streams = [Recorder(cost_s=0.001) for _ in range(20)]
    for stream in streams:
        hub.join("prod", stream)
    hub.replace(Directory((PROD,), {"prod": snapshot("prod", 1)}))
    await asyncio.sleep(0.001)
    turn = hub.answer_turn("prod")
    assert turn is not None
    hub.replace(Directory((PROD, DEFAULT), {"prod": snapshot("prod", 2)}))

    await turn

    assert all(stream.offers[-1] == 2 for stream in streams)


async def test_answers__during_a_long_fan_out__wait_no_longer_than_a_tenth_of_a_second(hub: Hub) -> None:
    streams = await told(hub, 60, cost_s=0.005)

    before = [stream.told_before for stream in streams if isinstance(stream, Answering)]
    # To tell all takes three times as long.
    assert min(before) < 60
    assert max(before) == 60


async def test_hub__stream_left__is_offered_nothing(hub: Hub) -> None:
    stream = Recorder()
    hub.join("prod", stream)
    hub.leave("prod", stream)

    hub.replace(Directory((PROD,), {"prod": snapshot("prod", 1)}))
    await settle()

    assert stream.offers == []


async def test_wait_loaded__no_directory__false_after_the_wait(hub: Hub) -> None:
    assert await hub.wait_loaded(0.01) is False
    hub.replace(Directory())
    assert await hub.wait_loaded(0.01) is True


async def test_hub__streams_that_are_woken__write_before_very_many_others_are_woken(hub: Hub) -> None:
    waiting, most = 0, 0

    def write() -> None:
        nonlocal waiting
        waiting -= 1

    class Writer(Recorder):
        def offer(self, publication: Publication) -> None:
            nonlocal waiting, most
            super().offer(publication)
            waiting += 1
            most = max(most, waiting)
            asyncio.get_running_loop().call_soon(write)

    streams = [Writer() for _ in range(1_000)]
    for stream in streams:
        hub.join("prod", stream)

    hub.replace(Directory((PROD,), {"prod": snapshot("prod", 1)}))
    while not all(stream.offers for stream in streams):
        await settle()

    # What they write costs far more than to wake them: a slice of the one alone bounds nothing (reliability F30).
    assert most <= 64
