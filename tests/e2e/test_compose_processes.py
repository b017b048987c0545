"""Every process of docker-compose.yml, with its own command, variables and health check, but without containers.

Host names become loopback, the image's paths become directories, and each ADS replica gets the ports that a container
would have had to itself. Everything else is what compose would run.
"""

import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from envoy.service.discovery.v3 import ads_pb2_grpc, discovery_pb2
from prometheus_client.parser import text_string_to_metric_families

from controlplane.ops.supervisor.valkey import valkey_binary
from tests.support.compose import REST, ROOT, compose_document, env_file, interpolated
from tests.support.monitoring import QUERIES, Target, of_compose, of_kubernetes, selectors, targets
from tests.support.ports import free_ports
from tests.support.postgres import postgresql
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("production")]

PORT_OF = {"web": "9101", "ads": "9102", "worker": "9103", "beat": "9104"}
PORTS = ("8000", "18000", "18080", *PORT_OF.values())
SUFFIX = re.compile(r"_(total|bucket|sum|count)$")
# Labels whose values are closed sets, and those of Python's own metrics.
CLOSED = {"surface", "answer", "class", "limit", "status", "state", "kind", "code", "type", "variant", "le", "role"}
OF_PYTHON = {"generation", "implementation", "major", "minor", "patchlevel", "version"}
OF_BUILD = {"commit", "python"}
CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"


class Place(NamedTuple):
    """One process: its service, its home, and its ports here by those it has in its container."""

    service: str
    home: Path
    ports: dict[str, int]


@dataclass(slots=True)
class Rehearsal:
    """What compose would start, on this machine."""

    folder: Path
    database: str
    document: dict[str, Any] = field(default_factory=lambda: compose_document(REST))
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def secrets(self) -> Path:
        return self.folder / "deploy" / "compose" / "secrets"

    def service(self, name: str) -> dict[str, Any]:
        """A service with its variables replaced."""
        variables = env_file((self.folder / ".env").read_text(encoding="utf-8"))
        return dict(interpolated(self.document["services"][name], variables))

    def local(self, text: str, home: Path, ports: dict[str, int]) -> str:
        """A word of the compose file as it must be on this machine."""
        text = re.sub(r"^postgres://parley:[0-9a-f]+@postgres:5432/parley$", self.database, text)
        text = text.replace("@redis:6379", f"@127.0.0.1:{self.ports['redis']}")
        text = text.replace("/run/parley/tls", str(self.secrets / "ads")).replace("/run/secrets", str(self.secrets))
        text = text.replace("/var/lib/parley", str(home))
        for port, here in ports.items():
            text = re.sub(rf"^0\.0\.0\.0:{port}$", f"0.0.0.0:{here}", text)
            text = str(here) if text == port else text
        return text

    def environment(self, name: str, home: Path, ports: dict[str, int]) -> dict[str, str]:
        """What the image and compose set, and nothing of the person who runs the test."""
        ours = {key: self.local(value, home, ports) for key, value in self.service(name).get("environment", {}).items()}
        return {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", "PARLEY_HOME": str(home), **ours}

    def command(self, name: str, home: Path, ports: dict[str, int]) -> list[str]:
        """Entry point and command."""
        service = self.service(name)
        words = [*service.get("entrypoint", ["python", "manage.py"]), *service["command"]]
        return [sys.executable if word == "python" else self.local(word, home, ports) for word in words]

    def well(self, name: str, home: Path, ports: dict[str, int]) -> bool:
        """What the service's health check says."""
        _, *words = self.service(name)["healthcheck"]["test"]
        command = [sys.executable if word == "python" else word for word in words]
        environment = self.environment(name, home, ports)
        return (
            subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=30, check=False).returncode
            == 0
        )


@contextmanager
def _running(command: list[str], environment: dict[str, str], log: Path) -> "Iterator[subprocess.Popen[bytes]]":
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def _broker(rehearsal: Rehearsal) -> Iterator[None]:
    binary, (port,) = valkey_binary(), free_ports(1)
    rehearsal.ports["redis"] = port
    program, *words = rehearsal.service("redis")["command"]
    assert program == "valkey-server"
    command = [str(binary), *(rehearsal.local(word, rehearsal.folder, {}) for word in words)]
    local = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(rehearsal.folder)]
    with _running([*command, *local], {"PATH": os.environ["PATH"]}, rehearsal.folder / "redis.log"):
        yield


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    folder = tmp_path_factory.mktemp("compose")
    (folder / "deploy" / "compose").mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "compose" / "prepare.sh", folder / "deploy" / "compose")
    subprocess.run(
        ["sh", str(folder / "deploy" / "compose" / "prepare.sh")], check=True, capture_output=True, timeout=60
    )
    with ExitStack() as stack:
        found = Rehearsal(folder, stack.enter_context(postgresql()))
        stack.enter_context(_broker(found))
        home = folder / "migrate"
        environment = found.environment("migrate", home, {})
        subprocess.run(found.command("migrate", home, {}), cwd=ROOT, env=environment, check=True, timeout=90)
        yield found


def _places(rehearsal: Rehearsal) -> Iterator[Place]:
    """Every long-running process of ours: its service, home and ports."""
    for name in ("web", "worker", "beat", "ads"):
        for replica in range(rehearsal.service(name).get("deploy", {}).get("replicas", 1)):
            home = rehearsal.folder / f"{name}-{replica}"
            home.mkdir()
            yield Place(name, home, dict(zip(PORTS, free_ports(len(PORTS)), strict=True)))


@pytest.fixture(scope="module")
def places(rehearsal: Rehearsal) -> Iterator[list[Place]]:
    """Every process runs, with its own command, and is healthy by its own check."""
    with ExitStack() as stack:
        found = list(_places(rehearsal))
        for name, home, ports in found:
            command = rehearsal.command(name, home, ports)
            log = rehearsal.folder / f"{home.name}.log"
            stack.enter_context(_running(command, rehearsal.environment(name, home, ports), log))
        for name, home, ports in found:
            eventually(lambda n=name, h=home, p=ports: rehearsal.well(n, h, p), within_s=90, every_s=1)  # type: ignore[misc]
        yield found


def test_compose__every_process_with_its_own_command__becomes_healthy_and_serves(
    rehearsal: Rehearsal, places: list[Place]
) -> None:
    for name in ("admin.token", "client.token"):
        assert (rehearsal.folder / "migrate" / name).stat().st_mode & 0o077 == 0
    token = (rehearsal.folder / "migrate" / "client.token").read_text(encoding="utf-8").strip()
    replicas = [place.ports["18000"] for place in places if place.service == "ads"]
    assert len(replicas) == 2
    for port in replicas:
        assert _answer(_over_tls(rehearsal, port), token).type_url == CLUSTER
        assert _refusal(_over_tls(rehearsal, port), "") is grpc.StatusCode.UNAUTHENTICATED
        assert _refusal(_over_tls(rehearsal, port), token[:-1]) is grpc.StatusCode.UNAUTHENTICATED
        assert _refusal(grpc.insecure_channel(f"localhost:{port}"), token) is grpc.StatusCode.UNAVAILABLE


def test_compose__with_the_port_for_polls__serves_who_shows_a_token_over_tls(
    rehearsal: Rehearsal, places: list[Place]
) -> None:
    token = (rehearsal.folder / "migrate" / "client.token").read_text(encoding="utf-8").strip()
    for place in places:
        if place.service == "ads":
            assert _polled(rehearsal, place.ports["18080"], token) == 200
            assert _polled(rehearsal, place.ports["18080"], "") == 401


@pytest.mark.parametrize(("file", "names"), [("prometheus.yml", of_compose), ("kubernetes.yml", of_kubernetes)])
def test_prometheus__by_the_shipped_file__scrapes_every_process_and_finds_all_that_is_asked_for(
    file: str, names: Callable[[Target], str], rehearsal: Rehearsal, places: list[Place]
) -> None:
    asked = targets(file)
    families: set[str] = set()
    for target in asked:
        service = names(target)
        assert target.job == f"parley-{service}"
        for place in places:
            if place.service == service:
                found = _scraped(place.ports[str(target.port)], f"10.89.0.7:{target.port}", rehearsal)
                assert {f"parley_{service}_ready", "process_resident_memory_bytes"} <= found, place
                families |= found

    assert {names(target) for target in asked} == {place.service for place in places}
    for title, query in QUERIES.items():
        for metric, _ in selectors(query):
            assert metric == "up" or SUFFIX.sub("", metric) in families, title


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probe__by_the_address_of_a_container__is_answered_by_every_role(path: str, places: list[Place]) -> None:
    for place in places:
        port = PORT_OF[place.service]
        status, body = eventually(
            lambda here=place.ports[port], there=port: _got(here, path, f"10.244.1.9:{there}"),  # type: ignore[misc]
            lambda answer: answer[0] == 200,
            within_s=30,
        )
        assert status == 200, (place, body)


def test_public_address_of_web__metrics_and_foreign_names__404_and_400_in_one_line(
    rehearsal: Rehearsal, places: list[Place]
) -> None:
    web = next(place for place in places if place.service == "web")
    log = rehearsal.folder / f"{web.home.name}.log"
    port = web.ports["8000"]

    assert _got(port, "/metrics", "localhost")[0] == 404
    before = len(log.read_text().splitlines())
    foreign = _got(port, "/readyz", "web:8000")
    lines = log.read_text().splitlines()[before:]

    assert foreign[0] == 400
    (line,) = [json.loads(each) for each in lines]
    assert (line["event"], line["level"], line["host"]) == ("host.refused", "warning", "web:8000")


@pytest.mark.parametrize("service", ["web", "worker", "beat", "ads"])
def test_process__whose_metrics_address_is_taken__does_not_start_and_names_the_variable(
    service: str, rehearsal: Rehearsal, places: list[Place], tmp_path: Path
) -> None:
    running = next(place for place in places if place.service == service)
    taken = PORT_OF[service]
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True)) | {taken: running.ports[taken]}

    refused = subprocess.run(
        rehearsal.command(service, tmp_path, ports),
        cwd=ROOT,
        env=rehearsal.environment(service, tmp_path, ports),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )

    assert refused.returncode != 0
    assert "Traceback" not in refused.stdout
    variable = f"PARLEY_{service.upper()}_METRICS_ADDRESS"
    said = f"The address 0.0.0.0:{ports[taken]} ({variable}) cannot be used"
    assert said in refused.stdout
    assert f"Set {variable} to a free one" in refused.stdout


def _scraped(port: int, host: str, rehearsal: Rehearsal) -> set[str]:
    """The names of what a process tells Prometheus, who reads it and finds no secret and nobody's name."""
    status, page = _got(port, "/metrics", host)
    assert status == 200, page
    samples: set[tuple[str, frozenset[tuple[str, str]]]] = set()
    families = list(text_string_to_metric_families(page))
    for sample in (each for family in families for each in family.samples):
        series = (sample.name, frozenset(sample.labels.items()))
        assert series not in samples, "Prometheus refuses a page that tells one series twice"
        samples.add(series)
        assert sample.labels.keys() <= CLOSED | OF_PYTHON | OF_BUILD, sample
    variables = env_file((rehearsal.folder / ".env").read_text(encoding="utf-8"))
    tokens = [(rehearsal.folder / "migrate" / name).read_text().strip() for name in ("admin.token", "client.token")]
    secrets = [value for name, value in variables.items() if "PASSWORD" in name or "KEY" in name]
    assert len(secrets) >= 4
    assert not [each for each in (*secrets, *tokens, "rehearsal", '"default"') if each in page]
    return {family.name for family in families}


def _got(port: int, path: str, host: str) -> tuple[int, str]:
    """Status and body, asked as Prometheus asks."""
    accepted = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
    headers = {"Host": host, "Accept": accepted, "Accept-Encoding": "gzip", "User-Agent": "Prometheus/3.5.0"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def _over_tls(rehearsal: Rehearsal, port: int) -> grpc.Channel:
    authority = (rehearsal.secrets / "client" / "server-ca.pem").read_bytes()
    return grpc.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(authority))


def _answer(channel: grpc.Channel, token: str) -> discovery_pb2.DiscoveryResponse:
    """The first answer to a subscription by name, with this token or, where it is empty, with none."""
    request = discovery_pb2.DiscoveryRequest(type_url=CLUSTER, resource_names=["nobody"])
    request.node.id = "rehearsal"
    with channel:
        answers = ads_pb2_grpc.AggregatedDiscoveryServiceStub(channel).StreamAggregatedResources(
            iter([request]), timeout=20, metadata=[("authorization", f"Bearer {token}")] if token else []
        )
        return next(answers)


def _polled(rehearsal: Rehearsal, port: int, token: str) -> int:
    """The status of a poll with this token or, where it is empty, with none."""
    tls = ssl.create_default_context(cafile=str(rehearsal.secrets / "client" / "server-ca.pem"))
    connection = http.client.HTTPSConnection("localhost", port, timeout=20, context=tls)
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    try:
        connection.request("POST", "/v3/discovery:clusters", json.dumps({"node": {"id": "rehearsal"}}), headers)
        return connection.getresponse().status
    finally:
        connection.close()


def _refusal(channel: grpc.Channel, token: str) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as refused:
        _answer(channel, token)
    code: grpc.StatusCode = refused.value.code()
    return code
