"""Several ADS processes on one port: starts them, restarts them, tells of them as one (decisions U17, part 7).

The kernel spreads connections over the workers (SO_REUSEPORT). Each has its own store and its own loop; they share
nothing but the port. A pipe ties each to this process: a worker whose parent is gone drains and ends.
"""

import asyncio
import json
import multiprocessing
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from os import environ
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry, generate_latest, multiprocess

from adsserver.config import AdsConfig, AdsConfigError, host_and_port
from adsserver.running.opener import StoreOpener
from xdscore.status_http import Readiness, StatusHttp

log: structlog.stdlib.BoundLogger = structlog.get_logger("adsserver.workers")  # users filter lines by this name

EXIT_CONFIG = 2

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0
# A worker drains for at most five seconds, its store stops within five more; then it is killed.
_STOP_LIMIT_S = 15.0
_REPORT_PERIOD_S = 0.5
# Read by prometheus_client when a worker imports it.
_METRICS_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


async def supervise(config: AdsConfig, open_store: StoreOpener) -> int:
    """Serve with `config.workers` processes until SIGTERM or SIGINT; returns the exit status.

    Raises AdsConfigError or StatusAddressError when a port cannot be had.
    """
    with ExitStack() as stack:
        taken = stack.enter_context(_reserved(config.address, "PARLEY_ADS_ADDRESS"))
        rest = config.rest_address
        if rest:
            rest = stack.enter_context(_reserved(rest, "PARLEY_ADS_REST_ADDRESS"))
        folder = stack.enter_context(_metrics_folder(config.home))
        fleet = _Fleet(replace(config, address=taken, rest_address=rest), open_store, folder)
        metrics_host, metrics_port = host_and_port(config.metrics_address)
        status = StatusHttp(
            role="ads", host=metrics_host, port=metrics_port, readiness=fleet.readiness, metrics=fleet.metrics
        )
        await status.start()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, fleet.stop)
        try:
            return await fleet.run()
        finally:
            await status.stop()


@contextmanager
def _reserved(address: str, variable: str) -> Iterator[str]:
    """A context that keeps the port of this address for the workers: bound without listening, so that nobody else gets
    it. Yields the address, with the number of the port. `variable`: where the address was configured.
    """
    host, port = host_and_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        if port:
            # Sharing is for our own workers: with anybody else on the port this must fail, whatever they allow.
            with socket.socket(family) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
        held = socket.socket(family)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((host, port))
    except OSError as error:
        raise AdsConfigError(f"The address {address} ({variable}) cannot be used: {error.strerror}.") from error
    with held:
        yield f"{f'[{host}]' if ':' in host else host}:{held.getsockname()[1]}"


@contextmanager
def _metrics_folder(home: Path) -> Iterator[Path]:
    """A context that yields a new folder in `home` for the workers' metric files, and removes it at the end."""
    try:
        run = home / "run"
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="ads-metrics-", dir=run))
    except OSError as error:
        raise AdsConfigError(f"Nothing can be written to {home} (PARLEY_HOME): {error.strerror}.") from error
    try:
        environ[_METRICS_FOLDER_VARIABLE] = str(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Worker:
    """One running worker process and what it reported of its readiness last."""

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        self.process = process
        self.pipe = pipe
        self.readiness = Readiness(("starting",), loaded={})

    def hear(self) -> None:
        """Read what the worker reports through its pipe, until the process ends."""
        with suppress(EOFError, OSError):
            while self.pipe.poll():
                said = json.loads(self.pipe.recv_bytes())
                loaded = {key: (lineage, epoch) for key, (lineage, epoch) in said["loaded"].items()}
                self.readiness = Readiness(tuple(said["reasons"]), tuple(said["warnings"]), loaded)
                return
        asyncio.get_running_loop().remove_reader(self.pipe.fileno())


class _Fleet:
    """The worker processes. A worker that dies is started again, after a longer wait each time; when one cannot start
    at all, all are ended.
    """

    def __init__(self, config: AdsConfig, open_store: StoreOpener, folder: Path) -> None:
        self._config = config
        self._open_store = open_store
        self._folder = folder
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, _Worker] = {}
        self._stopping = asyncio.Event()
        self._status = 0

    async def run(self) -> int:
        """Run the workers until `stop` is called, or until one cannot start; returns the exit status."""
        keepers = [asyncio.create_task(self._keep(number)) for number in range(self._config.workers)]
        await self._stopping.wait()
        for worker in self._workers.values():
            asyncio.get_running_loop().remove_reader(worker.pipe.fileno())
            # The end of the pipe is the sign to drain.
            worker.pipe.close()
        _, late = await asyncio.wait(keepers, timeout=_STOP_LIMIT_S)
        if late:
            for worker in self._workers.values():
                worker.process.kill()
            await asyncio.wait(late)
        return self._status

    def stop(self) -> None:
        """Let all workers end: each takes no new streams and ends its open ones."""
        self._stopping.set()

    def readiness(self) -> Readiness:
        """The readiness of all workers together: ready when each is. Of each environment the oldest snapshot that any
        worker serves is reported.
        """
        reasons: list[str] = []
        warnings: list[str] = []
        loaded: dict[str, tuple[str, int]] = {}
        for number in range(self._config.workers):
            worker = self._workers.get(number)
            said = worker.readiness if worker is not None else Readiness(("not running",), loaded={})
            reasons += (f"worker {number + 1}: {reason}" for reason in said.reasons)
            warnings += (f"worker {number + 1}: {warning}" for warning in said.warnings)
            for key, (lineage, epoch) in (said.loaded or {}).items():
                other = loaded.get(key)
                if other is None or epoch < other[1]:
                    loaded[key] = (lineage, epoch)
        return Readiness(tuple(reasons), tuple(warnings), loaded)

    def metrics(self) -> bytes:
        """The metrics of all workers summed up, in Prometheus' text format."""
        registry = CollectorRegistry()
        # prometheus_client has no annotations here.
        multiprocess.MultiProcessCollector(registry, path=str(self._folder))  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    async def _keep(self, number: int) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            worker = self._start(number)
            status = await _ended(worker.process)
            del self._workers[number]
            if self._stopping.is_set():
                return
            if status == EXIT_CONFIG:
                # It has said why; the others would say the same.
                self._status = EXIT_CONFIG
                self._stopping.set()
                return
            multiprocess.mark_process_dead(worker.process.pid, str(self._folder))  # type: ignore[no-untyped-call]
            log.error("worker.died", worker=number + 1, status=status, restart_in_s=pause_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _start(self, number: int) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_work, args=(self._config, self._open_store, theirs), name=f"ads-{number + 1}", daemon=True
        )
        process.start()
        theirs.close()
        worker = self._workers[number] = _Worker(process, ours)
        asyncio.get_running_loop().add_reader(ours.fileno(), worker.hear)
        return worker


async def _ended(process: SpawnProcess) -> int:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(process.sentinel, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(process.sentinel)
    process.join()
    return process.exitcode or 0


def _work(config: AdsConfig, open_store: StoreOpener, pipe: Connection) -> None:
    """Run a worker in a process of its own until it is told to stop."""
    # Not at the top: only here may grpc be loaded; the parent imports this module, too (decisions part 7).
    from adsserver.running.process import AdsProcess  # noqa: PLC0415

    # Ctrl-C reaches the whole group; the parent drains its workers by their pipes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def work() -> None:
        process = AdsProcess(config, CollectorRegistry())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, process.stop)
        asyncio.get_running_loop().add_reader(pipe.fileno(), process.stop)
        report = asyncio.create_task(_report(process.readiness, pipe))
        try:
            await process.run(open_store)
        finally:
            report.cancel()

    try:
        asyncio.run(work())
    except AdsConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the sentence for whoever started the process
        sys.exit(EXIT_CONFIG)


async def _report(readiness: Callable[[], Readiness], pipe: Connection) -> None:
    # In a thread: a stopped parent leaves the pipe full, and only this thread may wait for it.
    while True:
        said = readiness()
        message = {"reasons": said.reasons, "warnings": said.warnings, "loaded": said.loaded}
        await asyncio.to_thread(pipe.send_bytes, json.dumps(message).encode())
        await asyncio.sleep(_REPORT_PERIOD_S)
