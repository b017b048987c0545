"""The gRPC server of one process: its port, its methods, what its streams share, and how it ends. Wired by `main`."""

import asyncio
import os
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import grpc
import structlog
from grpc_health.v1 import health, health_pb2

from adsserver.config import AdsConfig, AdsConfigError, host_and_port
from adsserver.engine.settings import EngineSettings
from adsserver.identity.authorities import Authorities
from adsserver.identity.callers import Callers
from adsserver.identity.identification import Known, identification
from adsserver.identity.tls import Certificates, HttpsContext, server_credentials
from adsserver.limits.admission import Admission, DeniedNames, LoopLag, MemoryBound, resident_bytes
from adsserver.limits.budgets import Budgets
from adsserver.limits.memory import allowed_bytes
from adsserver.limits.watchdog import Watchdog
from adsserver.metrics import Metrics
from adsserver.ports import ContentKeeper, Directory, Facts, FleetStatus
from adsserver.rest.answering import Answering
from adsserver.rest.server import RestServer
from adsserver.servicers.csds import StatusServicer
from adsserver.servicers.hub import Hub, Pace
from adsserver.servicers.methods import method_table
from adsserver.servicers.polls import Polls
from adsserver.servicers.refusal_log import RefusalLog
from adsserver.servicers.reports import ErrorCounts
from adsserver.servicers.shared import Shared
from adsserver.wire.discovery import Decoder, Encoder
from adsserver.wire.polling import JsonEncoder, JsonTexts, PollReader
from xdscore.auth_modes import AuthMode
from xdscore.limits import Limits
from xdscore.version import VERSION

log: structlog.stdlib.BoundLogger = structlog.get_logger("adsserver.server")  # users filter lines by this name

# How long streams are spread over when the process ends, and how long it then waits for those that do not go.
DRAIN_SPREAD_S = 1.0
DRAIN_LIMIT_S = 5.0
# Two handshakes of 5,000 streams may wait at once: gRPC's own bounds (1,000 and 3,000) cancel a burst of reconnects
# (dependencies.md 8).
_MAX_PENDING_STREAMS = 10_000
# A signal for people: 5,000 streams take some 10 ms to look at.
_ANSWERS_PERIOD_S = 5.0
_LOOK_PERIOD_S = 1.0
# Well before the loader forgets what was in no snapshot for a minute (`store.snapshot_reading`).
_HOLD_PERIOD_S = 10.0
# C-core moves the age of each connection by up to 10 % on its own.
_CORE_AGE_JITTER = 0.1


class AdsServer:
    """One gRPC server and everything it needs for its streams. To be used on the event loop."""

    def __init__(
        self, config: AdsConfig, contents: ContentKeeper, facts: Facts, fleet: FleetStatus, metrics: Metrics
    ) -> None:
        limits = config.limits
        self._config = config
        self._contents = contents
        self._metrics = metrics
        self._lag = LoopLag(metrics.loop_lag.observe)
        self.memory_bytes = allowed_bytes(limits, config.workers)
        self._memory = MemoryBound(self.memory_bytes, resident_bytes, self._memory_changed)
        self._budgets = Budgets(limits, time.monotonic, lambda: self._memory.short)
        self._watchdog = Watchdog(metrics.loop_blocks.inc)
        self._hub = Hub(limits.fan_out_slice_ms / 1000)
        certificates = config.auth.facts.certificates
        client_ca = config.tls.client_ca if config.tls is not None and certificates else None
        self._callers = Callers(authorities=Authorities(client_ca) if client_ca is not None else None)
        self._parsers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ads-parse")
        self._shared = Shared(
            hub=self._hub,
            callers=self._callers,
            encoder=Encoder(contents, f"parley/{VERSION}/{socket.gethostname()}/{os.getpid()}"),
            decoder=Decoder(limits),
            facts=facts,
            metrics=metrics,
            limits=limits,
            settings=EngineSettings(config.repeat_errors, config.public_url, limits),
            budgets=self._budgets,
            admission=Admission(limits, self._lag, self._memory, self._budgets),
            denied=DeniedNames(limits),
            parsers=self._parsers,
            refusals=RefusalLog(),
            error_counts=ErrorCounts(),
        )
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined]  # grpc-stubs do not know it
        self._status = StatusServicer(fleet, self._memory, limits, metrics)
        known = Known(config, self._callers, self._callers.admits, time.time)
        identify = identification(config.auth, known)
        # The status is for operators, whose API token the servicer checks itself; where data planes are known by
        # tokens, too, both would travel in the same metadata (protocol.md K2).
        identify_reader = identification(AuthMode.NONE, known) if config.auth.facts.tokens else identify
        self.polls = Polls(self._shared)
        self.methods = method_table(self._shared, self.polls, identify, self._health, self._status, identify_reader)
        self._answering = Answering(
            self._shared,
            self.polls,
            identify,
            JsonTexts(contents),
            JsonEncoder(self._shared.encoder.identifier),
            PollReader(limits),
        )
        self._rest: RestServer | None = None
        options = channel_options(limits, shared_port=config.workers > 1)
        self._server = grpc.aio.server(handlers=[self.methods], options=options)
        self._certificates: Certificates | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.draining = False

    @property
    def has_snapshot(self) -> bool:
        """Whether a verified snapshot of any environment can be served."""
        return self._hub.has_snapshot

    @property
    def short_of_memory(self) -> bool:
        """Whether new streams are refused because memory is short."""
        return self._memory.short

    @property
    def tls_problem(self) -> str:
        """What is wrong with the server's certificate or its files; empty when nothing is, or the server has no TLS."""
        return self._certificates.problem() if self._certificates is not None else ""

    @property
    def open_streams(self) -> int:
        """The number of streams that are open now."""
        return len(self._shared.open)

    @property
    def rest_connections(self) -> int:
        """The number of connections to the REST port that are open now."""
        return self._rest.open_connections if self._rest is not None else 0

    @property
    def idle(self) -> bool:
        """Whether no stream or other call is open, and nothing is remembered of one that was."""
        shared = self._shared
        nobody = not shared.open and not shared.admission.open and self._budgets.empty
        return nobody and self._hub.empty and self._callers.empty

    def bind(self) -> int:
        """Take the port; returns its number. Raises AdsConfigError with one sentence when it cannot be had."""
        config = self._config
        host_and_port(config.address)
        try:
            if config.tls is None:
                return self._server.add_insecure_port(config.address)
            self._certificates = Certificates(config.tls, self._certificate_changed)
            credentials = server_credentials(self._certificates, client_certificates=config.auth.facts.certificates)
            return self._server.add_secure_port(config.address, credentials)
        except RuntimeError as error:
            raise AdsConfigError(
                f"The address {config.address} (PARLEY_ADS_ADDRESS) cannot be used: "
                "another process has the port, or this machine does not have the address."
            ) from error

    def bind_rest(self) -> int | None:
        """Take the port of REST, after that of gRPC; returns its number, or None where clients do not poll. Raises
        AdsConfigError as `bind` does.
        """
        config = self._config
        if not config.rest_address:
            return None
        tls = None
        if config.tls is not None and self._certificates is not None:
            certificates = config.auth.facts.certificates
            tls = HttpsContext(self._certificates, config.tls, client_certificates=certificates)
        self._rest = RestServer(self._answering, config.limits, tls)
        return self._rest.bind(config.rest_address, shared_port=config.workers > 1)

    async def start(self) -> None:
        """Accept streams. They are sent nothing until the first directory is loaded (decisions C4)."""
        await self._health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
        await self._server.start()
        if self._rest is not None:
            await self._rest.start()
        self._watchdog.start()
        work = (
            self._lag.watch(),
            self._memory.watch(),
            self._hub.run(),
            self._callers.run(),
            self._report_health(),
            self._watch_answers(),
            self._hold_contents(),
            self._look_after(),
        )
        self._tasks = [asyncio.create_task(each) for each in work]

    def directory_changed(self, directory: Directory) -> None:
        """Serve from this directory (environments, snapshots, tokens) from now on."""
        self._callers.replace(directory.tokens)
        unknown = {word for snapshot in directory.snapshots.values() for word in snapshot.unknown}
        self._metrics.types_unknown.set(len(unknown))
        self._metrics.publications.inc(self._hub.replace(directory))

    async def stop(self, spread_s: float = DRAIN_SPREAD_S, limit_s: float = DRAIN_LIMIT_S) -> None:
        """Take no new streams, end the open ones spread over `spread_s` seconds, and cut off what is left after
        `limit_s` seconds (F14).
        """
        self.draining = True
        await self._health.enter_graceful_shutdown()
        self._status.close()
        for stream in tuple(self._shared.open):
            stream.drain(random.uniform(0, spread_s))  # noqa: S311 - spreads load
        self.polls.close()
        if self._rest is not None:
            await self._rest.stop(limit_s)
        # GOAWAY at once; what has not ended by then is cancelled.
        await self._server.stop(limit_s)
        self._watchdog.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._metrics.settle()
        self._parsers.shutdown(wait=False)
        self._callers.close()
        self._shared.refusals.tell()

    def _certificate_changed(self, ends_at: datetime, usable: bool) -> None:
        self._metrics.certificate_ends.set(ends_at.timestamp())
        self._metrics.tls_unusable.set(not usable)

    def _memory_changed(self, short: bool) -> None:
        self._metrics.memory_short.set(short)
        log.warning(
            "memory.short" if short else "memory.well", resident_bytes=resident_bytes(), streams=self.open_streams
        )

    async def _hold_contents(self) -> None:
        """Tell the store, again and again, which contents of earlier snapshots streams may still have to be sent, so
        that it keeps them.
        """
        while True:
            await asyncio.sleep(_HOLD_PERIOD_S)
            needed: set[bytes] = set()
            pace = Pace(self._shared.limits.fan_out_slice_ms / 1000)
            for stream in tuple(self._shared.open):
                needed.update(content.blob for content in stream.needed())
                await pace.breathe()
            needed.update(content.blob for content in self.polls.needed())
            self._contents.hold(frozenset(needed))

    async def _watch_answers(self) -> None:
        """Set the metric of streams whose clients leave a response without an ACK or NACK, again and again. Nothing
        else is done about them (B13, I3a).
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_ANSWERS_PERIOD_S)
            since = loop.time() - self._shared.limits.unacknowledged_alarm_s
            silent = sum(stream.unanswered_since < since for stream in self._shared.open)
            self._metrics.unanswered.set(silent)

    async def _look_after(self) -> None:
        """End streams that have reached their greatest age (protocol.md J3) or whose clients neither read nor ask
        (F17), until cancelled.

        One loop looks at all streams: a timer for each stream and each write would cost more. It pauses in between,
        because many streams that began together are due together.
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_PERIOD_S)
            pace = Pace(self._shared.limits.fan_out_slice_ms / 1000)
            for stream in tuple(self._shared.open):
                stream.end_if_due(loop.time())
                await pace.breathe()
            self.polls.look(loop.time())
            self._budgets.forget()
            self._metrics.settle()

    async def _report_health(self) -> None:
        # Serving from the first verified snapshot on (reliability P9); draining ends it in stop().
        await self._hub.published.wait()
        for service in ("", *self.methods.services):
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)


def channel_options(limits: Limits, *, shared_port: bool) -> list[tuple[str, int]]:
    """The channel arguments of the gRPC server, from these limits (reliability (e)). `shared_port`: whether other
    processes listen at the same port.
    """
    age_ms = limits.connection_age_s * 1000
    spread = limits.connection_age_jitter_percent / 100
    # A stream ends by itself, between two responses, at its age. For its reconnect to reach another server, the
    # connection must have said GOAWAY before; so that comes first, and closing by force only after the last stream.
    latest_goaway_ms = age_ms * (1 - spread)
    goaway_ms = latest_goaway_ms / (1 + _CORE_AGE_JITTER)
    grace_ms = age_ms * (1 + spread) - goaway_ms * (1 - _CORE_AGE_JITTER) + limits.connection_grace_s * 1000
    return [
        # Without workers a second process on the port is a mistake and must fail (grpc shares ports by default).
        ("grpc.so_reuseport", int(shared_port)),
        ("grpc.max_receive_message_length", limits.request_bytes),
        ("grpc.max_metadata_size", limits.metadata_bytes),
        ("grpc.absolute_max_metadata_size", limits.metadata_bytes),
        ("grpc.max_concurrent_streams", limits.concurrent_streams),
        ("grpc.server.max_pending_requests", _MAX_PENDING_STREAMS),
        ("grpc.server.max_pending_requests_hard_limit", _MAX_PENDING_STREAMS),
        ("grpc.keepalive_time_ms", limits.keepalive_time_ms),
        ("grpc.keepalive_timeout_ms", limits.keepalive_timeout_ms),
        # Without this one a dead peer is noticed after 63 s (reliability finding 10).
        ("grpc.http2.ping_timeout_ms", limits.ping_timeout_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", limits.ping_interval_ms),
        ("grpc.http2.max_ping_strikes", limits.ping_strikes),
        # A connection without a call serves nobody; one that never finishes its handshake least of all.
        ("grpc.max_connection_idle_ms", limits.connection_idle_s * 1000),
        ("grpc.server_handshake_timeout_ms", limits.handshake_timeout_ms),
        ("grpc.max_connection_age_ms", round(goaway_ms)),
        ("grpc.max_connection_age_grace_ms", round(grace_ms)),
    ]
