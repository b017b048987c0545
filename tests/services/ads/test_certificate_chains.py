"""What clients present beside their own certificate, over real handshakes: it never stands for who they are, and
whatever it is, it costs the streams of others nothing.
"""

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import ExtensionOID, NameOID

from adsserver.config import TlsFiles
from adsserver.identity.identification import WITHDRAWN
from tests.support.ads import Running, raw_call, running_mtls
from tests.support.ads_client import Client
from tests.support.certificates import Authority, replace_file, server_files
from tests.support.figures import measured
from xdscore.resource_types import CLUSTER

METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
NAMED = [("grpc.ssl_target_name_override", "ads.example"), ("grpc.use_local_subchannel_pool", 1)]
PAY = "spiffe://td.example/ns/prod/sa/pay"
OURS, LEAVING = Authority("ours"), Authority("leaving")
MIDDLE = Authority("middle", OURS)


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    made = server_files(tmp_path, OURS, "ads.example")
    assert made.client_ca is not None
    made.client_ca.write_bytes(OURS.pem() + LEAVING.pem())
    return made


@pytest.fixture
async def run(files: TlsFiles) -> AsyncIterator[Running]:
    async with running_mtls(files) as started:
        yield started


def channel_of(run: Running, key: bytes, chain: bytes) -> grpc.aio.Channel:
    return grpc.aio.secure_channel(run.address, grpc.ssl_channel_credentials(OURS.pem(), key, chain), options=NAMED)


async def asked(channel: grpc.aio.Channel) -> Client:
    client = Client(raw_call(channel, METHOD), channel, delta=False)
    await client.ask(type_url=CLUSTER.url, node={"id": "n"})
    return client


async def withdraw(run: Running, files: TlsFiles) -> None:
    assert files.client_ca is not None
    replace_file(files.client_ca, OURS.pem())
    await run.server._callers.look()


# An address of X.400, which cryptography refuses to read with an error of its own.
UNREADABLE = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, bytes.fromhex("3004a3020500"))
# What somebody may put beside a certificate of the authority that is taken out, to look like one of ours.
BESIDE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "the authority that stays": lambda _: OURS.pem(),
    "its own certificate again": lambda leaf: leaf,
    "one of ours": lambda _: OURS.issue(PAY)[1] + OURS.pem(),
    "one between of ours": lambda _: MIDDLE.pem() + OURS.pem(),
    "forged authorities of our name": lambda _: b"".join(Authority("ours").pem() for _ in range(9)),
    "its authority with what cannot be read": lambda _: b"".join(
        LEAVING.again(extensions=[(UNREADABLE, False)]) for _ in range(2)
    ),
    "its authority nine times, each signing all": lambda _: b"".join(LEAVING.again() for _ in range(9)),
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
async def test_chain__of_an_authority_that_is_taken_out__is_refused_whatever_is_beside_it(
    run: Running, files: TlsFiles, beside: Callable[[bytes], bytes]
) -> None:
    key, leaf = LEAVING.issue(PAY)
    async with channel_of(run, key, leaf + beside(leaf)) as theirs, channel_of(run, *OURS.issue(PAY)) as ours:
        before, other = await asked(theirs), await asked(ours)
        await before.answer()
        await other.answer()

        await withdraw(run, files)
        started = time.monotonic()
        again = await asked(theirs)

        assert await again.ended() == (grpc.StatusCode.UNAUTHENTICATED, WITHDRAWN, 0)
        assert await before.ended() == (grpc.StatusCode.UNAUTHENTICATED, WITHDRAWN, 0)
        measured(refused_after_s=time.monotonic() - started)
        assert not other.call.done()
        assert await (await asked(ours)).answer()


OF_OUR_DOMAIN = x509.NameConstraints([x509.UniformResourceIdentifier("td.example")], None)
BY_EDWARDS = Authority("edwards", OURS, ed25519.Ed25519PrivateKey.generate())
# What a client of ours may have beside its certificate, and is served before and after a change of the file.
GOOD: dict[str, Callable[[], tuple[bytes, bytes]]] = {
    "its own certificate only": lambda: OURS.issue(PAY),
    "the one between": lambda: _with(MIDDLE.issue(PAY), MIDDLE.pem()),
    "the one between and the authority": lambda: _with(MIDDLE.issue(PAY), MIDDLE.pem() + OURS.pem()),
    "in another order": lambda: _with(MIDDLE.issue(PAY), OURS.pem() + MIDDLE.pem()),
    "itself once more": lambda: _with(pair := OURS.issue(PAY), pair[1]),
    "the one between is bound to our trust domain": lambda: _with(
        MIDDLE.issue(PAY), MIDDLE.again(extensions=[(OF_OUR_DOMAIN, True)])
    ),
    "the one between has an Ed25519 key": lambda: _with(BY_EDWARDS.issue(PAY), BY_EDWARDS.pem()),
    "cross-signed by who leaves": lambda: _with(
        MIDDLE.issue(PAY), Authority("middle", LEAVING, key=MIDDLE.key).pem() + MIDDLE.pem()
    ),
    "forged ones of its authority's name": lambda: _with(
        OURS.issue(PAY), b"".join(Authority("ours").pem() for _ in range(9))
    ),
}


def _with(pair: tuple[bytes, bytes], others: bytes) -> tuple[bytes, bytes]:
    return pair[0], pair[1] + others


@pytest.mark.parametrize("pair", GOOD.values(), ids=GOOD)
async def test_chain__that_leads_to_an_authority_of_now__is_served_before_and_after_the_change(
    run: Running, files: TlsFiles, pair: Callable[[], tuple[bytes, bytes]]
) -> None:
    async with channel_of(run, *pair()) as channel:
        before = await asked(channel)
        await before.answer()

        await withdraw(run, files)

        assert await (await asked(channel)).answer()
        assert not before.call.done()


async def test_chain__longer_than_allowed__is_refused_from_the_beginning_and_told_why(run: Running) -> None:
    key, leaf = OURS.issue(PAY)
    async with channel_of(run, key, leaf + MIDDLE.pem() * 10) as channel:
        code, text, _ = await (await asked(channel)).ended()

    assert code is grpc.StatusCode.UNAUTHENTICATED
    assert text == "The client presents 11 certificates; this server takes at most 10, its own and those it leads by."


# What gRPC tells of a client's certificates: everything here rests on it.
TOLD: dict[str, tuple[Callable[[bytes, bytes], bytes], tuple[str, ...]]] = {
    "its own": (lambda leaf, _: leaf, ()),
    "with the one between": (lambda leaf, middle: leaf + middle, ("middle",)),
    "with its authority": (lambda leaf, middle: leaf + middle + OURS.pem(), ("middle", "ours")),
    "in another order": (lambda leaf, middle: leaf + OURS.pem() + middle, ("ours", "middle")),
    "twice": (lambda leaf, middle: leaf + leaf + middle, ("client", "middle")),
}


@pytest.mark.parametrize(("sent", "beside"), TOLD.values(), ids=TOLD)
async def test_grpc__certificates_of_a_client__its_own_is_told_apart_and_never_part_of_the_chain(
    tmp_path: Path, sent: Callable[[bytes, bytes], bytes], beside: tuple[str, ...]
) -> None:
    key, leaf = MIDDLE.issue(PAY)
    found: list[dict[str, list[bytes]]] = []

    async def tell(_: object, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        found.append({name: list(values) for name, values in context.auth_context().items()})
        return b""

    class AnyMethod(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in grpc-stubs only
        def service(self, _: object) -> Any:
            return grpc.unary_unary_rpc_method_handler(tell)

    server = grpc.aio.server(handlers=[AnyMethod()])
    pair = OURS.issue(common_name="server", dns="ads.example")
    # Trusted in the middle, so that all of these are taken.
    credentials = grpc.ssl_server_credentials([pair], OURS.pem() + MIDDLE.pem(), require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    trust = grpc.ssl_channel_credentials(OURS.pem(), key, sent(leaf, MIDDLE.pem()))
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", trust, options=NAMED) as channel:
        untyped: Any = channel
        await untyped.unary_unary("/any/any")(b"", timeout=5)
    await server.stop(0)

    (told,) = found
    assert [_names(pem) for pem in told["x509_pem_cert"]] == [("client",)]
    assert x509.load_pem_x509_certificate(told["x509_pem_cert"][0]) == x509.load_pem_x509_certificate(leaf)
    assert _names(b"".join(told.get("x509_pem_cert_chain", []))) == beside


def _names(pem: bytes) -> tuple[str, ...]:
    if not pem:
        return ()
    return tuple(
        str(each.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
        for each in x509.load_pem_x509_certificates(pem)
    )
