"""`XdsClient` over real gRPC: against Parley's own server, and against one that says what the test tells it to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message

from adsserver.engine.events import Rejected
from tests.support.ads import running
from tests.support.certificates import Authority as CertificateAuthority
from tests.support.ports import free_ports
from tests.support.scripted_ads import ScriptedAds, broken, scripted_ads
from tests.support.xds_resources import assignment, eds_cluster
from xdsclient import (
    CLUSTERS,
    ENDPOINTS,
    LISTENERS,
    AmbientError,
    Authority,
    Bootstrap,
    Changed,
    DataErrorHandling,
    Following,
    Node,
    ResourceLabels,
    Server,
    ServerFeature,
    Status,
    StatusCode,
    Tls,
    Variant,
    XdsClient,
    standard_type,
)
from xdscore.resource_types import CLUSTER

BOTH = pytest.mark.parametrize("variant", list(Variant))
FAIL = frozenset({ServerFeature.FAIL_ON_DATA_ERRORS})
XDSTP_CLUSTER = "envoy.config.cluster.v3.Cluster"

News = Changed[Message] | AmbientError


class Ear:
    """A watcher that writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_resource_changed(self, resource: Message | Status) -> None:
        self.heard.append(resource)

    def on_ambient_error(self, error: Status) -> None:
        self.heard.append(("ambient", error))


def client(
    *addresses: str, variant: Variant = Variant.SOTW, features: frozenset[ServerFeature] = frozenset(), node: str = "n"
) -> XdsClient:
    servers = tuple(Server(address, features=features) for address in addresses)
    return XdsClient(Bootstrap(servers, Node(node)), variant=variant, data_errors=DataErrorHandling.ON)


async def news(following: Following[Message]) -> News:
    async with asyncio.timeout(5):
        return await anext(following)


async def status(following: Following[Message]) -> Status:
    """The next news, which must be an error in place of the resource."""
    item = await news(following)
    assert isinstance(item, Changed)
    assert isinstance(item.resource, Status)
    return item.resource


@asynccontextmanager
async def scripted(variant: Variant, *features: ServerFeature) -> AsyncIterator[tuple[ScriptedAds, XdsClient]]:
    async with scripted_ads() as server, client(server.address, variant=variant, features=frozenset(features)) as one:
        yield server, one


@BOTH
async def test_client__leaves_at_once_after_what_it_refused__the_server_hears_the_refusal(variant: Variant) -> None:
    nodes = [f"n{number}" for number in range(20)]
    async with running() as run:
        run.publish(eds_cluster("a", "0s"))
        for node in nodes:
            async with client(run.address, variant=variant, node=node) as one, asyncio.timeout(5):
                ear = Ear()
                one.watch(CLUSTERS, "a", ear)
                while not ear.heard:  # noqa: ASYNC110 - a watcher is called, nothing is awaited
                    await asyncio.sleep(0)

        refused = [stream.node_id for stream, fact in run.facts.learnt_facts if isinstance(fact, Rejected)]

    assert refused == nodes


@BOTH
async def test_client__of_parley__hears_resources_errors_and_changes(variant: Variant) -> None:
    async with running() as run, client(run.address, variant=variant, features=FAIL) as one:
        run.publish(eds_cluster("a"), assignment("a", 1))
        async with one.follow(CLUSTERS, "a") as a, one.follow(CLUSTERS, "b") as b, one.follow(ENDPOINTS, "a") as eds:
            assert await news(a) == Changed(eds_cluster("a"))
            assert await news(eds) == Changed(assignment("a", 1))
            missing = await status(b)
            assert missing.code == StatusCode.NOT_FOUND
            assert missing.message.startswith("NOT_FOUND [XDS2101] Cluster 'b' is not published in 'default'.")

            run.publish(eds_cluster("b"))

            assert (await status(a)).code == StatusCode.NOT_FOUND
            assert await news(b) == Changed(eds_cluster("b"))
            assert [(entry.key.name, entry.label) for entry in one.cache() if entry.key.kind is CLUSTER] == [
                ("a", "received_error"),
                ("b", "acked"),
            ]


@BOTH
async def test_client__invalid_beside_valid__is_refused_by_name_and_the_valid_one_used(variant: Variant) -> None:
    """A46, with the real field rules."""
    async with (
        scripted(variant) as (server, one),
        one.follow(CLUSTERS, "good") as good,
        one.follow(CLUSTERS, "bad") as bad,
    ):
        stream = await server.stream("n")
        broken_cluster = eds_cluster("bad")
        broken_cluster.connect_timeout.seconds = -1

        nonce = stream.send(CLUSTER, broken_cluster, eds_cluster("good"))

        answer = await stream.answered(CLUSTER, nonce)
        assert await news(good) == Changed(eds_cluster("good"))
        refused = await status(bad)
        assert refused.code == StatusCode.INVALID_ARGUMENT
        assert "/connect_timeout" in refused.message
        assert answer.error_detail.code == StatusCode.INVALID_ARGUMENT
        assert "resource index 0: bad: INVALID_ARGUMENT: /connect_timeout" in answer.error_detail.message


@BOTH
async def test_client__server_without_tp3_or_sense__goes_on(variant: Variant) -> None:
    """Unreadable resources, a response that is none, an unknown type: each costs no more than itself."""
    async with scripted(variant) as (server, one), one.follow(CLUSTERS, "a") as a:
        stream = await server.stream("n")
        stream.send(LISTENERS.kind)
        nonce = stream.send(CLUSTER, broken(CLUSTER))
        assert (await stream.answered(CLUSTER, nonce)).error_detail.code == StatusCode.INVALID_ARGUMENT

        stream.send_raw(b"\xff\xff\xff")

        stream = await server.stream("n")
        stream.send(CLUSTER, eds_cluster("a"))
        assert await news(a) == Changed(eds_cluster("a"))


@BOTH
async def test_client__stream_lost_with_and_without_a_response__is_silent_and_then_ambient(variant: Variant) -> None:
    """gRFC A57: only a stream that brought no response is a failure."""
    async with scripted(variant) as (server, one), one.follow(CLUSTERS, "a") as a:
        stream = await server.stream("n")
        stream.send(CLUSTER, eds_cluster("a"))
        assert await news(a) == Changed(eds_cluster("a"))
        server.refuse_with = grpc.StatusCode.PERMISSION_DENIED

        await stream.end()

        item = await news(a)
        assert isinstance(item, AmbientError)
        assert item.error.code == StatusCode.UNAVAILABLE
        assert "PERMISSION_DENIED: the script refuses streams" in item.error.message


async def test_client__nobody_listens__every_watch_is_told_why_and_a_server_that_comes_back_is_found() -> None:
    (port,) = free_ports(1)
    async with client(f"127.0.0.1:{port}") as one, one.follow(CLUSTERS, "a") as a:
        lost = await status(a)
        assert lost.code == StatusCode.UNAVAILABLE
        assert "the xDS server cannot be reached" in lost.message
        assert "Connection refused" in lost.message

        async with scripted_ads(address=f"127.0.0.1:{port}") as server:
            (await server.stream("n")).send(CLUSTER, eds_cluster("a"))

            assert await news(a) == Changed(eds_cluster("a"))


async def test_client__first_server_away__uses_the_next_one() -> None:
    (port,) = free_ports(1)
    async with (
        scripted_ads() as server,
        client(f"127.0.0.1:{port}", server.address) as one,
        one.follow(CLUSTERS, "a") as a,
    ):
        (await server.stream("n")).send(CLUSTER, eds_cluster("a"))

        assert await news(a) == Changed(eds_cluster("a"))
        assert list(one.servers().values()) == [server.address]


async def test_client__equal_watches__share_a_subscription_until_the_last_ends() -> None:
    async with scripted(Variant.SOTW) as (server, one):
        first, second, other = Ear(), Ear(), Ear()
        one.watch(LISTENERS, "keeps the stream", other)
        watches = [one.watch(CLUSTERS, "a", first), one.watch(CLUSTERS, "a", second)]
        stream = await server.stream("n")
        assert list((await stream.request(CLUSTER)).resource_names) == ["a"]
        nonce = stream.send(CLUSTER, eds_cluster("a"))
        answer = await stream.answered(CLUSTER, nonce)
        assert first.heard == second.heard == [eds_cluster("a")]
        assert (stream.requests[0].HasField("node"), answer.HasField("node")) == (True, False), "protocol.md A3"

        watches[0].cancel()
        watches[0].cancel()
        nonce = stream.send(CLUSTER, eds_cluster("a", "9s"))
        await stream.answered(CLUSTER, nonce)
        assert (len(first.heard), len(second.heard)) == (1, 2)
        watches[1].cancel()

        assert list((await stream.request(CLUSTER)).resource_names) == []


async def test_client__last_watch_ends__ends_the_stream_and_a_new_one_begins_another() -> None:
    async with scripted(Variant.SOTW) as (server, one):
        async with one.follow(CLUSTERS, "a"):
            stream = await server.stream("n")
        async with asyncio.timeout(5):
            await stream.ended.wait()

        async with one.follow(CLUSTERS, "a"):
            assert await server.stream("n") is not stream


async def test_watcher__that_fails_or_watches_more__harms_nobody() -> None:
    async with scripted(Variant.SOTW) as (server, one):
        ear, late = Ear(), Ear()

        class Breaks:
            def on_resource_changed(self, resource: Message | Status) -> None:  # noqa: ARG002 - the protocol's name
                one.watch(CLUSTERS, "a", late)
                assert late.heard == [], "never told from within a call"
                raise RuntimeError("a watcher's own mistake")

            def on_ambient_error(self, error: Status) -> None: ...

        one.watch(CLUSTERS, "a", Breaks())
        one.watch(CLUSTERS, "a", ear)

        stream = await server.stream("n")
        await stream.answered(CLUSTER, stream.send(CLUSTER, eds_cluster("a")))

        assert ear.heard == late.heard == [eds_cluster("a")]


async def test_following__slow_reader__sees_the_newest_state_only() -> None:
    async with scripted(Variant.SOTW) as (server, one), one.follow(CLUSTERS, "a") as a:
        stream = await server.stream("n")
        for seconds in range(1, 9):
            await stream.answered(CLUSTER, stream.send(CLUSTER, eds_cluster("a", f"{seconds}s")))
        await stream.answered(CLUSTER, stream.send(CLUSTER, errors=[("a", 7, "no")]))

        assert [await news(a), await news(a)] == [
            Changed(eds_cluster("a", "8s")),
            AmbientError(Status(StatusCode.PERMISSION_DENIED, "no")),
        ]


async def test_following__resource_after_an_ambient_error__has_cleared_it() -> None:
    """A88: the error condition is considered to be cleared when OnResourceChanged() is invoked."""
    async with scripted(Variant.SOTW) as (server, one), one.follow(CLUSTERS, "a") as a:
        stream = await server.stream("n")
        await stream.answered(CLUSTER, stream.send(CLUSTER, eds_cluster("a")))
        await stream.answered(CLUSTER, stream.send(CLUSTER, errors=[("a", 7, "no")]))
        await stream.answered(CLUSTER, stream.send(CLUSTER, eds_cluster("a", "2s")))
        a.close()

        waiting = [a._changed, a._ambient]

    assert waiting == [Changed(eds_cluster("a", "2s")), None]


async def test_watch__of_what_is_cached__is_told_after_it_returned() -> None:
    async with scripted(Variant.SOTW) as (server, one), one.follow(CLUSTERS, "a") as a:
        (await server.stream("n")).send(CLUSTER, eds_cluster("a"))
        await news(a)
        ear = Ear()

        one.watch(CLUSTERS, "a", ear)

        assert ear.heard == []
        await asyncio.sleep(0)
        assert ear.heard == [eds_cluster("a")]


async def test_following__client_ends__comes_to_its_end() -> None:
    async with scripted_ads() as server:
        async with client(server.address) as one:
            following = one.follow(CLUSTERS, "a")
            waiting = asyncio.create_task(anext(following, None))
            await server.stream("n")

        assert await waiting is None


async def test_authorities__each_with_its_servers__and_an_unknown_one_is_news() -> None:
    async with scripted_ads() as own, scripted_ads() as shared:
        bootstrap = Bootstrap(
            (Server(shared.address),), Node("n"), {"own": Authority((Server(own.address),)), "none": Authority()}
        )
        async with XdsClient(bootstrap, data_errors=DataErrorHandling.ON) as one:
            names = [f"xdstp://{authority}/{XDSTP_CLUSTER}/a" for authority in ("own", "none", "unknown")]
            ears = [Ear(), Ear(), Ear()]
            for name, ear in zip(names, ears, strict=True):
                one.watch(CLUSTERS, name, ear)
            one.watch(CLUSTERS, "old style", Ear())

            first = await (await own.stream("n")).request(CLUSTER)
            second = await (await shared.stream("n")).request(CLUSTER)

            assert list(first.resource_names) == [names[0]]
            assert list(second.resource_names) == [names[1], "old style"]
            error = Status(StatusCode.INVALID_ARGUMENT, "the authority 'unknown' is not in the bootstrap")
            assert [ear.heard for ear in ears] == [[], [], [error]]
            assert one.resource_counts() == {
                ResourceLabels("#server", authority, "requested", XDSTP_CLUSTER): 1
                for authority in ("own", "none", "#old")
            }


async def test_client__token_file__sends_its_content_and_reads_it_anew_for_each_stream(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with scripted_ads() as server:
        bootstrap = Bootstrap((Server(server.address, token_file=str(token)),), Node("n"))
        async with XdsClient(bootstrap) as one, one.follow(CLUSTERS, "a"):
            stream = await server.stream("n")
            assert stream.metadata["authorization"] == "Bearer first"
            await stream.answered(CLUSTER, stream.send(CLUSTER, eds_cluster("a")))
            token.write_text("second")
            await stream.end()

            assert (await server.stream("n")).metadata["authorization"] == "Bearer second"


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (Server("192.0.2.1:1", token_file="unread"), "the token for 192.0.2.1:1 is sent over TLS only"),
        (Server("127.0.0.1:1", token_file="/no/such/token"), "/no/such/token cannot be read: No such file"),
        (Server("127.0.0.1:1", token_file="/dev/null"), "/dev/null holds no token"),
        (Server("127.0.0.1:1", Tls("/no/such/ca")), "/no/such/ca cannot be read: No such file"),
    ],
    ids=["open wire", "no token", "empty token", "no authority"],
)
async def test_client__credentials_that_cannot_be_used__are_news_and_nothing_is_sent(
    server: Server, problem: str
) -> None:
    async with XdsClient(Bootstrap((server,), Node("n"))) as one, one.follow(CLUSTERS, "a") as a:
        assert problem in (await status(a)).message


async def test_client__mutual_tls__proves_itself_and_checks_the_server(tmp_path: Path) -> None:
    authority, stranger = CertificateAuthority("ads"), CertificateAuthority("stranger")
    key, certificate = authority.issue(common_name="server", dns="localhost")
    credentials = grpc.ssl_server_credentials([(key, certificate)], authority.pem(), require_client_auth=True)
    for name, content in zip(("key", "cert"), authority.issue("spiffe://td/pay"), strict=True):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "ca").write_bytes(authority.pem())
    (tmp_path / "other ca").write_bytes(stranger.pem())
    paths = {name: str(tmp_path / name) for name in ("ca", "other ca", "cert", "key")}

    async with scripted_ads(credentials, "localhost:0") as server:
        proven = Server(server.address, Tls(paths["ca"], paths["cert"], paths["key"]))
        async with XdsClient(Bootstrap((proven,), Node("n"))) as one, one.follow(CLUSTERS, "a") as a:
            (await server.stream("n")).send(CLUSTER, eds_cluster("a"))
            assert await news(a) == Changed(eds_cluster("a"))

        for wrong in (Tls(paths["other ca"], paths["cert"], paths["key"]), Tls(paths["ca"])):
            bootstrap = Bootstrap((Server(server.address, wrong),), Node("n"))
            async with XdsClient(bootstrap) as one, one.follow(CLUSTERS, "a") as a:
                assert (await status(a)).code == StatusCode.UNAVAILABLE


async def test_client__timer__fires_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell's clock, with the engine's 15 s made short; the engine's own tests keep the real number."""
    monkeypatch.setattr("xdsclient.engine.policy.DOES_NOT_EXIST_TIMER_S", 0.2)
    async with scripted(Variant.SOTW) as (server, one), one.follow(CLUSTERS, "a") as a:
        await server.stream("n")
        started = asyncio.get_running_loop().time()

        assert (await status(a)).code == StatusCode.NOT_FOUND

        assert 0.15 < asyncio.get_running_loop().time() - started < 2


async def test_client__guard_of_a88__is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING", raising=False)
    async with scripted_ads() as server:
        bootstrap = Bootstrap((Server(server.address),), Node("n"))
        async with XdsClient(bootstrap) as off, off.follow(CLUSTERS, "a"):
            stream = await server.stream("n")
            await stream.answered(CLUSTER, stream.send(CLUSTER, errors=[("a", 5, "gone")]))
            assert [entry.label for entry in off.cache()] == ["requested"]

        monkeypatch.setenv("GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING", "true")
        async with XdsClient(bootstrap) as on, on.follow(CLUSTERS, "a"):
            stream = await server.stream("n")
            await stream.answered(CLUSTER, stream.send(CLUSTER, errors=[("a", 5, "gone")]))
            assert [entry.label for entry in on.cache()] == ["received_error"]


async def test_watch__outside_the_block_or_of_a_foreign_type__is_a_mistake() -> None:
    one = client("127.0.0.1:1")

    with pytest.raises(RuntimeError, match="inside its 'async with' block"):
        one.watch(CLUSTERS, "a", Ear())
    async with one:
        with pytest.raises(ValueError, match="was not given the type"):
            one.watch(standard_type(CLUSTER), "a", Ear())
