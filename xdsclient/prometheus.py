"""The metrics of gRFC A78, with the cache states of A88, as Prometheus text.

The instruments keep their OpenTelemetry names with underscores for dots: `grpc.xds_client.resources` is
`grpc_xds_client_resources`, its label `grpc.xds.cache_state` is `grpc_xds_cache_state`.
"""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from xdsclient.client import XdsClient

_SERVER = ("grpc_target", "grpc_xds_server")
_UPDATES = (*_SERVER, "grpc_xds_resource_type")
_RESOURCES = ("grpc_target", "grpc_xds_authority", "grpc_xds_cache_state", "grpc_xds_resource_type")


class PrometheusMetrics(Collector):
    """Prometheus metrics of any number of clients. Give it to each client as `metrics`, and each client to
    `observe`.
    """

    def __init__(self) -> None:
        self._connected: dict[tuple[str, ...], bool] = {}
        self._failures: Counter[tuple[str, ...]] = Counter()
        self._valid: Counter[tuple[str, ...]] = Counter()
        self._invalid: Counter[tuple[str, ...]] = Counter()
        self._clients: list[XdsClient] = []

    def observe(self, client: XdsClient) -> None:
        """Include the resource counts of this client in the text from now on."""
        self._clients.append(client)

    def text(self) -> str:
        """All metrics in Prometheus' text format."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry).decode()

    # Metrics.

    def connected(self, *, target: str, server: str, value: bool) -> None:
        self._connected[target, server] = value

    def server_failure(self, *, target: str, server: str) -> None:
        self._failures[target, server] += 1

    def updates(self, *, target: str, server: str, resource_type: str, valid: int, invalid: int) -> None:
        self._valid[target, server, resource_type] += valid
        self._invalid[target, server, resource_type] += invalid

    # Collector.

    def collect(self) -> Iterator[Metric]:
        connected = GaugeMetricFamily(
            "grpc_xds_client_connected", "Whether there is a working ADS stream to the server.", labels=_SERVER
        )
        for labels, value in self._connected.items():
            connected.add_metric(labels, value)
        yield connected
        yield _counter("server_failure", "Servers that went from healthy to unhealthy.", _SERVER, self._failures)
        yield _counter("resource_updates_valid", "Resources received that were valid.", _UPDATES, self._valid)
        yield _counter("resource_updates_invalid", "Resources received that were invalid.", _UPDATES, self._invalid)
        resources = GaugeMetricFamily("grpc_xds_client_resources", "Resources in the cache.", labels=_RESOURCES)
        for client in self._clients:
            for each, count in client.resource_counts().items():
                resources.add_metric((each.target, each.authority, each.cache_state, each.resource_type), count)
        yield resources


def _counter(name: str, text: str, labels: tuple[str, ...], values: Counter[tuple[str, ...]]) -> Metric:
    family = CounterMetricFamily(f"grpc_xds_client_{name}", text, labels=labels)
    for each, value in values.items():
        family.add_metric(each, value)
    return family
