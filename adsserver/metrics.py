"""What the ADS process counts. Labels come from closed sets only: never a client, a name or an environment."""

from collections.abc import Iterator
from itertools import product
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from adsserver.engine.events import Variant
from xdscore.errors import StatusCode
from xdscore.resource_types import RESOURCE_TYPES

UNKNOWN_TYPE: Final = "unknown"

_TYPES = (*(kind.word for kind in RESOURCE_TYPES), UNKNOWN_TYPE)
_VARIANTS = tuple(variant.value for variant in Variant)
# gRPC status codes that this server ends a stream with (protocol.md J2).
END_CODES: Final = (
    "OK",
    "INVALID_ARGUMENT",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "INTERNAL",
    "UNAVAILABLE",
)
POLL_ANSWERS: Final = ("whole", "unchanged", "turned_away")
# Around what matters: a slice of fan-out is 5 ms, 100 ms pause admission, 250 ms are the bound (performance.md).
_LAG_BUCKETS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Tally:
    """A counter for what happens very often on the event loop: counting is an addition, and `settle` passes the sum on
    to Prometheus.

    `Counter.inc` takes a lock, or writes to a file that workers share: four calls of it for each response were a tenth
    of the response's cost.
    """

    __slots__ = ("_counter", "_untold")

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._untold = 0

    def inc(self, amount: int = 1) -> None:
        """Add `amount` to the count."""
        self._untold += amount

    def settle(self) -> None:
        """Pass what was counted since the last call on to the Prometheus counter."""
        if self._untold:
            self._counter.inc(self._untold)
            self._untold = 0


class _Settled(Collector):
    """The first collector of a registry, which settles all tallies (`Tally.settle`) before the other collectors are
    read.
    """

    def __init__(self, metrics: "Metrics") -> None:
        self._metrics = metrics

    def describe(self) -> Iterator[Metric]:
        """No metrics: this collector has none of its own."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Settle all tallies, so that collectors read after this one are current; yields no metrics of its own."""
        self._metrics.settle()
        return iter(())


class Metrics:
    """The metrics of one process. Counters that are used for every request and response have their labels looked up
    once, here.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        registry.register(_Settled(self))
        self.streams = Gauge(
            "parley_ads_streams", "Streams that are open now.", registry=registry, multiprocess_mode="livesum"
        )
        self.loop_lag = Histogram(
            "parley_ads_loop_lag_seconds",
            "How late the event loop runs what is due.",
            buckets=_LAG_BUCKETS_S,
            registry=registry,
        )
        self.refused = Counter(
            "parley_ads_streams_refused",
            "Streams that were refused before any response, because of a limit of the process.",
            registry=registry,
        )
        self.memory_short = Gauge(
            "parley_ads_memory_short",
            "1 while new streams are refused because memory is short (PARLEY_LIMIT_MEMORY_MIB).",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.certificate_ends = Gauge(
            "parley_ads_certificate_end_seconds",
            "When the certificate that ADS serves with ends, in seconds since 1970; 0 without TLS.",
            registry=registry,
            multiprocess_mode="livemin",
        )
        self.tls_unusable = Gauge(
            "parley_ads_tls_unusable",
            "1 while the TLS files as they are cannot be used, and those before are served on; `/readyz` says why.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.loop_blocks = Counter(
            "parley_ads_loop_blocks",
            "Times the event loop stood still for more than 250 ms; the log says where (loop.blocked).",
            registry=registry,
        )
        bytes_sent = Counter("parley_ads_response_bytes", "Bytes of responses that were sent.", registry=registry)
        self.violations = Counter(
            "parley_ads_violations", "Rules of the protocol that clients broke.", registry=registry
        )
        self.publications = Counter(
            "parley_ads_publications", "Snapshots that were offered to streams.", registry=registry
        )
        self.types_unknown = Gauge(
            "parley_ads_types_unknown",
            "Resource types that are published and that this version does not know: it does not serve them.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.unanswered = Gauge(
            "parley_ads_streams_unanswered",
            "Streams whose client has left a response without an answer for too long.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.probing = Counter(
            "parley_ads_identities_probing",
            "Callers (an identity, else an address) that were refused too many names in an hour.",
            registry=registry,
        )
        status_refused = Counter(
            "parley_ads_status_refused",
            "Calls of the status service (CSDS) that were refused, by the status they ended with.",
            ["code"],
            registry=registry,
        )
        self.polled = Gauge(
            "parley_ads_polled_subscriptions",
            "Subscriptions of clients that poll, over REST or by Fetch.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        polls = Counter(
            "parley_ads_polls",
            "Polls that were answered, by what with: whole (something new), unchanged, or turned_away.",
            ["answer"],
            registry=registry,
        )
        too_large = Counter(
            "parley_ads_states_too_large",
            "States that no SotW client could read and that were not sent.",
            ["type"],
            registry=registry,
        )
        opened = Counter("parley_ads_streams_opened", "Streams that were opened.", ["variant"], registry=registry)
        ended = Counter(
            "parley_ads_streams_ended",
            "Streams that ended, by the status they ended with.",
            ["code"],
            registry=registry,
        )
        requests = Counter("parley_ads_requests", "Requests that were read.", ["variant", "type"], registry=registry)
        responses = Counter("parley_ads_responses", "Responses that were sent.", ["variant", "type"], registry=registry)
        acks = Counter("parley_ads_acks", "Responses that clients acknowledged.", ["type"], registry=registry)
        nacks = Counter("parley_ads_nacks", "Responses that clients refused.", ["type"], registry=registry)
        heartbeats = Counter(
            "parley_ads_heartbeats",
            "Responses without content that renewed what clients hold for a limited time.",
            ["type"],
            registry=registry,
        )
        heals = Counter(
            "parley_ads_heals",
            "NACKs after which a client was sent again what it may have dropped.",
            ["type"],
            registry=registry,
        )
        unblamed = Counter(
            "parley_ads_nacks_without_content",
            "Responses without any resource that clients refused: the fault is this server's.",
            ["type"],
            registry=registry,
        )
        errors = Counter(
            "parley_ads_resource_errors", "Resource errors that were sent.", ["type", "code"], registry=registry
        )
        self.too_large = {kind: too_large.labels(kind) for kind in _TYPES}
        self.polls = {answer: Tally(polls.labels(answer)) for answer in POLL_ANSWERS}
        self.opened = {variant: opened.labels(variant) for variant in _VARIANTS}
        self.status_refused = {code: status_refused.labels(code) for code in END_CODES if code != "OK"}
        self.ended = {code: ended.labels(code) for code in END_CODES}
        both = list(product(_VARIANTS, _TYPES))
        self.bytes_sent = Tally(bytes_sent)
        self.requests = {labels: Tally(requests.labels(*labels)) for labels in both}
        self.responses = {labels: Tally(responses.labels(*labels)) for labels in both}
        self.heartbeats = {kind: Tally(heartbeats.labels(kind)) for kind in _TYPES}
        self.acks = {kind: Tally(acks.labels(kind)) for kind in _TYPES}
        self.errors = {(kind, code): Tally(errors.labels(kind, code.name)) for kind in _TYPES for code in StatusCode}
        tallies = (self.requests, self.responses, self.heartbeats, self.acks, self.errors, self.polls)
        self._tallies = (self.bytes_sent, *(tally for some in tallies for tally in some.values()))
        self.nacks = {kind: nacks.labels(kind) for kind in _TYPES}
        self.heals = {kind: heals.labels(kind) for kind in _TYPES}
        self.nacks_without_content = {kind: unblamed.labels(kind) for kind in _TYPES}

    def settle(self) -> None:
        """Settle all tallies (`Tally.settle`). Reading the registry of this process does so, too."""
        for tally in self._tallies:
            tally.settle()
