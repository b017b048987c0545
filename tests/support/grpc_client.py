"""A real proxyless gRPC client in a process of its own: C-core reads its bootstrap once per process.

Run as a script it is that client: it makes the calls it reads on standard input, a question a line, and answers
in JSON.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import grpc
import grpc_csds
from envoy.admin.v3 import config_dump_shared_pb2

ROOT = Path(__file__).parents[2]
_MAX_CALLS = 64
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one call ended: "OK" or the status code's name, the answer or the error's text, and how many seconds it
    took.
    """

    code: str
    text: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Believed:
    """The state of one resource at the client, by its own CSDS: the state (ClientResourceStatus), the error and the
    version of what it was told last, and the version of the content in use, empty without one.
    """

    state: str
    details: str
    version: str
    in_use: str


@dataclass(slots=True)
class GrpcClient:
    """A gRPC client in a process of its own, which calls `xds:///` targets."""

    _process: "subprocess.Popen[str]" = field(repr=False)

    def call(self, target: str, text: str = "hello", *, timeout_s: float = 10.0) -> Outcome:
        """Make one unary call to a target such as `xds:///echo.demo`; how it ended."""
        self.begin([target], text, timeout_s=timeout_s)
        return self.finish([target])[target]

    def begin(
        self,
        targets: Iterable[str],
        text: str = "hello",
        *,
        timeout_s: float = 10.0,
        metadata: Mapping[str, str] = _NO_VARIABLES,
    ) -> None:
        """Start one call to each target, with this metadata; `finish` has their outcomes."""
        pairs = list(metadata.items())
        self._ask({"begin": list(targets), "text": text, "timeout_s": timeout_s, "metadata": pairs})

    def finish(self, targets: Iterable[str]) -> dict[str, Outcome]:
        """Wait until the calls that were begun to these targets have ended; how each did."""
        answers = self._ask({"finish": list(targets)})
        return {target: Outcome(**outcome) for target, outcome in answers.items()}

    def status(self) -> dict[tuple[str, str], Believed]:
        """The state of every resource at the client, by type URL and name. Each target asks by itself: names should be
        its own.
        """
        return {(type_url, name): Believed(**believed) for type_url, name, believed in self._ask({"status": True})}

    def serve_status(self) -> int:
        """Let the client serve its CSDS service from now on; the service's port."""
        return int(self._ask({"serve": True}))

    def _ask(self, question: dict[str, object]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def grpc_client(
    bootstrap: Mapping[str, Any], *, tp3: bool = True, variables: Mapping[str, str] = _NO_VARIABLES
) -> Iterator[GrpcClient]:
    """Run a client with this bootstrap until the block ends; `tp3` switches `resource_errors` on as C-core wants it.
    `variables` of its environment go before those it is given here.
    """
    environment = os.environ | {
        "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap),
        "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING": "true" if tp3 else "false",
        "GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS": "true",
        "GRPC_VERBOSITY": "NONE",
        **variables,
    }
    command = [sys.executable, "-m", "tests.support.grpc_client"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        try:
            yield GrpcClient(process)
        finally:
            process.kill()


def simple_bootstrap(*, ads_port: int, node_id: str, features: Sequence[str], cluster: str = "") -> dict[str, Any]:
    """A bootstrap with insecure ADS on loopback. `features`: server features beside `xds_v3`; whether a client drops
    what it had when it is told of an error (`fail_on_data_errors`) is for each test to say.
    """
    server = {
        "server_uri": f"127.0.0.1:{ads_port}",
        "channel_creds": [{"type": "insecure"}],
        "server_features": ["xds_v3", *features],
    }
    return {"xds_servers": [server], "node": {"id": node_id, "cluster": cluster}}


def _serve(lines: IO[str]) -> None:
    calls: dict[str, Future[dict[str, object]]] = {}
    channels: dict[str, grpc.Channel] = {}
    with ThreadPoolExecutor(_MAX_CALLS) as threads:
        for line in lines:
            question = json.loads(line)
            answer: object = None
            for target in question.get("begin", ()):
                if target not in channels:
                    channels[target] = grpc.insecure_channel(target)
                calls[target] = threads.submit(_call, channels[target], question)
            if "finish" in question:
                answer = {target: calls.pop(target).result() for target in question["finish"]}
            if "status" in question:
                answer = _status()
            if "serve" in question:
                server = grpc.server(threads)
                grpc_csds.add_csds_servicer(server)
                answer = server.add_insecure_port("127.0.0.1:0")
                server.start()
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _call(channel: grpc.Channel, question: Mapping[str, Any]) -> dict[str, object]:
    started = time.monotonic()
    given: list[tuple[str, str]] = question["metadata"]
    metadata = tuple((name, value.encode() if name.endswith("-bin") else value) for name, value in given)
    try:
        say = channel.unary_unary("/demo.Echo/Say", None, None)
        answer = say(question["text"].encode(), timeout=question["timeout_s"], metadata=metadata)
        code, words = "OK", answer.decode()
    except grpc.RpcError as error:
        code, words = error.code().name, error.details()
    return {"code": code, "text": words, "seconds": time.monotonic() - started}


def _status() -> list[tuple[str, str, dict[str, str]]]:
    response = grpc_csds.ClientStatusDiscoveryServiceServicer.FetchClientStatus(None, None)
    return [
        (each.type_url, each.name, _believed(each)) for client in response.config for each in client.generic_xds_configs
    ]


def _believed(each: Any) -> dict[str, str]:
    return {
        "state": config_dump_shared_pb2.ClientResourceStatus.Name(each.client_status),
        "details": each.error_state.details,
        "version": each.error_state.version_info or each.version_info,
        "in_use": each.version_info if each.HasField("xds_config") else "",
    }


if __name__ == "__main__":
    _serve(sys.stdin)
