"""One ADS process from start to stop: store, server and status port on one event loop. Called by `main` or a worker."""

import asyncio
import gc
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from adsserver.config import AdsConfig, host_and_port
from adsserver.metrics import Metrics
from adsserver.ports import Directory
from adsserver.running.opener import Store, StoreOpener
from adsserver.running.server import AdsServer
from xdscore.status_http import Readiness, StatusHttp

log: structlog.stdlib.BoundLogger = structlog.get_logger("adsserver.process")  # users filter lines by this name

# Without a database for this long other servers are the better choice (reliability F22).
_DATABASE_PATIENCE_S = 600.0
_STORE_STOP_S = 5.0
# Streams and fan-outs make thousands of objects that live on, or end without the collector's help. By default (700, 10,
# 10) it looks for cycles among them again and again, in vain: that was a fifth of 1,000 connects, and of a change that
# reaches 1,000 clients still a twentieth at 5,000 objects. Of the older generations as many objects as by default.
_COLLECT_AFTER = (20_000, 3, 8)


class AdsProcess:
    """Starts and stops the parts of one ADS process in their order: the store, the gRPC server and the status port."""

    def __init__(self, config: AdsConfig, registry: CollectorRegistry) -> None:
        self._config = config
        self._metrics = Metrics(registry)
        self._stop = asyncio.Event()
        self._database_ok_at = time.monotonic()
        self._store: Store | None = None
        self._server: AdsServer | None = None

    async def run(self, open_store: StoreOpener) -> None:
        """Serve until `stop` is called and the streams have ended. Raises AdsConfigError when the port cannot be
        had.
        """
        loop = asyncio.get_running_loop()
        raise_file_limit()
        store = self._store = await asyncio.to_thread(open_store, self._on_directory(loop))
        server = self._server = AdsServer(self._config, store.contents, store.facts, store.fleet, self._metrics)
        port = server.bind()
        rest_port = server.bind_rest()
        await server.start()
        memory_mib = server.memory_bytes >> 20
        log.info("ads.listening", port=port, rest_port=rest_port, auth=self._config.auth.value, memory_mib=memory_mib)
        # Only now may a directory arrive: the server is there to take it.
        await asyncio.to_thread(store.start)
        await self._stop.wait()
        log.info("ads.stopping", streams=server.open_streams)
        await server.stop()
        await asyncio.to_thread(store.stop, _STORE_STOP_S)
        log.info("ads.stopped")

    def stop(self) -> None:
        """Take no new streams from now on and end the open ones little by little; called on the event loop."""
        self._stop.set()

    def stop_on_signals(self) -> None:
        """Let SIGTERM and SIGINT do what `stop` does."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)

    def readiness(self) -> Readiness:
        """Whether clients should be sent to this process, and if not, why (reliability P9, F22)."""
        if self._server is None or self._store is None:
            return Readiness(("starting",), loaded={})
        status = self._store.status()
        now = time.monotonic()
        if status.database_ok:
            self._database_ok_at = now
        without_s = now - self._database_ok_at
        reasons = list(status.unfit)
        if self._server.draining:
            reasons.append("draining: this process is shutting down")
        # The loop begins to serve a directory and the loader lists it as loaded, a moment apart and in either order:
        # ready is a process that has done both.
        if not (self._server.has_snapshot and status.loaded):
            reasons.append("no verified snapshot of any environment has been loaded yet")
        if self._server.short_of_memory:
            reasons.append("memory is short: new streams are refused (PARLEY_LIMIT_MEMORY_MIB)")
        if without_s > _DATABASE_PATIENCE_S:
            reasons.append(f"the database has not answered for {without_s:.0f} s")
        of_store = status.detail or ("" if status.database_ok else "the database does not answer")
        wrong = "; ".join(filter(None, (of_store, self._server.tls_problem)))
        warnings = (f"degraded: {wrong}",) if wrong else ()
        return Readiness(tuple(reasons), warnings, status.loaded)

    def _on_directory(self, loop: asyncio.AbstractEventLoop) -> Callable[[Directory], None]:
        def hand_over(directory: Directory) -> None:
            # The loader may find something while the loop closes; nobody needs it then.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._take, directory)

        return hand_over

    def _take(self, directory: Directory) -> None:
        if self._server is None:
            return
        first = not self._server.has_snapshot
        self._server.directory_changed(directory)
        if first and self._server.has_snapshot:
            # Of no use to look for cycles in it, and most of it is part of every later one: 6,000 resources are as many
            # objects as 600 streams.
            gc.freeze()


async def serve_here(config: AdsConfig, open_store: StoreOpener) -> None:
    """Run the whole ADS server in this process, until SIGTERM or SIGINT.

    Raises AdsConfigError or StatusAddressError when it cannot start.
    """
    tune_collector()
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    process = AdsProcess(config, registry)
    process.stop_on_signals()
    host, port = host_and_port(config.metrics_address)
    status = StatusHttp(
        role="ads", host=host, port=port, readiness=process.readiness, metrics=lambda: generate_latest(registry)
    )
    await status.start()
    try:
        await process.run(open_store)
    finally:
        await status.stop()


def tune_collector() -> None:
    """Let the garbage collector look for cycles less often, and leave out modules and tables, which live as long as the
    process.
    """
    gc.set_threshold(*_COLLECT_AFTER)
    gc.freeze()


def raise_file_limit() -> None:
    """Raise the number of files that this process may open to what the system allows: each connection counts as one
    (dependencies.md 8).
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS refuses "unlimited" here; the soft limit in force then has to do.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
