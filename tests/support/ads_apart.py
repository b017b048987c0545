"""An ADS server with an in-memory store in a process of its own: clients do not disturb what is measured of it.

The test has functions executed there, in a thread beside the event loop, as the loader of a real process works; what
they return comes back.
"""

import asyncio
import gc
import logging
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import structlog
from google.protobuf.message import Message

from adsserver.config import AdsConfig
from adsserver.engine.events import Fact, Respond
from adsserver.engine.holdings import Holdings
from adsserver.engine.versions import remember_marks
from adsserver.ports import StreamInfo
from tests.support.ads import MemoryFacts, Running, config, running
from xdscore.resource_types import ResourceType

P = ParamSpec("P")
T = TypeVar("T")

_SAMPLE_S = 0.005
_EXIT_S = 10


class Forgetful(MemoryFacts):
    """Drops every fact: memory is measured here."""

    def opened(self, stream: StreamInfo) -> None: ...
    def sent(self, stream: StreamInfo, response: Respond) -> None: ...
    def learnt(self, stream: StreamInfo, fact: Fact, holdings: Holdings | None = None) -> None: ...
    def holds(self, stream: StreamInfo, kind: ResourceType, holdings: Holdings) -> None: ...
    def awaited(self, stream: StreamInfo) -> None: ...
    def closed(self, stream: StreamInfo, cause: str) -> None: ...


@dataclass
class Inside:
    """The first argument of each function that is executed in the server's process."""

    run: Running
    loop: asyncio.AbstractEventLoop
    longest_lag_s: float = 0.0

    def publish(self, messages: Sequence[Message]) -> None:
        """Serve exactly these resources. Put together in this thread and handed to the loop, as the loader does."""
        directory = self.run.catalogue.publish(*messages)
        for snapshot in directory.snapshots.values():
            remember_marks(snapshot, None)
        self.on_loop(lambda: self.run.server.directory_changed(directory))

    def on_loop(self, function: Callable[[], T]) -> T:
        """Call the function on the event loop and return its result."""

        async def call() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result()

    async def sample(self) -> None:
        """Keep the longest time by which the loop was late, as far as this process worked meanwhile: what the machine
        gave to others is not the loop's fault.
        """
        while True:
            due, worked_s = self.loop.time() + _SAMPLE_S, time.process_time()
            await asyncio.sleep(_SAMPLE_S)
            lag_s = min(self.loop.time() - due, time.process_time() - worked_s)
            self.longest_lag_s = max(self.longest_lag_s, lag_s)


def lag_s(inside: Inside) -> float:
    """The longest time, in seconds, by which the loop was late since the last call."""
    longest, inside.longest_lag_s = inside.longest_lag_s, 0.0
    return longest


@dataclass(frozen=True, slots=True)
class Held:
    """The tasks, open files and resident bytes of a process."""

    tasks: int
    files: int
    resident_bytes: int
    idle: bool


def held(inside: Inside) -> Held:
    """The tasks, files and memory that the process holds now, after a collection of garbage."""

    def look() -> Held:
        gc.collect()
        resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        tasks = len(asyncio.all_tasks(inside.loop))
        return Held(tasks, len(list(Path("/proc/self/fd").iterdir())), resident, inside.run.server.idle)

    return inside.on_loop(look)


class AdsApart:
    """The ADS server's process, from the test's side."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.address: str = pipe.recv()

    def do(self, function: Callable[Concatenate[Inside, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Execute a function of some module in the server's process; its result."""
        self._pipe.send((function, args, kwargs))
        result: T = self._pipe.recv()
        return result


@contextmanager
def ads_apart(settings: AdsConfig | None = None) -> Iterator[AdsApart]:
    """Run an ADS server in a process of its own, without any directory yet, on a free port of the loopback address,
    until the block ends.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_main, args=(theirs, settings or config()), daemon=True)
    process.start()
    theirs.close()
    try:
        yield AdsApart(ours)
        ours.send(None)
        process.join(_EXIT_S)
    finally:
        process.kill()
        process.join()


def _main(pipe: Connection, settings: AdsConfig) -> None:
    # As in production: a line for each of 20,000 streams would hide everything else that a test prints.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    asyncio.run(_serve(pipe, settings))


async def _serve(pipe: Connection, settings: AdsConfig) -> None:
    async with running(settings, facts=Forgetful()) as run:
        inside = Inside(run, asyncio.get_running_loop())
        sampler = asyncio.create_task(inside.sample())
        pipe.send(run.address)
        await asyncio.to_thread(_obey, pipe, inside)
        sampler.cancel()


def _obey(pipe: Connection, inside: Inside) -> None:
    while (order := pipe.recv()) is not None:
        function, args, kwargs = order
        pipe.send(function(inside, *args, **kwargs))
