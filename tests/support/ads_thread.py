"""An ADS server with an in-memory store on an event loop of its own thread, for tests whose clients are processes.

Many clients share one server: each case has an environment, chosen by the cluster of its node, so that what one case
publishes reaches no other.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from google.protobuf.message import Message

from adsserver.config import AdsConfig
from adsserver.engine.events import Fact, Rejected, Respond
from adsserver.ports import StreamInfo
from tests.support.ads import Running, config, running
from xdscore.access import AccessTable
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.resource_types import ResourceType

T = TypeVar("T")

_CALL_S = 20.0


class AdsThread:
    """A server that runs in a thread until the end of `serving_ads`. Methods wait until the server's loop has done what
    they ask.
    """

    def __init__(self, settings: AdsConfig) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._leave = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._run = self._await(self._start(None))

    @property
    def port(self) -> int:
        """The port on which the server listens, also after a restart."""
        return int(self._run.address.rpartition(":")[2])

    def publish(
        self,
        environment: str,
        *messages: Message,
        withheld: dict[tuple[ResourceType, str], str] | None = None,
        unreadable: dict[tuple[ResourceType, str], str] | None = None,
        proven: Sequence[Message] = (),
        access: AccessTable | None = None,
    ) -> None:
        """Serve exactly these resources in this environment, to clients whose node's cluster has its name."""
        catalogue = self._run.catalogue
        if all(choice.key != environment for choice in catalogue.environments):
            choice = EnvironmentChoice(environment, (Selector(node_cluster=environment),))
            catalogue.environments = (choice, *catalogue.environments)
        found = catalogue.publish(
            *messages,
            environment=environment,
            withheld=withheld,
            unreadable=unreadable,
            proven=proven,
            access=access,
        )
        self._call(lambda: self._run.server.directory_changed(found))

    def restart(self) -> None:
        """Cut every stream and listen again on the same port, with the same publications."""
        self._await(self._stop())
        self._run = self._await(self._start(self._run))
        self._call(lambda: self._run.server.directory_changed(self._run.catalogue.directory()))

    def close(self) -> None:
        """Stop the server and its thread for good."""
        self._await(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CALL_S)

    def streams(self, environment: str) -> list[StreamInfo]:
        """Every stream of this environment's clients that was ever opened, in order."""
        return [stream for stream in tuple(self._run.facts.opened_streams) if stream.environment == environment]

    def responses(self, environment: str) -> list[tuple[StreamInfo, Respond]]:
        """Every response to a client of this environment, in order."""
        return [sent for sent in tuple(self._run.facts.responses) if sent[0].environment == environment]

    def facts(self, environment: str) -> list[Fact]:
        """Every fact that the server learnt from requests of this environment's clients, in order."""
        return [fact for stream, fact in tuple(self._run.facts.learnt_facts) if stream.environment == environment]

    def rejections(self, environment: str) -> list[Rejected]:
        """Every NACK of this environment's clients, in order."""
        return [fact for fact in self.facts(environment) if isinstance(fact, Rejected)]

    async def _start(self, before: Running | None) -> Running:
        started: asyncio.Future[Running] = self._loop.create_future()
        self._leave = asyncio.Event()
        self._running = self._loop.create_task(self._serve(before, started))
        return await started

    async def _serve(self, before: Running | None, started: "asyncio.Future[Running]") -> None:
        settings = self._settings if before is None else replace(self._settings, address=before.address)
        async with running(settings, before) as run:
            started.set_result(run)
            await self._leave.wait()

    async def _stop(self) -> None:
        self._leave.set()
        if self._running is not None:
            await self._running

    def _call(self, function: Callable[[], T]) -> T:
        async def on_loop() -> T:
            return function()

        return self._await(on_loop())

    def _await(self, work: Awaitable[T]) -> T:
        async def on_loop() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result(_CALL_S)


@contextmanager
def serving_ads(settings: AdsConfig | None = None) -> Iterator[AdsThread]:
    """Run a server on a free port of the loopback address until the block ends."""
    ads = AdsThread(settings or config())
    try:
        yield ads
    finally:
        ads.close()
