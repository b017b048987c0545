"""What REST requests cost in a large environment (performance.md: apply; issue targets of list and explain)."""

import json
import time
from collections.abc import Callable, Iterator

from bench.filled import filled
from bench.registry import Measurement, Parameters, scenario
from bench.resources import cluster, cluster_name

_RESOURCES = 10_000
_HERE = "/api/v1/environments/default"
_NODE = "bench-1"


@scenario("apply", "REST apply of 1,000 new clusters to an environment of 10,000 resources", parameters={"repeat": 5})
def apply(parameters: Parameters) -> Iterator[Measurement]:
    """Measure an apply of many clusters. performance.md: at most 2 s, of which validation at most 0.5 ms a cluster."""
    with filled(10_000) as token:
        # The product is imported where it is installed.
        from django.test import Client  # noqa: PLC0415

        from xdscore.schema import Media, parse, read_manifests  # noqa: PLC0415

        client = Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"})
        took, parsed = [], []
        for round_ in range(parameters["repeat"]):
            manifests = [cluster(1_000_000 + round_ * 1_000 + number) for number in range(1_000)]
            body = json.dumps({"resources": manifests})
            began = time.perf_counter()
            answer = client.post("/api/v1/environments/default/apply", body, content_type="application/json")
            took.append(time.perf_counter() - began)
            if answer.status_code != 202:
                raise RuntimeError(f"apply was answered {answer.status_code}: {answer.content[:500]!r}")
            began = time.perf_counter()
            read, _ = read_manifests(json.dumps(manifests).encode(), Media.JSON)
            for manifest in read:
                parse(manifest)
            parsed.append((time.perf_counter() - began) * 1000 / len(manifests))
    yield Measurement("apply of 1,000 clusters", "s", tuple(took), at_most=2.0)
    yield Measurement("reading and validation of one cluster", "ms", tuple(parsed), at_most=0.5)


@scenario("list", "Pages of a list of 10,000 resources", parameters={"repeat": 21})
def list_(parameters: Parameters) -> Iterator[Measurement]:
    """Measure the pages of a list of resources: at most 200 ms a page, the longest page and the last one included."""
    with filled(_RESOURCES) as token:
        for what, query in (
            ("page of 100", "limit=100"),
            ("page of 1,000", "limit=1000"),
            ("last page of 1,000", f"limit=1000&offset={_RESOURCES - 1_000}"),
            ("page of 100 of those with a part in their name", "limit=100&name=0012"),
        ):
            get = _getter(token, f"{_HERE}/resources?{query}")
            yield from _timed(what, get, parameters["repeat"], at_most_ms=200)


@scenario("explain", "Why a client has a resource, or not, in an environment of 10,000", parameters={"repeat": 21})
def explain(parameters: Parameters) -> Iterator[Measurement]:
    """Measure an answer of Explain: at most 50 ms."""
    with filled(_RESOURCES) as token:
        from controlplane.builder.services import build  # noqa: PLC0415  the product is imported where it is installed
        from controlplane.catalog.selectors import environment_get  # noqa: PLC0415

        build(environment_id=environment_get(key="default").id)
        _connect()
        name = cluster_name(_RESOURCES // 20)
        for what, query in (
            ("a client and what it asks for", f"client={_NODE}&name={name}"),
            ("a client and what is not there", f"client={_NODE}&name=nobody"),
            ("no client is named", f"name={name}"),
        ):
            get = _getter(token, f"/api/v1/explain?environment=default&type=cluster&{query}")
            yield from _timed(what, get, parameters["repeat"], at_most_ms=50)


def _getter(token: str, path: str) -> Callable[[], None]:
    """A function that sends a GET within this process, so that only the server's part counts. It raises RuntimeError
    when the request is refused.
    """
    from django.test import Client  # noqa: PLC0415

    client = Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"})

    def get() -> None:
        answer = client.get(path)
        if answer.status_code != 200:
            raise RuntimeError(f"{path} was answered {answer.status_code}: {answer.content[:500]!r}")

    get()  # what is loaded and compiled once
    return get


def _timed(what: str, get: Callable[[], None], repeat: int, *, at_most_ms: float) -> Iterator[Measurement]:
    """Measure how long the request takes, and how much of that is this process's work: the rest is what else the
    machine does.
    """
    took, worked = [], []
    for _ in range(repeat):
        began, work_began = time.perf_counter(), time.process_time()
        get()
        took.append((time.perf_counter() - began) * 1000)
        worked.append((time.process_time() - work_began) * 1000)
    yield Measurement(what, "ms", tuple(took), at_most=at_most_ms)
    yield Measurement("  of it, processor time", "ms", tuple(worked))


def _connect() -> None:
    """Report a client that subscribes to every cluster, through the fact writer that ADS uses."""
    from adsserver.engine.events import Subscribed, Variant  # noqa: PLC0415
    from adsserver.ports import StreamInfo  # noqa: PLC0415
    from adsserver.store.facts import FactBuffer  # noqa: PLC0415
    from controlplane.clients.selectors import client_list  # noqa: PLC0415
    from xdscore.resource_types import CLUSTER  # noqa: PLC0415

    buffer = FactBuffer()
    stream = StreamInfo(
        id=f"{1:032x}", environment="default", identity="", node_id=_NODE, node_cluster="bench", user_agent="envoy",
        user_agent_version="1.40.0", variant=Variant.SOTW, peer="ipv4:127.0.0.1:40000",
    )  # fmt: skip
    buffer.opened(stream)
    buffer.learnt(stream, Subscribed(CLUSTER, True, frozenset()))
    buffer.start()
    while not client_list(environment_keys=("default",)):
        time.sleep(0.1)
