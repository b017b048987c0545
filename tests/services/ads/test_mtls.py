"""mTLS over real handshakes: only a certificate of our authority with one SPIFFE ID of our trust domain is served."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from envoy.service.discovery.v3 import discovery_pb2

from adsserver.config import AdsConfigError, AuthMode, TlsFiles
from adsserver.server import AdsServer
from tests.support.ads import Running, config, raw_call, running
from tests.support.certificates import Authority
from xdscore.resource_types import CLUSTER
from xdscore.selectors import EnvironmentChoice, Selector

METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
PAY = "spiffe://td.example/ns/prod/sa/pay"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("ours")


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> TlsFiles:
    made = TlsFiles(tmp_path / "server.pem", tmp_path / "server.key", tmp_path / "ca.pem")
    write_pair(made, authority.issue(common_name="server", dns="ads.example"))
    assert made.client_ca is not None
    made.client_ca.write_bytes(authority.pem())
    return made


def write_pair(files: TlsFiles, pair: tuple[bytes, bytes]) -> None:
    """Replace key and certificate as a rotation does: each at once."""
    for path, data in zip((files.key, files.certificate), pair, strict=True):
        fresh = path.with_suffix(".new")
        fresh.write_bytes(data)
        os.replace(fresh, path)  # noqa: PTH105 - the call that a rotation makes


@pytest.fixture
async def run(files: TlsFiles) -> AsyncIterator[Running]:
    settings = config(auth=AuthMode.MTLS, tls=files, trust_domains=frozenset({"td.example"}))
    async with running(settings) as started:
        started.publish()
        yield started


async def connect(
    run: Running, authority: Authority, pair: tuple[bytes, bytes] | None, node_id: str = "n"
) -> grpc.StatusCode:
    """How a stream with this client certificate ends; OK when it was served."""
    key, certificate = pair or (None, None)
    credentials = grpc.ssl_channel_credentials(authority.pem(), key, certificate)
    options = [("grpc.ssl_target_name_override", "ads.example"), ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.secure_channel(run.address, credentials, options=options) as channel:
        call = raw_call(channel, METHOD, timeout=5)
        request = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url, node={"id": node_id})
        try:
            await call.write(request.SerializeToString())
            if isinstance(await call.read(), bytes):
                return grpc.StatusCode.OK
        except grpc.aio.AioRpcError as error:
            return error.code()
        return await call.code()


async def test_mtls__single_spiffe_id_of_our_domain__is_served_and_recorded(run: Running, authority: Authority) -> None:
    assert await connect(run, authority, authority.issue(PAY)) is grpc.StatusCode.OK
    assert run.facts.opened_streams[0].identity == PAY


@pytest.mark.parametrize(
    ("uris", "common_name"),
    [
        ([PAY, "spiffe://td.example/ns/prod/sa/other"], "client"),
        (["spiffe://td.example.evil/ns/prod/sa/pay"], "client"),
        (["https://td.example/pay"], "client"),
        ([], PAY),
    ],
    ids=["two ids", "other domain", "no spiffe", "common name only"],
)
async def test_mtls__certificate_that_proves_nothing__is_refused(
    run: Running, authority: Authority, uris: list[str], common_name: str
) -> None:
    pair = authority.issue(*uris, common_name=common_name)

    assert await connect(run, authority, pair) is grpc.StatusCode.UNAUTHENTICATED
    assert run.facts.opened_streams == []


async def test_mtls__no_certificate_or_one_of_another_authority__no_handshake(
    run: Running, authority: Authority
) -> None:
    assert await connect(run, authority, None) is grpc.StatusCode.UNAVAILABLE
    assert await connect(run, authority, Authority("theirs").issue(PAY)) is grpc.StatusCode.UNAVAILABLE


async def test_mtls__node_fields__do_not_choose_the_environment(run: Running, authority: Authority) -> None:
    # resolutions C15: what a client only says of itself selects nothing once identity is verified.
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
    after = await connect(run, authority, pair)

    assert (before, during, after) == (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.OK)


async def test_tls__unreadable_file_at_start__one_sentence(files: TlsFiles, run: Running) -> None:
    files.key.unlink()
    settings = config(auth=AuthMode.MTLS, tls=files, trust_domains=frozenset({"td.example"}))
    shared = run.server._shared

    server = AdsServer(settings, run.catalogue.contents, run.facts, run.fleet, shared.metrics)

    with pytest.raises(AdsConfigError, match=r"The TLS file '.*server.key' cannot be read: No such file"):
        server.bind()
