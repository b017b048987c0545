"""Clients of the REST port that are hostile, hurried or unknown: each is told what is wrong, and none costs much."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from structlog.testing import capture_logs

from adsserver.config import AdsConfig, AdsConfigError, TlsFiles
from tests.support.ads import Running, config, running
from tests.support.ads_client import cluster, until
from tests.support.certificates import Authority, server_files, write_pair
from tests.support.poller import NODE, Got, Poller, poller
from xdscore.auth_modes import AuthMode
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.limits import Limits

CLUSTERS = "/v3/discovery:clusters"
LIMITS = Limits(first_request_ms=500, rest_request_bytes=64 * 1024, rest_connections=4)
PLAIN = config(rest_address="127.0.0.1:0", limits=LIMITS)


@pytest.fixture
async def run() -> AsyncIterator[Running]:
    async with running(PLAIN) as started:
        started.publish(cluster("a"))
        yield started


@pytest.fixture
async def client(run: Running) -> AsyncIterator[Poller]:
    async with poller(run.rest_port) as connected:
        yield connected


BODIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not JSON: Expecting value at line 1, column 1"),
    "cut": (b'{"node": {', "not JSON"),
    "not UTF-8": (b'{"node": {"id": "\xff"}}', "not UTF-8: byte 17 is none"),
    "deep": (b'{"node":' + b"[" * 30_000, "nests too deeply"),
    "a list": (b"[]", "not a JSON object"),
    "a key twice": (b'{"type_url": "a", "type_url": "b"}', "a key stands twice"),
    "both spellings": (b'{"type_url": "a", "typeUrl": "b"}', "'type_url' in both of its spellings"),
    "no number": (b'{"a": NaN}', "NaN is no JSON"),
    "a long number": (b'{"a": 1' + b"0" * 5_000 + b"}", "cannot be read"),
    "half a character": (b'{"node": {"id": "\\ud800"}}', "not a DiscoveryRequest in JSON"),
    "wrong kind": (b'{"resource_names": "a"}', "not a DiscoveryRequest in JSON"),
    "wrong number": (b'{"error_detail": {"code": "x"}}', "not a DiscoveryRequest in JSON"),
    "no node": (b"{}", "must have a node with an id"),
    "foreign type": (json.dumps({"node": NODE, "type_url": "type.googleapis.com/x"}).encode(), "another type"),
    "unprintable": (b'{"node": {"id": "a\\u0000b"}}', "characters that cannot be printed"),
}


@pytest.mark.parametrize("case", BODIES)
async def test_body__cannot_be_read__400_says_why_and_the_connection_goes_on(client: Poller, case: str) -> None:
    body, words = BODIES[case]

    with capture_logs() as logs:
        got = await client.post(CLUSTERS, body)
    after = await client.ask("clusters")

    assert (got.status, got.headers["content-type"]) == (400, "application/problem+json")
    assert words in got.json["detail"]
    assert after.status == 200
    assert [each for each in logs if each["log_level"] in {"error", "critical"}] == []


async def test_body__has_fields_that_nobody_knows__is_read(client: Poller) -> None:
    extensions = [{"name": "x", "type_urls": ["y"], "newer": {"than": "us"}}]

    got = await client.ask("clusters", node={**NODE, "extensions": extensions, "newer": 1}, newest=[1, 2])

    assert got.status == 200


async def test_body__in_camel_case__is_read(client: Poller) -> None:
    node = {
        "id": "n",
        "userAgentName": "envoy",
        "userAgentBuildVersion": {"version": {"majorNumber": 1}, "metadata": 7},
    }
    body = json.dumps({"node": node, "resourceNames": ["a"], "typeUrl": "", "versionInfo": ""}).encode()

    got = await client.post(CLUSTERS, body)

    assert got.names == ["a"]


async def test_body__too_large__413_and_the_connection_ends(client: Poller) -> None:
    got = await client.post(CLUSTERS, b" " * (LIMITS.rest_request_bytes + 1))

    assert got.status == 413
    assert "rest_request_bytes" in got.json["detail"]
    assert await client.ended()


async def test_body__in_chunks_without_end__413(client: Poller) -> None:
    head = (
        f"POST {CLUSTERS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    await client.send(head.encode())
    for _ in range(20):
        await client.send(b"1000\r\n" + b" " * 4096 + b"\r\n")

    assert (await client.got()).status == 413


async def test_body__more_names_than_are_allowed__413_says_which_limit() -> None:
    limits = Limits(names_per_request=3)
    async with running(config(rest_address="127.0.0.1:0", limits=limits)) as run, poller(run.rest_port) as client:
        run.publish()
        got = await client.ask("endpoints", "a", "b", "c", "d")

    assert got.status == 413
    assert "at most 3" in got.json["detail"]


REQUESTS: dict[str, tuple[bytes, int]] = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "no host": (b"POST /v3/discovery:clusters HTTP/1.1\r\n\r\n", 400),
    "large head": (b"POST / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 9_000 + b"\r\n\r\n", 431),
    "two lengths": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    "odd length": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
    "other path": (b"POST /v2/discovery:clusters HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 404),
    "traversal": (b"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", 404),
    "other method": (b"GET /v3/discovery:clusters HTTP/1.1\r\nHost: a\r\n\r\n", 405),
    "other content": (
        b"POST /v3/discovery:clusters HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
        415,
    ),
    "a page in a browser": (
        b"POST /v3/discovery:secrets HTTP/1.1\r\nHost: e\r\nOrigin: http://e\r\nContent-Length: 2\r\n\r\n{}",
        403,
    ),
}


@pytest.mark.parametrize("case", REQUESTS)
async def test_request__is_none_that_is_served__problem_and_end(client: Poller, case: str) -> None:
    data, status = REQUESTS[case]

    with capture_logs() as logs:
        await client.send(data)
        got = await client.got()

    assert got.status == status
    assert got.json["status"] == status
    assert len(got.json["detail"]) > 10
    assert await client.ended()
    assert [each for each in logs if each["log_level"] in {"error", "critical"}] == []


@pytest.mark.parametrize("data", [b"POST /v3/dis", b"POST /v3/discovery:clusters HTTP/1.1\r\nHost: a\r\n"])
async def test_request__head_comes_slowly__408_or_end(client: Poller, data: bytes) -> None:
    await client.send(data)

    assert (await client.got()).status == 408
    assert await client.ended()


async def test_request__body_comes_slowly__408_and_nothing_is_held(run: Running, client: Poller) -> None:
    head = f"POST {CLUSTERS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    await client.send(head.encode() + b"{")

    assert (await client.got()).status == 408
    await until(lambda: run.server._budgets.empty)


async def test_connection__says_nothing__ends(client: Poller) -> None:
    assert await client.ended()


async def test_connection__expects_a_word_first__gets_it(client: Poller) -> None:
    body = json.dumps({"node": NODE}).encode()
    head = f"POST {CLUSTERS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    await client.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())

    assert (await client.got()).status == 100
    await client.send(body)
    assert (await client.got()).status == 200


async def test_connection__two_requests_at_once__are_answered_in_turn(client: Poller) -> None:
    body = json.dumps({"node": NODE}).encode()
    head = (
        f"POST {CLUSTERS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    await client.send(2 * (head.encode() + body))

    assert [(await client.got()).status, (await client.got()).status] == [200, 200]


async def test_connections__too_many__the_one_idle_for_longest_makes_room(run: Running) -> None:
    clients = [await asyncio.open_connection("127.0.0.1", run.rest_port) for _ in range(4)]
    pollers = [Poller(*each) for each in clients]
    for each in pollers:
        assert (await each.ask("clusters")).status == 200

    async with poller(run.rest_port) as fifth:
        assert (await fifth.ask("clusters")).status == 200
        assert await pollers[0].ended()
        assert (await pollers[3].ask("clusters")).status in {200, 304}
    for _, writer in clients:
        writer.close()


async def test_connections__all_of_them_wait__no_more_are_let_in(run: Running) -> None:
    clients = [Poller(*await asyncio.open_connection("127.0.0.1", run.rest_port)) for _ in range(4)]
    for number, each in enumerate(clients):
        await each.ask("endpoints", f"name-{number}")
    waits = [
        asyncio.ensure_future(each.ask("endpoints", f"name-{number}", headers={"Prefer": "wait=30"}))
        for number, each in enumerate(clients)
    ]
    await asyncio.sleep(0.2)

    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        async with poller(run.rest_port) as fifth:
            await fifth.ask("clusters")
    for each, wait in zip(clients, waits, strict=True):
        wait.cancel()
        each.writer.close()


async def test_connection__client_does_not_read__ends() -> None:
    limits = Limits(write_timeout_s=1)
    async with running(config(rest_address="127.0.0.1:0", limits=limits)) as run, poller(run.rest_port) as client:
        run.publish(*(cluster(f"{'n' * 900}-{number}") for number in range(3_000)))
        body = json.dumps({"node": NODE}).encode()
        head = f"POST {CLUSTERS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        transport: Any = client.writer.transport
        transport.pause_reading()
        data = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        await client.send(3 * data)

        await until(lambda: run.server.rest_connections == 0, 20)


async def test_address__is_taken__one_sentence(run: Running) -> None:
    with pytest.raises(AdsConfigError, match=r"\(PARLEY_ADS_REST_ADDRESS\) cannot be used: Address already in use"):
        async with running(config(rest_address=f"127.0.0.1:{run.rest_port}")):
            pass


# Who asks


async def test_token__in_force_or_not__served_as_its_subject_or_401() -> None:
    async with running(config(rest_address="127.0.0.1:0", auth=AuthMode.TOKEN)) as run:
        token = run.catalogue.issue("pay")
        run.catalogue.environments = (
            EnvironmentChoice("pay", (Selector(identity="pay"),)),
            EnvironmentChoice("default", ()),
        )
        run.publish(cluster("paid"), environment="pay")
        async with poller(run.rest_port) as client:
            served = await client.ask("clusters", headers={"Authorization": f"Bearer {token}"})
        outcomes = []
        for headers in ({}, {"Authorization": "Bearer no"}, {"Authorization": f"Bearer {token}, Bearer {token}"}):
            async with poller(run.rest_port) as client:
                got = await client.ask("clusters", headers=headers)
                outcomes.append((got.status, got.headers["www-authenticate"]))

        assert served.names == ["paid"]
        assert outcomes == [(401, "Bearer")] * 3


async def test_identity__that_makes_up_nodes__takes_its_part_of_the_places_and_no_more() -> None:
    limits = Limits(polled_per_identity=2)
    async with running(config(rest_address="127.0.0.1:0", auth=AuthMode.TOKEN, limits=limits)) as run:
        greedy, other = (run.catalogue.issue(name) for name in ("pay", "shop"))
        run.publish(cluster("a"))

        async def ask(token: str, node: str) -> Got:
            async with poller(run.rest_port) as client:
                return await client.ask("clusters", headers={"Authorization": f"Bearer {token}"}, node={"id": node})

        answers = [await ask(greedy, f"made-up-{number}") for number in range(3)]
        served = await ask(other, "made-up-0")
        run.server.polls.look(asyncio.get_running_loop().time() + 10_000)
        again = await ask(greedy, "made-up-2")

    assert [got.status for got in answers] == [200, 200, 429]
    assert "polled_per_identity" in answers[-1].json["detail"]
    assert (served.status, again.status) == (200, 200)


async def test_identity__whose_polls_all_wait__leaves_connections_to_others() -> None:
    limits = Limits(rest_connections=4, poll_waits_per_identity=2)
    async with running(config(rest_address="127.0.0.1:0", auth=AuthMode.TOKEN, limits=limits)) as run:
        greedy, other = (run.catalogue.issue(name) for name in ("pay", "shop"))
        run.publish(cluster("a"))
        clients = [Poller(*await asyncio.open_connection("127.0.0.1", run.rest_port)) for _ in range(4)]

        async def wait(number: int) -> Got:
            bearer, node = {"Authorization": f"Bearer {greedy}"}, {"id": f"made-up-{number}"}
            await clients[number].ask("clusters", headers=bearer, node=node)
            return await clients[number].ask("clusters", headers={**bearer, "Prefer": "wait=30"}, node=node)

        waits = [asyncio.ensure_future(wait(number)) for number in range(4)]
        await until(lambda: sum(each.done() for each in waits) == 2)
        async with poller(run.rest_port) as client:
            served = await client.ask("clusters", headers={"Authorization": f"Bearer {other}"})
        run.publish(cluster("a"), cluster("b"))
        answers = await asyncio.gather(*waits)
        for each in clients:
            each.writer.close()

    assert sorted(got.status for got in answers) == [200, 200, 304, 304]
    assert served.names == ["a"]


async def test_identity__that_opens_connections__loses_its_own_and_not_those_of_others() -> None:
    limits = Limits(rest_connections=4)
    async with running(config(rest_address="127.0.0.1:0", auth=AuthMode.TOKEN, limits=limits)) as run:
        greedy, other = ({"Authorization": f"Bearer {run.catalogue.issue(name)}"} for name in ("pay", "shop"))
        run.publish(cluster("a"))
        async with poller(run.rest_port) as client:
            await client.ask("clusters", headers=other)
            opened = []
            for number in range(8):
                opened.append(Poller(*await asyncio.open_connection("127.0.0.1", run.rest_port)))
                await opened[-1].ask("clusters", headers=greedy, node={"id": f"made-up-{number}"})
            again = await client.ask("clusters", headers=other)
        for each in opened:
            each.writer.close()

    assert again.status == 304


async def test_token__is_revoked__subscription_and_wait_end() -> None:
    async with running(config(rest_address="127.0.0.1:0", auth=AuthMode.TOKEN)) as run, poller(run.rest_port) as client:
        token = run.catalogue.issue("pay")
        run.publish(cluster("a"))
        bearer = {"Authorization": f"Bearer {token}"}
        await client.ask("clusters", headers=bearer)
        waiting = asyncio.ensure_future(client.ask("clusters", headers={**bearer, "Prefer": "wait=30"}))
        await asyncio.sleep(0.2)
        run.catalogue.tokens.clear()
        run.server.directory_changed(run.catalogue.directory())

        assert (await waiting).status == 401
        assert len(run.server.polls) == 0
        assert (await client.ask("clusters", headers=bearer)).status == 401


async def test_token__good_elsewhere_only__403() -> None:
    async with running(config(rest_address="127.0.0.1:0", auth=AuthMode.TOKEN)) as run, poller(run.rest_port) as client:
        token = run.catalogue.issue("pay", environment="pay")
        run.publish(cluster("a"))
        got = await client.ask("clusters", headers={"Authorization": f"Bearer {token}"})

    assert got.status == 403
    assert got.json["detail"].startswith("The environment: this token is good in 'pay' only")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("ours")


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> TlsFiles:
    return server_files(tmp_path, authority, "ads.example")


def trusting(authority: Authority, tmp_path: Path, pair: tuple[bytes, bytes] | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem().decode())
    if pair is not None:
        (tmp_path / "own.key").write_bytes(pair[0])
        (tmp_path / "own.crt").write_bytes(pair[1])
        context.load_cert_chain(tmp_path / "own.crt", tmp_path / "own.key")
    return context


def mtls(files: TlsFiles) -> AdsConfig:
    domains = frozenset({"td.example"})
    return config(rest_address="127.0.0.1:0", auth=AuthMode.MTLS, tls=files, trust_domains=domains)


async def test_mtls__certificate_of_ours__served_as_its_spiffe_id(
    files: TlsFiles, authority: Authority, tmp_path: Path
) -> None:
    pay = "spiffe://td.example/ns/prod/sa/pay"
    async with running(mtls(files)) as run:
        run.publish(cluster("a"))
        context = trusting(authority, tmp_path, authority.issue(pay))
        async with poller(run.rest_port, context, "ads.example") as client:
            got = await client.ask("clusters")

    assert got.names == ["a"]
    assert [stream.identity for stream in run.facts.opened_streams] == [pay]


FOREIGN: dict[str, tuple[str, ...] | None] = {
    "another authority": ("spiffe://td.example/pay",),
    "another trust domain": ("spiffe://other.example/pay",),
    "two URIs": ("spiffe://td.example/pay", "spiffe://td.example/other"),
    "no URI": (),
    "none": None,
}


@pytest.mark.parametrize("case", FOREIGN)
async def test_mtls__certificate_proves_nothing__not_served(
    files: TlsFiles, authority: Authority, tmp_path: Path, case: str
) -> None:
    async with running(mtls(files)) as run:
        run.publish(cluster("a"))
        uris, signer = FOREIGN[case], Authority("theirs") if case == "another authority" else authority
        context = trusting(authority, tmp_path, None if uris is None else signer.issue(*uris))
        try:
            async with poller(run.rest_port, context, "ads.example") as client:
                status = (await client.ask("clusters")).status
        except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError):
            status = 0

        assert status in {0, 401}
        assert run.facts.opened_streams == []


async def test_tls__pair_is_exchanged__next_handshake_has_the_new_one(
    files: TlsFiles, authority: Authority, tmp_path: Path
) -> None:
    async with running(config(rest_address="127.0.0.1:0", tls=files)) as run:
        run.publish(cluster("a"))
        serials = []
        for _ in range(2):
            context = trusting(authority, tmp_path, None)
            async with poller(run.rest_port, context, "ads.example") as client:
                assert (await client.ask("clusters")).status == 200
                der = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                serials.append(x509.load_der_x509_certificate(der).serial_number)
            write_pair(files, authority.issue(dns="ads.example"))

    assert serials[0] != serials[1]


async def test_tls__plain_client__ends_and_nobody_else_is_harmed(files: TlsFiles) -> None:
    async with running(config(rest_address="127.0.0.1:0", tls=files)) as run, poller(run.rest_port) as client:
        with capture_logs() as logs:
            await client.send(b"POST / HTTP/1.1\r\n\r\n")
            await client.ended()
            await until(lambda: run.server.rest_connections == 0)

    assert [each for each in logs if each["log_level"] in {"error", "critical"}] == []
