"""The demo starts beside whatever is there already."""

import json
import socket
from pathlib import Path

from controlplane.ops.demo.__main__ import admin_port_free


def bootstrap(folder: Path, port: int) -> Path:
    file = folder / "demo-envoy.json"
    file.write_text(
        json.dumps({"admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}})
    )
    return file


def port_of(file: Path) -> int:
    return int(json.loads(file.read_text())["admin"]["address"]["socket_address"]["port_value"])


def test_envoy__another_has_its_admin_port__gets_a_free_one_and_else_keeps_its_own(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        file = bootstrap(tmp_path, taken)

        admin_port_free(file)

        assert port_of(file) != taken
    file = bootstrap(tmp_path, taken)
    admin_port_free(file)
    assert port_of(file) == taken
