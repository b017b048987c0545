"""A private key that was entered over REST and in the console's editor is nowhere but on the wire to those who may have
it, also after a data plane quoted it in a NACK and while the keys are rotated (reliability S5).
"""

import base64
import html
import json
import os
import secrets
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import redis
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from envoy.service.discovery.v3 import discovery_pb2
from google.rpc import status_pb2

from tests.support.certificates import Authority
from tests.support.console import Console
from tests.support.manifests import TYPE, cluster
from tests.support.stack import ROOT, Parley, running_up
from tests.support.waiting import eventually
from xdscore.resource_types import SECRET

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("up")]

SECRET_TYPE = "envoy.extensions.transport_sockets.tls.v3.Secret"
ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"


NAMES = ("pay", "edge", "console")
FIRST, SECOND = (base64.urlsafe_b64encode(secrets.token_bytes(32)).decode() for _ in range(2))


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    variables = {"PARLEY_ADMIN_PASSWORD": "a long password", "PARLEY_ENCRYPTION_KEYS": f"{FIRST},{SECOND}"}
    with running_up(tmp_path_factory.mktemp("secrets") / "home", variables) as up:
        rule = {"effect": "allow", "types": [SECRET.word], "pattern": "*"}
        assert up.call("POST", "/environments/default/rules", rule).status == 201
        yield up


class Canary:
    """A private key, and every spelling of it that would give it away."""

    def __init__(self) -> None:
        pair = Authority("ours").issue("spiffe://td.example/pay")
        self.pem, self.certificate = pair[0].decode(), pair[1].decode()
        key = serialization.load_pem_private_key(pair[0], None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        raw = key.private_numbers().private_value.to_bytes(32, "big")
        lines = self.pem.splitlines()[1:-1]
        self.spellings = {
            *(line.encode() for line in lines),
            raw,
            raw.hex().encode(),
            base64.b64encode(raw),
            # The PEM as JSON carries it in inline_bytes, in each of the three alignments, without what neighbours fill.
            *(base64.b64encode(self.pem.encode()[shift : shift + 90]) for shift in range(3)),
        }

    def manifest(self, name: str) -> dict[str, object]:
        chain, key = {"inline_string": self.certificate}, {"inline_string": self.pem}
        return {
            "@type": TYPE + SECRET_TYPE,
            "name": name,
            "tls_certificate": {"certificate_chain": chain, "private_key": key},
        }

    def cluster(self, name: str) -> dict[str, object]:
        """A cluster with the key inline, where it is no secret's but as secret (D18)."""
        common = {"tls_certificates": [self.manifest("")["tls_certificate"]]}
        tls = {"@type": TYPE + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"}
        socket = {"name": "tls", "typed_config": {**tls, "common_tls_context": common}}
        return {**cluster(name), "transport_socket": socket}

    def found_in(self, data: bytes) -> list[bytes]:
        return [spelling for spelling in self.spellings if spelling in data]


class Recorder(threading.Thread):
    """Every command that reaches the broker: tasks, hints, whatever they carry."""

    def __init__(self, home: Path) -> None:
        super().__init__(daemon=True)
        self._client = redis.Redis(unix_socket_path=str((home / "run/valkey.sock").resolve()))
        self.seen: list[bytes] = []
        self._monitor = self._client.monitor()  # type: ignore[no-untyped-call]  # as the library has it
        self._monitor.__enter__()

    def run(self) -> None:
        try:
            for command in self._monitor.listen():
                self.seen.append(str(command["command"]).encode())
        except (redis.RedisError, OSError, ValueError):
            return

    def dump(self) -> bytes:
        """Everything the broker holds."""
        parts = []
        for name in self._client.scan_iter(count=1000):
            data = self._client.dump(name)
            parts += [name, data if isinstance(data, bytes) else b""]
        return b"\n".join(parts)


class Stream:
    """One SotW stream that asks for secrets by name."""

    def __init__(self, parley: Parley, *names: str) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{parley.ads_port}")
        self._wanted = threading.Event()
        self._requests: list[bytes] = []
        self._names = names
        untyped: Any = self._channel
        self._call = untyped.stream_stream(ADS)(self._send(), timeout=60)
        self.ask()

    def ask(self, nonce: str = "", version: str = "", error: str = "") -> None:
        request = discovery_pb2.DiscoveryRequest(
            type_url=SECRET.url, resource_names=self._names, node={"id": "edge"}, response_nonce=nonce
        )
        request.version_info = version
        if error:
            request.error_detail.CopyFrom(status_pb2.Status(code=13, message=error))
        self._requests.append(request.SerializeToString())
        self._wanted.set()

    def answer(self) -> discovery_pb2.DiscoveryResponse:
        return discovery_pb2.DiscoveryResponse.FromString(next(self._call))

    def close(self) -> None:
        self._call.cancel()
        self._channel.close()

    def _send(self) -> Iterator[bytes]:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            while self._requests:
                yield self._requests.pop(0)


def test_secret__entered_used_refused_and_rotated__is_nowhere_but_on_the_wire(parley: Parley) -> None:
    canary, broker = Canary(), Recorder(parley.home)
    broker.start()
    browser = Browser(parley, "a long password")
    written = list(browser.write(canary.manifest("console")))
    parley.apply_and_publish(canary.manifest("pay"), canary.cluster("inline"), cluster("c"))
    put = parley.call("PUT", "/environments/default/resources/secret/edge", canary.manifest("edge"))
    assert put.status == 202, put
    parley.published(put.body["id"])

    stream = Stream(parley, *NAMES)
    served = stream.answer()
    assert len(served.resources) == len(NAMES)
    assert canary.found_in(served.SerializeToString())  # the check itself sees what it looks for
    dump = f'name: "pay" tls_certificate {{ private_key {{ inline_string: "{canary.pem}" }} }}'
    stream.ask(served.nonce, error=f"refused: {dump}\n{canary.pem}\n{json.dumps(canary.pem)}")
    eventually(lambda: parley.call("GET", "/incidents").body["results"], within_s=10)

    rotated = _rotate(parley)
    assert "Sealed anew: 4 secrets," in rotated

    stream.close()
    again = Stream(parley, *NAMES)
    assert canary.found_in(again.answer().SerializeToString())
    again.close()

    places = {"rotate_keys, what it says": rotated.encode(), **dict(written), **dict(_places(parley, broker, browser))}
    assert {"page /e/default/resource?type=secret&name=console", "page /e/default/export"} <= places.keys()
    assert len(places) > 60
    assert {place: canary.found_in(data) for place, data in places.items() if canary.found_in(data)} == {}


def _rotate(parley: Parley) -> str:
    """Make the second key the first. Web, worker and ads, which know both, serve on and notice nothing."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "DJANGO_"))},
        "PARLEY_HOME": str(parley.home),
        "PARLEY_ENCRYPTION_KEYS": f"{SECOND},{FIRST}",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "rotate_keys"],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout + done.stderr


def _places(parley: Parley, broker: Recorder, browser: "Browser") -> Iterator[tuple[str, bytes]]:
    yield "broker, what it was told", b"\n".join(broker.seen)
    yield "broker, what it holds", broker.dump()
    for file in sorted(parley.home.rglob("*")):
        if file.is_file():
            yield f"file {file.relative_to(parley.home)}", file.read_bytes()
    for file in parley.home.parent.glob("*.log"):
        yield f"output {file.name}", file.read_bytes()
    # Rows as they read, too: a value may be spread over pages of the file.
    with sqlite3.connect(f"file:{parley.home / 'db.sqlite3'}?mode=ro", uri=True) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = database.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608 - a table's own name
            yield f"table {table}", b"\n".join(_bytes(value) for row in rows for value in row)
    for path in _api_paths(parley):
        answer = parley.call("GET", path)
        yield f"GET {path}", json.dumps(answer.body).encode()
    yield from browser.pages()


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _api_paths(parley: Parley) -> Iterator[str]:
    resources = "/environments/default/resources"
    (incident, *_) = parley.call("GET", "/incidents").body["results"]
    (client, *_) = parley.call("GET", "/clients").body["results"]
    yield from (
        "/environments",
        resources,
        f"{resources}?manifests=true",
        "/audit",
        "/incidents",
        "/clients",
        "/tokens",
    )
    for name in NAMES:
        yield from (f"{resources}/secret/{name}", f"{resources}/secret/{name}/revisions")
        yield f"/explain?environment=default&client=edge&type=secret&name={name}"
    yield from ("/environments/default/snapshots", "/environments/default/snapshots/1")
    yield from (f"/incidents/{incident['id']}", f"/clients/{client['id']}", f"/clients/{client['id']}/subscriptions")


class Browser(Console):
    """The console, as the administrator sees it."""

    def write(self, manifest: dict[str, object]) -> Iterator[tuple[str, bytes]]:
        """Enter a resource in the editor and by an import: checked, refused for a mistake, and saved; with and without
        the script that asks for parts of the page. What is said to each.
        """
        sound = json.dumps(manifest, indent=1)
        wrong = {"mistaken": sound.replace('"name"', '"nmae"'), "no manifest": sound[:-1], "sound": sound}
        for path in ("/e/default/resources/new", "/e/default/import"):
            for headers in ({"X-Parley-Part": "1"}, {}):
                for action in ("check", "save"):
                    for what, text in wrong.items():
                        given = {"text": text, "action": action, "message": what, "revision": "0"}
                        yield f"{action} {what} at {path} {headers}", self.post(path, given, headers)

    def pages(self) -> Iterator[tuple[str, bytes]]:
        """Every page that a page links to."""
        resource = "/e/default/resource{}?type=secret&name=console{}"
        asked = [resource.format(*each) for each in (("", ""), ("/edit", ""), ("", "&tab=history"))]
        waiting, seen = [*asked, "/e/default/export", "/", "/x?e=default&t=secret&n=pay"], set[str]()
        while waiting and len(seen) < 120:
            path = waiting.pop(0)
            seen.add(path)
            page = self.open(path)
            yield f"page {path}", page
            for link in page.split(b'href="')[1:]:
                target = html.unescape(link.split(b'"')[0].decode()).partition("#")[0]
                if target.startswith("/") and not target.startswith(("/static", "/logout", "/theme")):
                    waiting += [target] if target not in seen | set(waiting) else []
