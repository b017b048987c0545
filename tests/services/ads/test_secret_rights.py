"""Secrets are read by a rule that names their type, and by nothing else (reliability threats 5 and 6): over every
transport, by both variants and whatever the environment's default is.

Two worlds differ in one secret: in one it is there, changes and goes; in the other it never was. Whoever may not read
it must get the same bytes in both.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.message import Message

from adsserver.config import TlsFiles
from tests.support.ads import Running, config, raw_call, running
from tests.support.ads_client import ADS, NODE, Client, cluster
from tests.support.certificates import Authority, server_files
from xdscore.access import AccessTable, Effect, Rule
from xdscore.auth_modes import AuthMode
from xdscore.client_groups import ClientGroup, Trust
from xdscore.environment_choice import Selector
from xdscore.resource_types import SECRET

SDS = "/envoy.service.secret.v3.SecretDiscoveryService/"
METHODS = {
    "ads-sotw": ADS + "StreamAggregatedResources",
    "ads-delta": ADS + "DeltaAggregatedResources",
    "sds-sotw": SDS + "StreamSecrets",
    "sds-delta": SDS + "DeltaSecrets",
}
IDENTITY = "spiffe://td.example/shop"
OTHERS = ClientGroup("others", (Selector(identity="spiffe://td.example/pay"),), Trust.VERIFIED)
NAMED = frozenset({"secret"})
# None of these lets the client of these tests read a secret.
CLOSED: dict[str, tuple[Rule, ...]] = {
    "no rule": (),
    "a rule of any type": (Rule(1, Effect.ALLOW),),
    "a rule of another type": (Rule(1, Effect.ALLOW, types=frozenset({"cluster"})),),
    "a rule for others": (Rule(1, Effect.ALLOW, "*", frozenset({"others"}), NAMED),),
    "a rule for another name": (Rule(1, Effect.ALLOW, "elsewhere", types=NAMED),),
}
SECRET_NAME, ABSENT = "api-key", "no-such-key"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("a")


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> TlsFiles:
    return server_files(tmp_path, authority, "ads.example")


def secret(value: str) -> secret_pb2.Secret:
    made = secret_pb2.Secret(name=SECRET_NAME)
    made.generic_secret.secret.inline_string = value
    return made


@asynccontextmanager
async def client_of(
    mode: AuthMode, files: TlsFiles, authority: Authority, method: str
) -> AsyncIterator[tuple[Running, Client]]:
    """A server, and a client that has proved who it is where the transport asks for that."""
    tls = files if mode is AuthMode.MTLS else None
    domains = frozenset({"td.example"})
    async with running(config(auth=mode, tls=tls, trust_domains=domains)) as run:
        options = [("grpc.ssl_target_name_override", "ads.example"), ("grpc.use_local_subchannel_pool", 1)]
        metadata = [("authorization", f"Bearer {run.catalogue.issue(IDENTITY)}")] if mode is AuthMode.TOKEN else []
        if tls is None:
            channel = grpc.aio.insecure_channel(run.address, options=options[1:])
        else:
            credentials = grpc.ssl_channel_credentials(authority.pem(), *authority.issue(IDENTITY))
            channel = grpc.aio.secure_channel(run.address, credentials, options=options)
        async with channel:
            yield run, Client(raw_call(channel, method, metadata=metadata), channel, "Delta" in method)


async def transcript(run: Running, client: Client, access: AccessTable, *, there: bool) -> list[bytes]:
    """Everything the client is told while the secret comes, changes and goes; or while it never was."""
    states: Sequence[Sequence[Message]] = ([], [secret("first")], [secret("second")], [], [secret("second")])
    said: list[bytes] = []
    wanted = [SECRET_NAME, ABSENT]
    for number, state in enumerate(states):
        held = state if there else ()
        directory = run.catalogue.publish(*held, cluster("plain", number + 1), access=access)
        run.server.directory_changed(directory)
        fence = f"fence-{number}"
        wanted.append(fence)
        await ask(client, wanted if number == 0 or not client.delta else [fence])
        while not said or fence.encode() not in said[-1]:
            data = await client._read(5)
            assert isinstance(data, bytes), data
            said.append(data)
            await acknowledge(client, data, wanted)
    return said


async def ask(client: Client, names: list[str], **more: Any) -> None:
    field = "resource_names_subscribe" if client.delta else "resource_names"
    await client.ask(node=NODE, type_url=SECRET.url, **{field: names}, **more)


async def acknowledge(client: Client, data: bytes, wanted: list[str]) -> None:
    if client.delta:
        nonce = discovery_pb2.DeltaDiscoveryResponse.FromString(data).nonce
        await client.ask(type_url=SECRET.url, response_nonce=nonce)
        return
    answer = discovery_pb2.DiscoveryResponse.FromString(data)
    await ask(client, wanted, response_nonce=answer.nonce, version_info=answer.version_info)


@pytest.mark.parametrize("mode", AuthMode)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("default", [Effect.ALLOW, Effect.DENY])
@pytest.mark.parametrize("rules", CLOSED)
async def test_secret__no_rule_that_names_the_type_allows_it__is_as_if_it_had_never_been(
    files: TlsFiles, authority: Authority, mode: AuthMode, method: str, default: Effect, rules: str
) -> None:
    access = AccessTable(default, (OTHERS,), CLOSED[rules])
    said = []
    for there in (True, False):
        async with client_of(mode, files, authority, METHODS[method]) as (run, client):
            said.append(await transcript(run, client, access, there=there))

    assert said[0] == said[1]
    for name in (SECRET_NAME, ABSENT):
        text = (
            f"PERMISSION_DENIED [XDS2103] This client may not read Secret '{name}': no access rule that names the type "
            f"secret allows it. Explain: http://parley.example/x?e=default&t=secret&n={name}"
        )
        assert any(text.encode() in each for each in said[0])


@pytest.mark.parametrize("mode", AuthMode)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("default", [Effect.ALLOW, Effect.DENY])
async def test_secret__a_rule_that_names_the_type_allows_it__is_sent(
    files: TlsFiles, authority: Authority, mode: AuthMode, method: str, default: Effect
) -> None:
    access = AccessTable(default, rules=(Rule(1, Effect.ALLOW, types=NAMED),))

    async with client_of(mode, files, authority, METHODS[method]) as (run, client):
        said = await transcript(run, client, access, there=True)

    assert any(b"first" in each for each in said)
    assert any(b"second" in each for each in said)
    assert not any(b"PERMISSION_DENIED" in each for each in said)
