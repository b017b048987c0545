"""The ADS server as a process: start, refusal to start, readiness, clean end, several workers."""

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from envoy.service.discovery.v3 import discovery_pb2
from prometheus_client import CollectorRegistry

from adsserver.ports import Directory
from adsserver.running.process import AdsProcess
from tests.support.ads import config, raw_call
from tests.support.ads_client import until
from tests.support.ads_store import MemoryStore, Status, open_store
from tests.support.poller import poller
from tests.support.waiting import eventually
from xdscore.resource_types import CLUSTER
from xdscore.version import VERSION

ROOT = Path(__file__).parents[3]
WILDCARD = discovery_pb2.DiscoveryRequest(node={"id": "n"}, type_url=CLUSTER.url).SerializeToString()
METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Started:
    """A running server and its three ports."""

    process: subprocess.Popen[str]
    port: int
    rest_port: int
    metrics_port: int

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def wait_ready(self) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if self.get("/readyz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        pytest.fail(f"not ready: {self.process.poll()}")

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit status, output and errors."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def start(home: Path, workers: int = 1, port: int = 0, rest_port: int = 0, metrics_port: int = 0) -> Started:
    port, rest_port, metrics_port = port or free_port(), rest_port or free_port(), metrics_port or free_port()
    command = [sys.executable, "-m", "tests.support.serve_ads"]
    arguments = [*(f"127.0.0.1:{each}" for each in (port, rest_port, metrics_port)), str(workers), str(home)]
    process = subprocess.Popen(
        [*command, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    return Started(process, port, rest_port, metrics_port)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Started]:
    started = start(tmp_path)
    yield from running(started)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Started]:
    yield from running(start(tmp_path, workers=2))


def running(started: Started) -> Iterator[Started]:
    try:
        started.wait_ready()
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
        started.process.communicate()


def refusal(started: Started) -> str:
    """What a server says that does not start; its status must be 2."""
    try:
        _, said = started.process.communicate(timeout=30)
    finally:
        started.process.kill()
    assert started.process.returncode == 2
    return said


async def identifiers(port: int, streams: int) -> set[str]:
    """Who answered each of these streams, each on a connection of its own."""
    seen = set()
    for _ in range(streams):
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            call = raw_call(channel, METHOD)
            await call.write(WILDCARD)
            async with asyncio.timeout(5):
                answer = discovery_pb2.DiscoveryResponse.FromString(await call.read())
            assert len(answer.resources) == 1
            seen.add(answer.control_plane.identifier)
            call.cancel()
    return seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve__signal__ends_cleanly_after_its_store(one: Started, number: int) -> None:
    seen = asyncio.run(identifiers(one.port, 1))

    status, out, _ = one.end(number)

    assert status == 0
    assert "store stopped after 1 streams" in out
    assert seen == {f"parley/{VERSION}/{socket.gethostname()}/{one.process.pid}"}


def test_serve__ready__says_what_is_loaded_and_counts(one: Started) -> None:
    asyncio.run(identifiers(one.port, 3))

    assert json.loads(one.get("/readyz")[1])["environments"] == {"default": {"lineage": "test", "epoch": 1}}
    assert 'parley_ads_responses_total{type="cluster",variant="sotw"} 3.0' in one.get("/metrics")[1]
    assert one.get("/healthz") == (200, "ok\n")


@pytest.mark.parametrize("workers", [1, 2])
def test_serve__taken_port__one_sentence_and_status_two(tmp_path: Path, workers: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ours_said = refusal(start(tmp_path, workers=workers, port=port))
        rest_said = refusal(start(tmp_path, workers=workers, rest_port=port))
        metrics_said = refusal(start(tmp_path, workers=workers, metrics_port=port))

    assert f"The address 127.0.0.1:{port} (PARLEY_ADS_ADDRESS) cannot be used" in ours_said
    assert f"The address 127.0.0.1:{port} (PARLEY_ADS_METRICS_ADDRESS) cannot be used" in metrics_said
    assert f"The address 127.0.0.1:{port} (PARLEY_ADS_METRICS_ADDRESS) cannot be used" in metrics_said
    assert f"The address 127.0.0.1:{port} (PARLEY_ADS_REST_ADDRESS) cannot be used" in rest_said
    assert "Traceback" not in ours_said + rest_said + metrics_said
    assert not list(tmp_path.glob("run/*"))


def test_serve__port_of_another_ads_server__is_not_shared_by_mistake(one: Started, tmp_path: Path) -> None:
    said = refusal(start(tmp_path, port=one.port))

    assert f"The address 127.0.0.1:{one.port} (PARLEY_ADS_ADDRESS) cannot be used" in said


def test_workers__two__share_the_port_and_are_told_of_as_one(two: Started) -> None:
    seen = asyncio.run(identifiers(two.port, 24))

    pids = {int(identifier.rsplit("/", 1)[1]) for identifier in seen}
    assert len(pids) == 2
    assert two.process.pid not in pids
    # A worker tells what it counted each second.
    counted = 'parley_ads_responses_total{type="cluster",variant="sotw"} 24.0'
    eventually(lambda: two.get("/metrics")[1], lambda page: counted in page, within_s=20)
    status, _, errors = two.end()
    assert status == 0, errors
    assert not any(alive(pid) for pid in pids)


def test_workers__two__share_the_port_of_rest_and_agree_about_versions(two: Started) -> None:
    async def polls() -> tuple[set[str], set[int]]:
        servers, statuses = set(), set()
        version = ""
        for _ in range(40):
            async with poller(two.rest_port) as client:
                fresh = await client.ask("clusters")
                servers.add(fresh.json["control_plane"]["identifier"])
                version = version or fresh.json["version_info"]
            async with poller(two.rest_port) as client:
                # Whichever of them answers, it knows what the other one gave.
                statuses.add((await client.ask("clusters", version_info=version)).status)
        return servers, statuses

    servers, statuses = asyncio.run(polls())

    assert (len(servers), statuses) == (2, {304})


def test_workers__one_is_killed__the_other_serves_and_a_new_one_comes(two: Started) -> None:
    pids = {int(identifier.rsplit("/", 1)[1]) for identifier in asyncio.run(identifiers(two.port, 24))}
    victim = min(pids)

    os.kill(victim, signal.SIGKILL)
    time.sleep(0.3)
    during = two.get("/readyz")
    meanwhile = asyncio.run(identifiers(two.port, 4))
    two.wait_ready()
    after = {int(identifier.rsplit("/", 1)[1]) for identifier in asyncio.run(identifiers(two.port, 24))}

    assert during[0] == 503
    assert "not running" in during[1] or "starting" in during[1]
    assert len(meanwhile) == 1
    assert len(after) == 2
    assert victim not in after


def test_workers__parent_is_killed__they_end(two: Started) -> None:
    pids = {int(identifier.rsplit("/", 1)[1]) for identifier in asyncio.run(identifiers(two.port, 24))}

    two.process.kill()
    two.process.wait()
    until = time.monotonic() + 15
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)

    assert not any(alive(pid) for pid in pids)


def alive(pid: int) -> bool:
    """Whether the process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_readiness__before_anything_is_loaded__says_starting() -> None:
    process = AdsProcess(config(), CollectorRegistry())

    assert process.readiness().reasons == ("starting",)


class RefusingStore(MemoryStore):
    """Its database answers, with a snapshot that cannot be verified."""

    def status(self) -> Status:
        return Status({}, detail="snapshot 2 of 'default' is refused")


async def test_readiness__database_answers_with_what_is_refused__warns() -> None:
    process = AdsProcess(config(), CollectorRegistry())
    run = asyncio.create_task(process.run(RefusingStore))
    await until(lambda: process.readiness().warnings)

    assert process.readiness().warnings == ("degraded: snapshot 2 of 'default' is refused",)
    process.stop()
    await run


async def test_readiness__snapshot_is_served_and_not_listed_yet__not_ready() -> None:
    # An upgrade goes on to the next replica as soon as this one is ready.
    process = AdsProcess(config(), CollectorRegistry())
    run = asyncio.create_task(process.run(RefusingStore))
    await until(lambda: process._server is not None and process._server.has_snapshot)

    assert process.readiness().reasons == ("no verified snapshot of any environment has been loaded yet",)
    process.stop()
    await run


async def test_collector__first_snapshot__is_left_alone() -> None:
    taken: list[Directory] = []

    def observed(on_directory: Callable[[Directory], None]) -> MemoryStore:
        def take(directory: Directory) -> None:
            taken.append(directory)
            on_directory(directory)

        return open_store(take)

    process = AdsProcess(config(), CollectorRegistry())
    run = asyncio.create_task(process.run(observed))
    try:
        await until(lambda: not process.readiness().reasons)

        assert not any(each is taken[0] for each in gc.get_objects())
    finally:
        gc.unfreeze()
        process.stop()
        await run
