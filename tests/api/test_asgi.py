"""The API as a server calls it: paths as they were sent, bodies that are too large, ids of requests."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from asgiref.sync import SyncToAsync, sync_to_async

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create
from controlplane.api.body_limit import BodyLimit, Message, Receive, Send
from controlplane.catalog.models import Resource
from controlplane.catalog.services import environment_default_ensure
from controlplane.ops.web import application
from tests.support.manifests import TYPE, cluster, endpoints
from xdscore.build import BUILD_VERSION
from xdscore.limits import Limits

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).parents[2]
RESOURCES = "/api/v1/environments/default/resources"


@pytest.fixture
def token() -> str:
    environment_default_ensure()
    return api_token_create(name="t", scopes=ADMIN_SCOPES, actor=SYSTEM)[1]


@pytest.fixture
async def http(token: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        yield client


@pytest.mark.filterwarnings("error")
async def test_static_file__of_the_console__is_sent_whole_and_without_a_warning(http: httpx.AsyncClient) -> None:
    file = ROOT / "static" / "console" / "editor.js"

    answer = await http.get("/static/console/editor.js")
    again = await http.get("/static/console/editor.js", headers={"If-None-Match": answer.headers["ETag"]})

    assert answer.status_code == 200
    assert answer.content == file.read_bytes()
    assert (again.status_code, again.content) == (304, b"")


NAMES = {
    "a slash": ("a/b", "a%2Fb"),
    "a question mark": ("a?b", "a%3Fb"),
    "a percent sign": ("100%", "100%25"),
    "an encoded slash in itself": ("a%2Fb", "a%252Fb"),
    "a word that is a path": ("a/revisions", "a%2Frevisions"),
    "a hash and a plus": ("a#b+c", "a%23b%2Bc"),
    "dots": ("a/../b", "a%2F..%2Fb"),
    "other letters": ("zahlung-ü-支払", "zahlung-%C3%BC-%E6%94%AF%E6%89%95"),
    "a slash at its end": ("a/", "a%2F"),
    "xdstp": (
        "xdstp://auth/envoy.config.cluster.v3.Cluster/a//b?x=1&y=2",
        "xdstp%3A%2F%2Fauth%2Fenvoy.config.cluster.v3.Cluster%2Fa%2F%2Fb%3Fx%3D1%26y%3D2",
    ),
}


@pytest.mark.parametrize(("name", "encoded"), NAMES.values(), ids=NAMES.keys())
async def test_path__encoded_name__means_exactly_that_name(http: httpx.AsyncClient, name: str, encoded: str) -> None:
    url = f"{RESOURCES}/type.googleapis.com%2Fenvoy.config.cluster.v3.Cluster/{encoded}"

    put = await http.put(url, json=cluster(name))
    read = await http.get(url)
    history = await http.get(f"{url}/revisions")

    assert put.status_code == 202, put.text
    assert read.json()["name"] == name
    assert [row["revision"] for row in history.json()["results"]] == [1]
    stored = await sync_to_async(lambda: list(Resource.objects.values_list("type", "name")))()
    assert stored == [("cluster", name)]
    assert (await http.delete(url)).status_code == 202


async def test_path__slashes_not_encoded__are_understood(http: httpx.AsyncClient) -> None:
    wrapped = {
        "@type": TYPE + "envoy.service.discovery.v3.Resource",
        "name": "xdstp://auth/x/pay",
        "resource": endpoints("pay", 1),
    }

    put = await http.put(f"{RESOURCES}/endpoint/xdstp://auth/x/pay", json=wrapped)

    assert put.status_code == 202, put.text


async def test_list__link_to_the_next_page__keeps_its_parameters(http: httpx.AsyncClient) -> None:
    for name in ("a?1", "a?2", "b"):
        await http.put(f"{RESOURCES}/cluster/{name.replace('?', '%3F')}", json=cluster(name))

    first = (await http.get(RESOURCES, params={"name": "a?", "limit": 1})).json()
    second = (await http.get(first["next"])).json()

    assert [row["name"] for page in (first, second) for row in page["results"]] == ["a?1", "a?2"]
    assert second["next"] is None


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b" " * 65_536


async def test_body__larger_than_allowed_and_of_unknown_length__413(http: httpx.AsyncClient) -> None:
    answer = await http.put(
        f"{RESOURCES}/cluster/pay",
        content=chunks(80),
        headers={"Content-Type": "application/json", "X-Request-ID": "r-1"},
    )

    assert answer.status_code == 413
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (answer.json()["code"], answer.json()["instance"]) == ("XDS1004", "/requests/r-1")
    assert answer.headers["X-Request-ID"] == "r-1"


async def test_body__of_unknown_length_within_the_limit__is_read(http: httpx.AsyncClient) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b'{"resources": '
        yield b"[]}"

    answer = await http.post(
        "/api/v1/environments/default/apply", content=body(), headers={"Content-Type": "application/json"}
    )

    assert answer.json() == {"changed": False}


@pytest.mark.parametrize("last", [{"type": "http.request", "body": b"b"}, {"type": "http.disconnect"}])
async def test_body__of_unknown_length__is_handed_on_as_it_comes_and_is_whole_only_where_it_ended(
    last: Message,
) -> None:
    first: Message = {"type": "http.request", "body": b"a", "more_body": True}
    coming, read = [first, last], []

    async def receive() -> Message:
        return coming.pop(0)

    async def application(_scope: Message, take: Receive, _send: Send) -> None:
        read.append(await take())
        assert coming == [last]  # nobody keeps what is not asked for yet
        read.append(await take())

    async def send(_message: Message) -> None:
        raise AssertionError("nothing is refused")

    scope: Message = {"type": "http", "path": "/api/v1/validate", "headers": [(b"transfer-encoding", b"chunked")]}
    await BodyLimit(application, Limits())(scope, receive, send)

    assert read == [first, last]


async def test_body__that_says_it_is_too_large__is_refused_unread(http: httpx.AsyncClient) -> None:
    answer = await http.put(f"{RESOURCES}/cluster/pay", content=b"x" * (4 * 1024 * 1024 + 1))

    assert answer.status_code == 413


async def test_body__ten_mebibytes_of_apply__is_read(http: httpx.AsyncClient) -> None:
    body = b'{"resources": []' + b" " * 10 * 1024 * 1024 + b"}"

    answer = await http.post(
        "/api/v1/environments/default/apply", content=body, headers={"Content-Type": "application/json"}
    )

    assert answer.json() == {"changed": False}


@pytest.mark.parametrize("length", ["-1", "abc", "9" * 30])
async def test_body__with_an_impossible_length__413(http: httpx.AsyncClient, length: str) -> None:
    answer = await http.put(f"{RESOURCES}/cluster/pay", content=b"", headers={"Content-Length": length})

    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("given", "kept"),
    [("ci-1234.abc_X", True), ("a" * 64, True), ("a" * 65, False), ("a b", False), ("", False), ("\x1b[31m", False)],
)
async def test_request_id__sane__is_kept_else_made(http: httpx.AsyncClient, given: str, kept: bool) -> None:
    answer = await http.get("/api/v1/environments", headers={"X-Request-ID": given})

    identity = answer.headers["X-Request-ID"]
    assert (identity == given) == kept
    assert 0 < len(identity) <= 64


async def test_request_id__of_a_write__is_in_the_change_and_the_audit_log(http: httpx.AsyncClient) -> None:
    answer = await http.put(f"{RESOURCES}/cluster/pay", json=cluster(), headers={"X-Request-ID": "ci-7"})

    events = (await http.get("/api/v1/audit", params={"request_id": "ci-7"})).json()["results"]
    assert answer.json()["request_id"] == "ci-7"
    assert [event["verb"] for event in events] == ["change.saved"]


@pytest.mark.parametrize("path", ["/api/v1/environments", "/api/v1/nothing", "/healthz"])
async def test_every_answer__carries_an_id_and_the_api_its_version(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)

    assert answer.headers["X-Request-ID"]
    assert answer.headers.get("API-Version", "") == ("1" if path.startswith("/api/") else "")


async def test_answer__of_the_api__tells_its_version_to_whoever_is_let_in(http: httpx.AsyncClient) -> None:
    known = await http.get("/api/v1/environments")
    strangers = [
        await http.get(path, headers={"Authorization": "Bearer nonsense"})
        for path in ("/api/v1/environments", "/api/v1/nowhere", "/api/v1/schema/", "/api/v1/schema/ui/", "/login")
    ]

    assert known.headers["Parley-Version"] == BUILD_VERSION
    assert [each.headers.get("Parley-Version") for each in strangers] == [None] * len(strangers)


async def test_request__with_a_token__takes_a_thread_only_for_the_view_and_the_end(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    call = SyncToAsync.__call__

    async def counted(hop: SyncToAsync[..., object], *args: object, **kwargs: object) -> object:
        taken.append(getattr(hop.func, "__qualname__", str(hop.func)))
        return await call(hop, *args, **kwargs)

    monkeypatch.setattr(SyncToAsync, "__call__", counted)

    answer = await http.put(f"{RESOURCES}/cluster/a", json=cluster("a"))

    assert answer.status_code == 202
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    # The view takes a thread, and so do Django's signals and the end of the answer; no middleware is among these.
    assert "View.as_view.<locals>.view" in taken
    assert [name for name in taken if "Middleware" in name or "process_" in name] == []
