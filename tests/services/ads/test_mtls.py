"""mTLS over real handshakes: only a certificate of our authority with one SPIFFE ID of our trust domain is served."""

import asyncio
import datetime as dt
import socket
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from envoy.service.discovery.v3 import discovery_pb2
from structlog.testing import capture_logs

from adsserver.config import AdsConfigError, TlsFiles
from adsserver.identity.callers import SWEEP_PERIOD_S
from adsserver.identity.identification import WITHDRAWN
from adsserver.identity.tls import Certificates
from adsserver.running.server import AdsServer
from tests.services.ads.test_methods import METHODS
from tests.support.ads import Running, mtls, raw_call, running_mtls
from tests.support.ads_client import Client
from tests.support.certificates import MINUTE, Authority, replace_file, server_files, write_pair
from tests.support.figures import measured
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.resource_types import CLUSTER

METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
NAMED = [("grpc.ssl_target_name_override", "ads.example"), ("grpc.use_local_subchannel_pool", 1)]
PAY = "spiffe://td.example/ns/prod/sa/pay"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("ours")


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> TlsFiles:
    return server_files(tmp_path, authority, "ads.example")


@pytest.fixture
async def run(files: TlsFiles) -> AsyncIterator[Running]:
    async with running_mtls(files) as started:
        yield started


async def connect(
    run: Running, authority: Authority, pair: tuple[bytes, bytes] | None, *, method: str = METHOD
) -> grpc.StatusCode:
    """How a call with this client certificate ends; OK when it was served."""
    return await asyncio.to_thread(_connect, run.address, authority.pem(), pair, method)


def _connect(address: str, trust: bytes, pair: tuple[bytes, bytes] | None, method: str) -> grpc.StatusCode:
    # The blocking client: grpc.aio's reports INTERNAL when its write crosses the server's refusal.
    key, certificate = pair or (None, None)
    credentials = grpc.ssl_channel_credentials(trust, key, certificate)
    request = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url, node={"id": "n"}).SerializeToString()
    with grpc.secure_channel(address, credentials, options=NAMED) as channel:
        untyped: Any = channel
        call = untyped.stream_stream(method)(iter([request]), timeout=5)
        try:
            next(call)
        except grpc.RpcError:
            return grpc.StatusCode(call.code().value)
        return grpc.StatusCode.OK


async def test_mtls__single_spiffe_id_of_our_domain__is_served_and_recorded(run: Running, authority: Authority) -> None:
    assert await connect(run, authority, authority.issue(PAY)) is grpc.StatusCode.OK
    assert run.facts.opened_streams[0].identity == PAY


Hostile = Callable[[Authority], tuple[bytes, bytes] | None]

# What gRPC lets through the handshake, and identity must refuse.
PROVE_NOTHING: dict[str, Hostile] = {
    "two SPIFFE ids": lambda ours: ours.issue(PAY, "spiffe://td.example/ns/prod/sa/other"),
    "the same SPIFFE id twice": lambda ours: ours.issue(PAY, PAY),
    "a SPIFFE id and another URI": lambda ours: ours.issue(PAY, "https://td.example/pay"),
    "trust domain as a prefix": lambda ours: ours.issue("spiffe://td.example.evil/ns/prod/sa/pay"),
    "trust domain as a suffix": lambda ours: ours.issue("spiffe://evil.td.example/ns/prod/sa/pay"),
    "trust domain in other case": lambda ours: ours.issue("spiffe://TD.example/ns/prod/sa/pay"),
    "percent encoding": lambda ours: ours.issue("spiffe://td.example/ns/prod/sa/p%61y"),
    "dot segments": lambda ours: ours.issue("spiffe://td.example/ns/prod/sa/x/../pay"),
    "no path": lambda ours: ours.issue("spiffe://td.example"),
    "other scheme": lambda ours: ours.issue("https://td.example/ns/prod/sa/pay"),
    "common name only": lambda ours: ours.issue(common_name=PAY),
    "host name and mail only": lambda ours: ours.issue(dns="td.example", mail="pay@td.example"),
}
# What no handshake succeeds with.
NO_HANDSHAKE: dict[str, Hostile] = {
    "no certificate": lambda _ours: None,
    "other authority": lambda _ours: Authority("theirs").issue(PAY),
    "other authority of our name": lambda _ours: Authority("ours").issue(PAY),
    "expired": lambda ours: ours.issue(PAY, begins=-5 * MINUTE, ends=-MINUTE),
    "not valid yet": lambda ours: ours.issue(PAY, begins=5 * MINUTE),
    "for servers only": lambda ours: ours.issue(PAY, usage=ExtendedKeyUsageOID.SERVER_AUTH),
}


@pytest.mark.parametrize("hostile", PROVE_NOTHING.values(), ids=PROVE_NOTHING)
async def test_mtls__certificate_that_proves_nothing__is_refused_on_every_method(
    run: Running, authority: Authority, hostile: Hostile
) -> None:
    pair = hostile(authority)

    found = {await connect(run, authority, pair, method=method) for method in METHODS}

    assert found == {grpc.StatusCode.UNAUTHENTICATED}
    assert run.facts.opened_streams == []
    assert run.facts.responses == []


@pytest.mark.parametrize("hostile", NO_HANDSHAKE.values(), ids=NO_HANDSHAKE)
async def test_mtls__certificate_that_is_not_ours_or_not_in_force__no_handshake(
    run: Running, authority: Authority, hostile: Hostile
) -> None:
    pair = hostile(authority)

    assert await connect(run, authority, pair) is grpc.StatusCode.UNAVAILABLE
    assert run.facts.opened_streams == []


async def test_mtls__certificate_ends_while_its_stream_is_open__ends_the_stream(
    run: Running, authority: Authority
) -> None:
    key, certificate = authority.issue(PAY, ends=dt.timedelta(seconds=1.5))
    async with _channel(run, authority, (key, certificate)) as channel:
        call = await _served(channel)

        await run.server._callers.look()
        assert not call.done()
        await asyncio.sleep(1.5)
        await run.server._callers.look()

        assert await call.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_mtls__authority_is_taken_out__ends_its_streams_and_opens_none_on_the_same_connection(
    run: Running, authority: Authority, files: TlsFiles
) -> None:
    assert files.client_ca is not None
    leaving = Authority("leaving")
    replace_file(files.client_ca, authority.pem() + leaving.pem())  # and back before anybody looked
    pairs = [each.issue(PAY) for each in (leaving, authority)]
    async with _channel(run, authority, pairs[0]) as theirs, _channel(run, authority, pairs[1]) as ours:
        their_call, our_call = await _served(theirs), await _served(ours)

        replace_file(files.client_ca, authority.pem())
        await run.server._callers.look()

        assert SWEEP_PERIOD_S < 60  # reliability S2
        assert (await their_call.code(), await their_call.details()) == (grpc.StatusCode.UNAUTHENTICATED, WITHDRAWN)
        assert not our_call.done()
        await _served(ours)
        again = Client(raw_call(theirs, METHOD), theirs, delta=False)
        await again.ask(type_url=CLUSTER.url, node={"id": "n"})
        assert await again.ended() == (grpc.StatusCode.UNAUTHENTICATED, WITHDRAWN, 0)


def _channel(run: Running, authority: Authority, pair: tuple[bytes, bytes]) -> grpc.aio.Channel:
    credentials = grpc.ssl_channel_credentials(authority.pem(), *pair)
    return grpc.aio.secure_channel(run.address, credentials, options=NAMED)


async def _served(channel: grpc.aio.Channel) -> "grpc.aio.StreamStreamCall[bytes, bytes]":
    call = raw_call(channel, METHOD)
    await call.write(discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url, node={"id": "n"}).SerializeToString())
    assert isinstance(await call.read(), bytes)
    return call


async def test_mtls__node_fields__do_not_choose_the_environment(run: Running, authority: Authority) -> None:
    # decisions C15: what a client only says of itself selects nothing once identity is verified.
    run.catalogue.environments = (
        EnvironmentChoice("secret", (Selector(node_id="n"),)),
        EnvironmentChoice("pay", (Selector(identity="*/sa/pay"),)),
    )
    run.publish(environment="secret")
    run.publish(environment="pay")

    await connect(run, authority, authority.issue(PAY))

    assert run.facts.opened_streams[0].environment == "pay"


async def test_tls__files_change__next_handshake_gets_the_new_pair(
    run: Running, authority: Authority, files: TlsFiles
) -> None:
    pair = authority.issue(PAY)
    before = await connect(run, authority, pair)

    write_pair(files, Authority("theirs").issue(common_name="server", dns="ads.example"))
    during = await connect(run, authority, pair)
    write_pair(files, authority.issue(common_name="server", dns="ads.example"))
    started = time.monotonic()
    after = await connect(run, authority, pair)
    measured(handshake_with_the_new_pair_s=time.monotonic() - started)

    assert (before, during, after) == (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.OK)


async def test_tls__new_files_cannot_be_used__those_before_are_served_on_and_it_is_said_until_they_can(
    run: Running, authority: Authority, files: TlsFiles
) -> None:
    pair, well = authority.issue(PAY), run.server.tls_problem
    _, certificate = authority.issue(common_name="server", dns="ads.example", ends=2 * MINUTE)
    ended_before = run.sample("parley_ads_certificate_end_seconds")

    with capture_logs() as logged:
        replace_file(files.certificate, certificate)  # the key is still that of the one before
        during = await connect(run, authority, pair)
        problem, unusable = run.server.tls_problem, run.sample("parley_ads_tls_unusable")
        replace_file(files.certificate, b"no certificate")
        other = run.server.tls_problem
        write_pair(files, authority.issue(common_name="server", dns="ads.example", ends=3 * MINUTE))
        # A probe looks first: the next handshake gets the new pair all the same.
        after = run.server.tls_problem, await connect(run, authority, pair), _serial(run, authority)

    assert (well, during) == ("", grpc.StatusCode.OK)
    assert problem == (
        f"new TLS files are not used (the key in '{files.key}' is not that of the certificate in "
        f"'{files.certificate}'); those before are served on"
    )
    assert unusable == 1
    assert f"'{files.certificate}' holds no certificate that can be read" in other
    assert after == (
        "",
        grpc.StatusCode.OK,
        x509.load_pem_x509_certificate(files.certificate.read_bytes()).serial_number,
    )
    assert run.sample("parley_ads_tls_unusable") == 0
    assert run.sample("parley_ads_certificate_end_seconds") != ended_before
    assert [each["event"] for each in logged if each["event"].startswith("tls.")] == [
        "tls.unusable", "tls.unusable", "tls.changed",
    ]  # fmt: skip


def _serial(run: Running, authority: Authority) -> int:
    """The serial number of the certificate that a handshake shows."""
    key, certificate = authority.issue(PAY)
    context = ssl.create_default_context(cadata=authority.pem().decode())
    with tempfile.NamedTemporaryFile() as mine:
        mine.write(key + certificate)
        mine.flush()
        context.load_cert_chain(mine.name)
    context.set_alpn_protocols(["h2"])
    host, _, port = run.address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="ads.example") as secure,
    ):
        shown = secure.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number


def test_tls__certificate_ended__says_since_when(files: TlsFiles, authority: Authority) -> None:
    write_pair(files, authority.issue(common_name="server", dns="ads.example", begins=-5 * MINUTE, ends=-MINUTE))

    assert Certificates(files).problem().startswith("the certificate of ADS ended at ")


async def test_tls__key_of_another_certificate_at_start__one_sentence(files: TlsFiles, authority: Authority) -> None:
    key, _ = authority.issue(common_name="server", dns="ads.example")
    replace_file(files.key, key)

    with pytest.raises(AdsConfigError, match=r"The TLS files cannot be used: the key in '.*' is not that of"):
        Certificates(files)


async def test_tls__unreadable_file_at_start__one_sentence(files: TlsFiles, run: Running) -> None:
    files.key.unlink()
    shared = run.server._shared

    server = AdsServer(mtls(files), run.catalogue.contents, run.facts, run.fleet, shared.metrics)

    with pytest.raises(AdsConfigError, match=r"The TLS file '.*server.key' cannot be read: No such file"):
        server.bind()
