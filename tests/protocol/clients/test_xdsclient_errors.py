"""TP3 with the one client that speaks it over delta: our own, on real gRPC, against the real server (issue 3)."""

import asyncio

import pytest
from google.protobuf.message import Message

from tests.protocol.engine.world import name_rules
from tests.support.ads import Running, running
from tests.support.xds_resources import assignment, eds_cluster
from xdsclient import (
    CLUSTERS,
    ENDPOINTS,
    AmbientError,
    Bootstrap,
    Changed,
    ClientType,
    DataErrorHandling,
    Following,
    Node,
    Server,
    ServerFeature,
    Status,
    StatusCode,
    Variant,
    XdsClient,
)
from xdscore.access import AccessTable, Effect
from xdscore.resource_types import CLUSTER, ENDPOINT

BOTH = pytest.mark.parametrize("variant", list(Variant))
TYPES = pytest.mark.parametrize("kind", [CLUSTERS, ENDPOINTS], ids=["CDS", "EDS"])
FAIL = frozenset({ServerFeature.FAIL_ON_DATA_ERRORS})
# Before the 15 s after which a client without TP3 gives up, on a busy machine too.
SOON_S = 10.0

News = Changed[Message] | AmbientError


def client(
    run: Running,
    variant: Variant,
    features: frozenset[ServerFeature] = frozenset(),
    data_errors: DataErrorHandling = DataErrorHandling.ON,
) -> XdsClient:
    server = Server(run.address, features=features)
    return XdsClient(Bootstrap((server,), Node("n")), variant=variant, data_errors=data_errors)


def publish(run: Running, *, served: bool, effect: Effect = Effect.ALLOW, withheld: bool = False) -> None:
    """Cluster and assignment `x`: served or not, and what a rule and the builder say of them."""
    effects = {} if effect is Effect.ALLOW else {(kind.word, "x"): effect for kind in (CLUSTER, ENDPOINT)}
    access = name_rules(effects) if effects else AccessTable(Effect.ALLOW)
    held = {(kind, "x"): "no client could use it" for kind in (CLUSTER, ENDPOINT)} if withheld else {}
    messages = (eds_cluster("x"), assignment("x", 1)) if served else ()
    run.server.directory_changed(run.catalogue.publish(*messages, withheld=held, access=access))


async def news(following: Following[Message]) -> News:
    async with asyncio.timeout(SOON_S):
        return await anext(following)


async def refusal(following: Following[Message]) -> Status:
    """The next news, which must be an error in place of the resource."""
    item = await news(following)
    assert isinstance(item, Changed)
    assert isinstance(item.resource, Status)
    return item.resource


@pytest.mark.shows("xdsclient", "hears the reason of what it cannot have (xRFC TP3)", "SotW, delta")
@BOTH
@TYPES
@pytest.mark.parametrize(
    ("effect", "withheld", "code", "says"),
    [
        (Effect.ALLOW, False, StatusCode.NOT_FOUND, "NOT_FOUND [XDS2101]"),
        (Effect.HIDE, False, StatusCode.NOT_FOUND, "NOT_FOUND [XDS2101]"),
        (Effect.DENY, False, StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED [XDS2103]"),
        (Effect.ALLOW, True, StatusCode.INTERNAL, "INTERNAL [XDS2106]"),
    ],
)
async def test_error__of_a_name_never_held__is_heard_at_once_and_ends_with_the_resource(
    variant: Variant, kind: ClientType[Message], effect: Effect, withheld: bool, code: StatusCode, says: str
) -> None:
    async with running() as run, client(run, variant) as one:
        publish(run, served=False, effect=effect, withheld=withheld)
        async with one.follow(kind, "x") as x:
            told = await refusal(x)

            publish(run, served=True)
            back = await news(x)

    assert (told.code, told.message[: len(says)]) == (code, says)
    assert isinstance(back, Changed)
    assert not isinstance(back.resource, Status)


@BOTH
@TYPES
@pytest.mark.parametrize(
    ("effect", "code"), [(Effect.ALLOW, StatusCode.NOT_FOUND), (Effect.DENY, StatusCode.PERMISSION_DENIED)]
)
async def test_error__of_a_resource_in_use__is_dropped_only_by_who_fails_on_data_errors(
    variant: Variant, kind: ClientType[Message], effect: Effect, code: StatusCode
) -> None:
    async with running() as run, client(run, variant, FAIL) as strict, client(run, variant) as lenient:
        publish(run, served=True)
        async with strict.follow(kind, "x") as x, lenient.follow(kind, "x") as y:
            await news(x)
            await news(y)
            publish(run, served=effect is not Effect.ALLOW, effect=effect)
            dropped, ambient = await refusal(x), await news(y)

            publish(run, served=True)
            back = await news(x)
            healed = await news(y)
            entries = [entry.label for one in (strict, lenient) for entry in one.cache()]

    assert dropped.code == code
    assert isinstance(ambient, AmbientError)
    assert ambient.error.code == code
    assert isinstance(back, Changed)
    assert not isinstance(back.resource, Status)
    assert isinstance(healed, AmbientError)
    assert healed.error.code == StatusCode.OK
    assert entries == ["acked", "acked"]


@BOTH
async def test_error__client_without_tp3__keeps_waiting_and_gets_the_resource(variant: Variant) -> None:
    """T9: what TP3 adds does not disturb whoever does not know it."""
    async with running() as run, client(run, variant, data_errors=DataErrorHandling.OFF) as one:
        publish(run, served=False, effect=Effect.DENY)
        async with one.follow(ENDPOINTS, "x") as x:
            if variant is Variant.SOTW:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(x), 0.5)
            else:
                # The removal beside the error is what delta always said.
                assert (await refusal(x)).code == StatusCode.NOT_FOUND

            publish(run, served=True)

            assert await news(x) == Changed(assignment("x", 1))
