"""Globs and wildcards over a socket: our own client, on real gRPC, against the real server, in both variants."""

import asyncio
from collections.abc import Mapping

import pytest
from google.protobuf.message import Message

from tests.protocol.engine.world import name_rules
from tests.support.ads import Running, running
from tests.support.xds_resources import assignment, eds_cluster
from xdsclient import (
    CLUSTERS,
    ENDPOINTS,
    Authority,
    Bootstrap,
    ClientType,
    CollectionStatus,
    DataErrorHandling,
    FollowingCollection,
    MemberAmbientError,
    MemberChanged,
    MemberGone,
    Node,
    Server,
    ServerFeature,
    Status,
    Variant,
    XdsClient,
)
from xdsclient.csds import client_config
from xdscore.access import AccessTable, Effect

BOTH = pytest.mark.parametrize("variant", list(Variant))
TYPES = pytest.mark.parametrize("kind", [CLUSTERS, ENDPOINTS], ids=["CDS", "EDS"])
SOON_S = 10.0


def client(run: Running, variant: Variant, *features: ServerFeature) -> XdsClient:
    server = Server(run.address, features=frozenset(features))
    bootstrap = Bootstrap((server,), Node("n"), {"a": Authority()})
    return XdsClient(bootstrap, variant=variant, data_errors=DataErrorHandling.ON)


def glob_of(kind: ClientType[Message]) -> str:
    return f"xdstp://a/{kind.kind.message}/d/*"


def publish(
    run: Running,
    kind: ClientType[Message],
    members: Mapping[str, int],
    *,
    withheld: str = "",
    effects: Mapping[str, Effect] | None = None,
) -> None:
    """Exactly these members of the collection, in these editions; `effects` are rules for names, "*" for its own."""
    base = glob_of(kind).removesuffix("*")
    access = name_rules({(kind.kind.word, base + own): effect for own, effect in (effects or {}).items()})
    run.server.directory_changed(
        run.catalogue.publish(
            *(_resource(kind, base + own, edition) for own, edition in members.items()),
            withheld={(kind.kind, base + withheld): "nobody could use it"} if withheld else {},
            access=access if effects else AccessTable(Effect.ALLOW),
        )
    )


def _resource(kind: ClientType[Message], name: str, edition: int) -> Message:
    made: Message = eds_cluster(name, f"{edition}s") if kind is CLUSTERS else assignment(name, edition)
    return made


async def told(following: FollowingCollection[Message], count: int = 1) -> list[str]:
    """The next news, in short: `x` a member's resource, `x !CODE` an error in its place, `x ~CODE` beside it, `-x CODE`
    gone; `*` is the whole.
    """
    found: list[str] = []
    async with asyncio.timeout(SOON_S):
        while len(found) < count:
            match await anext(following):
                case MemberChanged(name, Status() as status):
                    found.append(f"{_own(name)} !{_code(status)}")
                case MemberChanged(name, _):
                    found.append(_own(name))
                case MemberAmbientError(name, status):
                    found.append(f"{_own(name)} ~{_code(status)}")
                case MemberGone(name, status):
                    found.append(f"-{_own(name)} {_code(status)}")
                case CollectionStatus(status):
                    found.append(f"* {_code(status)}")
    return found


def _own(name: str) -> str:
    return name.rpartition("/")[2]


def _code(status: Status) -> str:
    """`NOT_FOUND XDS2101`, or what the code alone says."""
    words = status.message.replace("[", "").replace("]", "").split(maxsplit=2)
    return " ".join(words[:2]) if len(words) > 1 and words[1].startswith("XDS") else str(status).partition(":")[0]


@pytest.mark.shows("xdsclient", "xdstp glob collections", "SotW, delta")
@BOTH
@TYPES
async def test_glob__members_come_change_are_withheld_and_go__each_is_told_by_its_own_name(
    variant: Variant, kind: ClientType[Message]
) -> None:
    async with running() as run, client(run, variant) as one:
        publish(run, kind, {"x": 1, "y": 1})
        async with one.follow_collection(kind, glob_of(kind)) as news:
            start = await told(news, 3)
            publish(run, kind, {"x": 2, "y": 1, "z": 1})
            changed = await told(news, 2)
            publish(run, kind, {"x": 2, "y": 1}, withheld="z")
            # A full state goes on with what the client acknowledged (F18a).
            heard = not (variant is Variant.SOTW and kind.kind.full_state)
            withheld = await told(news) if heard else []
            publish(run, kind, {"x": 2, "y": 1})
            ended = await told(news)
            publish(run, kind, {"x": 2}, effects={"y": Effect.DENY})
            denied = await told(news)
            publish(run, kind, {"x": 2, "y": 1})
            back = await told(news)
            cached = sorted((_own(entry.key.name), entry.label) for entry in one.cache())

    assert start == ["x", "y", "* OK"]
    assert sorted(changed) == ["x", "z"]
    assert withheld == (["z ~INTERNAL XDS2106"] if heard else [])
    assert ended == ["-z NOT_FOUND XDS2101"]
    assert denied == ["-y PERMISSION_DENIED XDS2103"]
    assert back == ["y"]
    assert cached == [("x", "acked"), ("y", "acked")]


@pytest.mark.shows("xdsclient", "wildcards", "SotW, delta")
@BOTH
async def test_wildcard__of_clusters__follows_everything_there_is(variant: Variant) -> None:
    async with running() as run, client(run, variant) as one:
        run.publish()
        async with one.follow_collection(CLUSTERS, "*") as news:
            empty = await told(news)
            run.publish(eds_cluster("a"), eds_cluster("b"))
            came = await told(news, 2)
            run.publish(eds_cluster("b", "9s"))
            moved = await told(news, 2)

    assert (empty, came, sorted(moved)) == (["* OK"], ["a", "b"], ["-a NOT_FOUND", "b"])


@BOTH
@TYPES
@pytest.mark.parametrize(
    ("effect", "says"), [(Effect.DENY, "PERMISSION_DENIED XDS2103"), (Effect.HIDE, "NOT_FOUND XDS2101")]
)
async def test_glob__refused_as_a_whole__ends_its_members_only_for_who_fails_on_data_errors(
    variant: Variant, kind: ClientType[Message], effect: Effect, says: str
) -> None:
    fails = ServerFeature.FAIL_ON_DATA_ERRORS
    async with running() as run, client(run, variant, fails) as strict, client(run, variant) as lenient:
        publish(run, kind, {"x": 1})
        async with (
            strict.follow_collection(kind, glob_of(kind)) as ends,
            lenient.follow_collection(kind, glob_of(kind)) as goes_on,
        ):
            await asyncio.gather(told(ends, 2), told(goes_on, 2))
            publish(run, kind, {"x": 1}, effects={"*": effect})
            ended, ambient = await told(ends, 2), await told(goes_on)
            kept = [(_own(entry.key.name), entry.label) for entry in lenient.cache()]
            publish(run, kind, {"x": 1})
            back, healed = await told(ends, 2), await told(goes_on)

    assert (ended, ambient) == ([f"-x {says}", f"* {says}"], [f"* {says}"])
    assert kept == [("*", "received_error"), ("x", "acked")]
    assert (back, healed) == (["x", "* OK"], ["* OK"])


@BOTH
async def test_glob__csds_and_metrics__show_members_by_their_own_names(variant: Variant) -> None:
    async with running() as run, client(run, variant) as one:
        publish(run, ENDPOINTS, {"x": 1})
        async with one.follow_collection(ENDPOINTS, glob_of(ENDPOINTS)) as news:
            requested = [entry.name for entry in client_config(one).generic_xds_configs]
            await told(news, 2)
            (entry,) = client_config(one).generic_xds_configs
            counts = {(labels.authority, labels.cache_state): n for labels, n in one.resource_counts().items()}

    assert requested == [glob_of(ENDPOINTS)]
    assert entry.name == glob_of(ENDPOINTS).replace("*", "x")
    assert entry.xds_config.type_url == ENDPOINTS.kind.url
    assert counts == {("a", "acked"): 1}


async def test_following_a_collection__slow_reader__sees_the_newest_state_of_each_member() -> None:
    async with running() as run, client(run, Variant.DELTA) as one:
        publish(run, ENDPOINTS, {"x": 1, "y": 1})
        async with one.follow_collection(ENDPOINTS, glob_of(ENDPOINTS)) as slow:
            async with one.follow_collection(ENDPOINTS, glob_of(ENDPOINTS)) as quick:
                await told(quick, 3)
                publish(run, ENDPOINTS, {"x": 2, "y": 1})
                await told(quick)
                publish(run, ENDPOINTS, {"x": 2})
                await told(quick)
            seen = await told(slow, 3)

    assert seen == ["x", "-y NOT_FOUND XDS2101", "* OK"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("plain", "names one resource and no collection"),
        ("xdstp://a/envoy.config.cluster.v3.ClusterCollection/foo", "names a list collection"),
        ("xdstp://b/envoy.config.cluster.v3.Cluster/d/*", "the authority 'b' is not in the bootstrap"),
    ],
)
async def test_collection__that_cannot_be_asked_for__is_news_in_words(name: str, says: str) -> None:
    async with (
        running() as run,
        client(run, Variant.SOTW) as one,
        one.follow_collection(CLUSTERS, name) as news,
        asyncio.timeout(SOON_S),
    ):
        item = await anext(news)

    assert isinstance(item, CollectionStatus)
    assert says in item.status.message


async def test_collection__watched_like_a_resource__is_told_where_it_belongs() -> None:
    async with (
        running() as run,
        client(run, Variant.SOTW) as one,
        one.follow(CLUSTERS, glob_of(CLUSTERS)) as news,
        asyncio.timeout(SOON_S),
    ):
        item = await anext(news)

    assert "names a collection, which watch_collection and follow_collection take" in str(item)
