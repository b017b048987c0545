"""A private key that was entered over REST is nowhere but on the wire to those who may have it, also after a data plane
quoted it in a NACK and while the keys are rotated (reliability S5).
"""

import base64
import json
import os
import secrets
import sqlite3
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import grpc
import pytest
import redis
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from envoy.service.discovery.v3 import discovery_pb2
from google.rpc import status_pb2

from tests.support.certificates import Authority
from tests.support.manifests import TYPE, cluster
from tests.support.stack import ROOT, Parley, running_up
from tests.support.waiting import eventually
from xdscore.resource_types import SECRET

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("up")]

SECRET_TYPE = "envoy.extensions.transport_sockets.tls.v3.Secret"
ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"


FIRST, SECOND = (base64.urlsafe_b64encode(secrets.token_bytes(32)).decode() for _ in range(2))


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    variables = {"PARLEY_ADMIN_PASSWORD": "a long password", "PARLEY_ENCRYPTION_KEYS": f"{FIRST},{SECOND}"}
    with running_up(tmp_path_factory.mktemp("secrets") / "home", variables) as up:
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
    parley.apply_and_publish(canary.manifest("pay"), cluster("c"))
    put = parley.call("PUT", "/environments/default/resources/secret/edge", canary.manifest("edge"))
    assert put.status == 202, put
    parley.published(put.body["id"])

    stream = Stream(parley, "pay", "edge")
    served = stream.answer()
    assert canary.found_in(served.SerializeToString())  # the check itself sees what it looks for
    dump = f'name: "pay" tls_certificate {{ private_key {{ inline_string: "{canary.pem}" }} }}'
    stream.ask(served.nonce, error=f"refused: {dump}\n{canary.pem}\n{json.dumps(canary.pem)}")
    eventually(lambda: parley.call("GET", "/incidents").body["results"], within_s=10)

    rotated = _rotate(parley)
    assert "Sealed anew: 2 secrets," in rotated

    stream.close()
    again = Stream(parley, "pay", "edge")
    assert canary.found_in(again.answer().SerializeToString())
    again.close()

    places = {"rotate_keys, what it says": rotated.encode(), **dict(_places(parley, broker))}
    assert len(places) > 30
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


def _places(parley: Parley, broker: Recorder) -> Iterator[tuple[str, bytes]]:
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
    yield from _pages(parley)


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
    for name in ("pay", "edge"):
        yield from (f"{resources}/secret/{name}", f"{resources}/secret/{name}/revisions")
        yield f"/explain?environment=default&client=edge&type=secret&name={name}"
    yield from ("/environments/default/snapshots", "/environments/default/snapshots/1")
    yield from (f"/incidents/{incident['id']}", f"/clients/{client['id']}", f"/clients/{client['id']}/subscriptions")


def _pages(parley: Parley) -> Iterator[tuple[str, bytes]]:
    """The console, as the administrator sees it: every page that a page links to."""
    base, jar = f"http://127.0.0.1:{parley.web_port}", CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    browser.open(f"{base}/login").read()
    form = {"username": "admin", "password": "a long password"}
    token = next(cookie.value for cookie in jar if cookie.name.endswith("csrftoken"))
    login = urllib.request.Request(  # noqa: S310 - loopback
        f"{base}/login",
        data=urlencode({**form, "csrfmiddlewaretoken": token}).encode(),
        headers={"Referer": f"{base}/login", "Origin": base},
    )
    browser.open(login).read()
    waiting, seen = ["/", "/x?e=default&t=secret&n=pay", "/admin/"], set[str]()
    while waiting and len(seen) < 60:
        path = waiting.pop(0)
        seen.add(path)
        try:
            page: bytes = browser.open(base + path).read()
        except urllib.error.HTTPError as error:
            page = error.read()
        yield f"page {path}", page
        for link in page.split(b'href="')[1:]:
            target = link.split(b'"')[0].decode().replace("&amp;", "&").partition("#")[0]
            if target.startswith("/") and not target.startswith(("/static", "/logout", "/admin/logout")):
                waiting += [target] if target not in seen | set(waiting) else []
