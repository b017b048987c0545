"""Every process of docker-compose.yml, with its own command, variables and health check, but without containers.

Host names become loopback, the image's paths become directories, and each ADS replica gets the ports that a container
would have had to itself. Everything else is what compose would run.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from envoy.service.discovery.v3 import ads_pb2_grpc, discovery_pb2

from controlplane.ops.supervisor.valkey import valkey_binary
from tests.support.compose import ROOT, compose_document, env_file, interpolated
from tests.support.ports import free_ports
from tests.support.postgres import postgresql
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("production")]

CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"


@dataclass(slots=True)
class Rehearsal:
    """What compose would start, on this machine."""

    folder: Path
    database: str
    document: dict[str, Any] = field(default_factory=compose_document)
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


def _places(rehearsal: Rehearsal) -> Iterator[tuple[str, Path, dict[str, int]]]:
    """Every long-running process of ours: its service, home and ports."""
    for name in ("web", "worker", "beat", "ads"):
        for replica in range(rehearsal.service(name).get("deploy", {}).get("replicas", 1)):
            home = rehearsal.folder / f"{name}-{replica}"
            home.mkdir()
            yield name, home, dict(zip(("8000", "18000", "9102"), free_ports(3), strict=True))


def test_compose__every_process_with_its_own_command__becomes_healthy_and_serves(rehearsal: Rehearsal) -> None:
    with ExitStack() as stack:
        places = list(_places(rehearsal))
        for name, home, ports in places:
            command = rehearsal.command(name, home, ports)
            log = rehearsal.folder / f"{home.name}.log"
            stack.enter_context(_running(command, rehearsal.environment(name, home, ports), log))

        for name, home, ports in places:
            eventually(lambda n=name, h=home, p=ports: rehearsal.well(n, h, p), within_s=90, every_s=1)  # type: ignore[misc]

        for name in ("admin.token", "client.token"):
            assert (rehearsal.folder / "migrate" / name).stat().st_mode & 0o077 == 0
        token = (rehearsal.folder / "migrate" / "client.token").read_text(encoding="utf-8").strip()
        replicas = [ports["18000"] for name, _, ports in places if name == "ads"]
        assert len(replicas) == 2
        for port in replicas:
            assert _answer(_over_tls(rehearsal, port), token).type_url == CLUSTER
            assert _refusal(_over_tls(rehearsal, port), "") is grpc.StatusCode.UNAUTHENTICATED
            assert _refusal(_over_tls(rehearsal, port), token[:-1]) is grpc.StatusCode.UNAUTHENTICATED
            assert _refusal(grpc.insecure_channel(f"localhost:{port}"), token) is grpc.StatusCode.UNAVAILABLE


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


def _refusal(channel: grpc.Channel, token: str) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as refused:
        _answer(channel, token)
    code: grpc.StatusCode = refused.value.code()
    return code
