"""What the client writes: ACK and NACK (A46), names and versions in both variants, how a stream begins."""

import pytest

from tests.unit.xdsclient.driver import Driver, connected, delta, error, invalid, names_asked, valid
from xdsclient.engine.events import DeltaRequest, Heartbeat, Nack, Response, SotwRequest, Variant
from xdsclient.engine.values import StatusCode
from xdscore.nacktext import attribute
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE, ResourceType

BOTH = pytest.mark.parametrize("variant", [Variant.SOTW, Variant.DELTA])


def test_sotw_request__first_then_ack__names_nonce_and_version() -> None:
    driver = Driver()
    driver.watch(ROUTE, "a")
    driver.open()

    driver.respond(ROUTE, valid("a"), version="7")

    assert driver.written == [SotwRequest(ROUTE, ("a",)), SotwRequest(ROUTE, ("a",), "1", "7")]


def test_delta_request__first_then_ack__subscribes_once() -> None:
    driver = Driver(variant=Variant.DELTA)
    driver.watch(ROUTE, "a")
    driver.open()

    driver.respond(ROUTE, valid("a"))

    assert driver.written == [DeltaRequest(ROUTE, ("a",)), DeltaRequest(ROUTE, nonce="1")]


@BOTH
def test_watches__before_the_stream_opens__cost_one_request_a_type(variant: Variant) -> None:
    driver = Driver(variant=variant)
    for name in ("a", "b", "c"):
        driver.watch(CLUSTER, name)

    driver.open()

    assert len(driver.written) == 1


@BOTH
def test_second_watch__of_the_same_resource__asks_nothing(variant: Variant) -> None:
    driver, _ = connected(CLUSTER, cached=True, variant=variant)
    written = len(driver.written)

    late = driver.watch(CLUSTER, "a")

    assert (len(driver.written), driver.heard[late]) == (written, ["v1"])


@BOTH
def test_nack__valid_beside_invalid__uses_the_valid_and_blames_the_invalid(variant: Variant) -> None:
    """A46: when a response is NACKed, all valid resources from it are used."""
    driver = Driver(variant=variant)
    good, bad = driver.watch(CLUSTER, "good"), driver.watch(CLUSTER, "bad")
    driver.open()

    (request,) = driver.respond(CLUSTER, valid("good"), invalid("bad", text="no type"), version="9")

    assert (driver.heard[good], driver.heard[bad]) == (["v1"], ["!INVALID_ARGUMENT"])
    assert request.nack is not None
    assert request.nack.code == StatusCode.INVALID_ARGUMENT
    assert request.nonce == "1"
    assert attribute(request.nack.message, type_url=CLUSTER.url, names=["good", "bad"]).names == ("bad",)


def test_sotw_nack__after_an_accepted_version__carries_the_accepted_one() -> None:
    """A46: the xDS wire protocol behavior is not changing."""
    driver, _ = connected(CLUSTER, cached=True)

    (request,) = driver.respond(CLUSTER, valid("a", "v2"), invalid("b"), version="9")

    assert isinstance(request, SotwRequest)
    assert (request.version, request.nonce) == ("r1", "2")


@BOTH
def test_nack__many_problems__is_bounded_and_says_how_many_more(variant: Variant) -> None:
    driver, _ = connected(CLUSTER, cached=False, variant=variant)

    (request,) = driver.respond(CLUSTER, *(invalid(f"cluster-{number}") for number in range(1000)))

    assert request.nack is not None
    assert len(request.nack.message) < 4096
    assert request.nack.message.endswith("more]")


@BOTH
def test_nack__malformed_error_entries__say_which_in_the_words_of_grpc(variant: Variant) -> None:
    driver, watch = connected(CLUSTER, cached=False, variant=variant)

    (request,) = driver.respond(CLUSTER, errors=[error("", 5), error("a", 0), error("a", 5)])

    text = "resource_errors index 0: resource_name unset; resource_errors index 1: a: error_detail must be non-OK"
    assert request.nack == Nack(3, f"xDS response validation errors: [{text}]")
    assert driver.heard[watch] == ["!NOT_FOUND"]


@BOTH
def test_response__name_twice__first_is_used_and_the_response_refused(variant: Variant) -> None:
    driver, watch = connected(CLUSTER, cached=False, variant=variant)

    (request,) = driver.respond(CLUSTER, valid("a", "v1"), valid("a", "v2"))

    assert driver.heard[watch] == ["v1"]
    assert request.nack is not None
    assert "resource index 1: a: INVALID_ARGUMENT: duplicate" in request.nack.message


def test_delta_response__sent_and_removed__is_refused() -> None:
    driver, watch = connected(CLUSTER, cached=False, variant=Variant.DELTA)

    (request,) = driver.respond(CLUSTER, valid("a"), removed=["a"])

    assert driver.heard[watch] == ["v1"]
    assert request.nack is not None


def test_sotw_response__unreadable_resource__deletes_nothing() -> None:
    """It may be the very one that seems to be missing."""
    driver, watch = connected(LISTENER, cached=True)

    driver.respond(LISTENER, invalid(""))

    assert (driver.heard[watch], driver.label(LISTENER, "a")) == (["v1"], "acked")


def test_sotw_response__rejected_resource__is_not_missing() -> None:
    driver, watch = connected(LISTENER, cached=True)

    driver.respond(LISTENER, invalid("a"))

    assert driver.heard[watch] == ["v1", "~INVALID_ARGUMENT"]


@BOTH
def test_heartbeat__changes_nothing_and_is_acknowledged(variant: Variant) -> None:
    driver, watch = connected(LISTENER, cached=True, variant=variant)

    driver.do(Response(LISTENER.url, "9", "hb", (Heartbeat("a", "v1"),)))
    (request,) = driver.flush()

    assert (driver.heard[watch], driver.label(LISTENER, "a")) == (["v1"], "acked")
    assert (request.nonce, request.nack) == ("hb", None)


@BOTH
def test_errors_only_response__is_acknowledged(variant: Variant) -> None:
    driver, _ = connected(ROUTE, cached=False, variant=variant)

    (request,) = driver.respond(ROUTE, errors=[error("a", 5)])

    assert (request.nonce, request.nack) == ("1", None)


@BOTH
def test_responses__read_faster_than_answered__each_is_answered_in_order(variant: Variant) -> None:
    driver, _ = connected(ROUTE, cached=False, variant=variant)

    for nonce, resource in (("n1", invalid("a")), ("n2", valid("a")), ("n3", invalid("a"))):
        driver.do(Response(ROUTE.url, nonce, nonce, (resource,)))
    answers = driver.flush()

    assert [(request.nonce, request.nack is not None) for request in answers] == [
        ("n1", True),
        ("n2", False),
        ("n3", True),
    ]


def test_sotw_unwatch__drops_the_name_and_the_last_one_leaves_an_empty_list() -> None:
    driver, first = connected(CLUSTER, cached=True)
    second = driver.watch(CLUSTER, "b")
    driver.watch(ROUTE, "keeps the stream")

    driver.unwatch(first)
    driver.unwatch(second)

    assert [names_asked(request) for request in driver.written[-2:]] == [("b",), ()]


def test_delta_unwatch__unsubscribes() -> None:
    driver, first = connected(CLUSTER, cached=True, variant=Variant.DELTA)
    driver.watch(CLUSTER, "b")

    driver.unwatch(first)

    assert delta(driver.last()) == DeltaRequest(CLUSTER, (), ("a",))


@BOTH
def test_unwatch__before_anything_was_asked__writes_nothing(variant: Variant) -> None:
    """An empty first request would mean everything (protocol.md C2)."""
    driver = Driver(variant=variant)
    driver.watch(ROUTE, "keeps the stream")
    watch = driver.watch(CLUSTER, "a")
    driver.unwatch(watch)

    driver.open()

    assert [request.kind for request in driver.written] == [ROUTE]


@BOTH
def test_unwatch_and_watch_again__before_the_server_heard_of_it__keeps_what_is_known(variant: Variant) -> None:
    driver, watch = connected(CLUSTER, cached=True, variant=variant)
    driver.watch(ROUTE, "keeps the stream")

    driver.unwatch(watch, flush=False)
    again = driver.watch(CLUSTER, "a")

    assert driver.heard[again] == ["v1"]


@BOTH
def test_unwatch_and_watch_again__after_the_server_heard_of_it__asks_again(variant: Variant) -> None:
    driver, watch = connected(CLUSTER, cached=True, variant=variant)
    driver.watch(ROUTE, "keeps the stream")

    driver.unwatch(watch)
    again = driver.watch(CLUSTER, "a")

    assert (driver.heard[again], driver.label(CLUSTER, "a")) == ([], "requested")
    request = driver.last()
    assert "a" in (request.names if isinstance(request, SotwRequest) else request.subscribe)


def test_sotw_drop_and_add__crossed_by_a_response__is_said_once_more() -> None:
    """B3: the server ignores a request with a stale nonce, and would never see that the name was dropped."""
    driver, watch = connected(CLUSTER, cached=True)
    driver.watch(CLUSTER, "b")
    driver.unwatch(watch)
    driver.watch(CLUSTER, "a")

    answers = driver.respond(CLUSTER, valid("b"))

    assert [names_asked(request) for request in answers] == [("b",), ("b", "a")]


def test_sotw_reconnect__same_server__says_the_last_version_and_no_nonce() -> None:
    driver, _ = connected(CLUSTER, cached=True)

    driver.close()
    driver.open()

    assert driver.last() == SotwRequest(CLUSTER, ("a",), "", "r1")


def test_delta_reconnect__names_in_error__are_not_among_the_initial_versions() -> None:
    """F11a: the server would stay silent about a version the client says it has, and the error would last."""
    driver = Driver(variant=Variant.DELTA)
    for name in ("denied", "fine", "gone", "refused", "well"):
        driver.watch(ROUTE, name)
    driver.open()
    driver.respond(ROUTE, *(valid(name) for name in ("denied", "fine", "gone", "refused", "well")))
    driver.respond(ROUTE, invalid("refused"), errors=[error("denied", 7)], removed=["gone"])

    driver.close()
    driver.open()

    request = delta(driver.last())
    assert request.subscribe == ("denied", "fine", "gone", "refused", "well")
    assert request.initial_versions == {"fine": "v1", "well": "v1"}


def test_delta_reconnect__nothing_in_error__leaves_one_resource_for_the_server_to_prove_itself_with() -> None:
    driver = Driver(variant=Variant.DELTA)
    for name in ("a", "b"):
        driver.watch(ROUTE, name)
        driver.watch(CLUSTER, name)
    driver.open()
    driver.respond(ROUTE, valid("a"), valid("b"))
    driver.respond(CLUSTER, valid("a"), valid("b"))

    driver.close()
    driver.open()

    first, second = (delta(request) for request in driver.written[-2:])
    assert (first.initial_versions, second.initial_versions) == ({"b": "v1"}, {"a": "v1", "b": "v1"})


@BOTH
def test_reconnect__to_another_server__says_nothing_of_versions(variant: Variant) -> None:
    driver = Driver(variant=variant, servers=(frozenset(), frozenset()))
    for name in ("a", "missing"):
        driver.watch(CLUSTER, name)
    driver.open()
    driver.respond(CLUSTER, valid("a"))
    driver.close()
    driver.open()
    driver.close()
    driver.open()

    request = driver.last()

    assert driver.engine.server == 1
    if isinstance(request, SotwRequest):
        assert request.version == ""
    else:
        assert request.initial_versions == {}


@pytest.mark.parametrize("kind", [LISTENER, ROUTE])
@BOTH
def test_response__names_nobody_watches__are_ignored(variant: Variant, kind: ResourceType) -> None:
    driver, watch = connected(kind, cached=True, variant=variant)

    (request,) = driver.respond(kind, valid("a"), valid("z"), errors=[error("y", 5)], removed=["x"])

    assert request.nack is None
    assert driver.heard[watch] == ["v1"]
    assert [key.name for key in driver.engine.entries()] == ["a"]
