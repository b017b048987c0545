"""gRFC A88 and xRFC TP3, sentence by sentence: what a client does, on the wire of SotW and of delta.

A row's `source` names the section, its `says` quotes the sentence in short. `heard` is what the watch heard after the
resource was cached, or from the start where it was not; see `driver.Heard`. `label` is `grpc.xds.cache_state`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.unit.xdsclient.driver import FAIL, IGNORE, LOST, TRANSIENT, Driver, Heard, connected, error, invalid, valid
from xdsclient.engine.events import ChannelFailed, Variant
from xdsclient.engine.values import ServerFeature, Status, StatusCode
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType

BOTH = (Variant.SOTW, Variant.DELTA)
SOTW = (Variant.SOTW,)
DELTA = (Variant.DELTA,)
NOT_FOUND, DENIED = StatusCode.NOT_FOUND, StatusCode.PERMISSION_DENIED

Happens = Callable[[Driver, ResourceType], object]


@dataclass(frozen=True)
class Row:
    source: str
    says: str
    kinds: tuple[ResourceType, ...]
    cached: bool
    features: tuple[ServerFeature, ...]
    happens: Happens
    heard: Heard
    label: str
    variants: tuple[Variant, ...] = BOTH
    guard: bool = True


ANY_FEATURES: tuple[tuple[ServerFeature, ...], ...] = ((), (FAIL,), (TRANSIENT,), (FAIL, TRANSIENT, IGNORE))
ALL = (LISTENER, ROUTE, CLUSTER, ENDPOINT)
FULL_STATE = (LISTENER, CLUSTER)


def channel_fails(driver: Driver, _: ResourceType) -> None:
    driver.do(ChannelFailed(LOST))


def stream_fails(driver: Driver, _: ResourceType) -> None:
    """The next stream ends without a response; one that brought something may end unnoticed."""
    driver.close()
    driver.open()
    driver.close()


def nack(driver: Driver, kind: ResourceType) -> None:
    driver.respond(kind, invalid("a"))


def timeout(driver: Driver, _: ResourceType) -> None:
    driver.wait(31)


def deletion(driver: Driver, kind: ResourceType) -> None:
    driver.respond(kind, removed=["a"] if driver.variant is Variant.DELTA else [])


def reports(code: int) -> Happens:
    return lambda driver, kind: driver.respond(kind, errors=[error("a", code)])


def reports_a_loss(code: int) -> Happens:
    """The server says why a name is not there, and in delta that it is removed."""
    return lambda driver, kind: driver.respond(
        kind, errors=[error("a", code)], removed=["a"] if driver.variant is Variant.DELTA else []
    )


def then(*steps: Happens) -> Happens:
    def happens(driver: Driver, kind: ResourceType) -> None:
        for step in steps:
            step(driver, kind)

    return happens


def sends(version: str) -> Happens:
    return lambda driver, kind: driver.respond(kind, valid("a", version))


def sends_nothing(driver: Driver, kind: ResourceType) -> None:
    driver.respond(kind)


def reconnects(driver: Driver, _: ResourceType) -> None:
    driver.close()
    driver.open()


def seconds(number: float) -> Happens:
    return lambda driver, _: driver.wait(number)


SUMMARY = "A88 Summary of Behavior Changes"
ROWS = [
    # A88's table, row by row; "(any)" is four sets of features.
    *(
        row
        for features in ANY_FEATURES
        for row in (
            Row(SUMMARY + " 1", "TRANSIENT_FAILURE, not cached: OnResourceChanged(Status)", ALL, False, features,
                channel_fails, ["!UNAVAILABLE"], "requested"),
            Row(SUMMARY + " 2", "TRANSIENT_FAILURE, cached: OnAmbientError(Status), Ignore", ALL, True, features,
                channel_fails, ["~UNAVAILABLE"], "acked"),
            Row(SUMMARY + " 3", "stream failed without reading a response, not cached: OnResourceChanged(Status)", ALL,
                False, features, stream_fails, ["!UNAVAILABLE"], "requested"),
            Row(SUMMARY + " 4", "stream failed without reading a response, cached: OnAmbientError(Status)", ALL, True,
                features, stream_fails, ["~UNAVAILABLE"], "acked"),
            Row(SUMMARY + " 5", "NACK, not cached: OnResourceChanged(Status)", ALL, False, features,
                nack, ["!INVALID_ARGUMENT"], "nacked"),
            Row(SUMMARY + " 11", "TP3 NOT_FOUND, not cached: OnResourceChanged(status)", ALL, False, features,
                reports(NOT_FOUND), ["!NOT_FOUND"], "received_error"),
            Row(SUMMARY + " 11", "TP3 PERMISSION_DENIED, not cached: OnResourceChanged(status)", ALL, False, features,
                reports(DENIED), ["!PERMISSION_DENIED"], "received_error"),
            *(
                Row(SUMMARY + " 14", "TP3 other status, not cached: OnResourceChanged(status)", ALL, False, features,
                    reports(code), ["!" + word], "received_error")
                for code, word in ((14, "UNAVAILABLE"), (13, "INTERNAL"), (2, "UNKNOWN"), (99, "99"))
            ),
            *(
                Row(SUMMARY + " 15", "TP3 other status, cached: OnAmbientError(status), Ignore", ALL, True, features,
                    reports(code), ["~" + word], "received_error_but_cached")
                for code, word in ((14, "UNAVAILABLE"), (13, "INTERNAL"), (2, "UNKNOWN"), (99, "99"))
            ),
        )
    ),
    *(
        row
        for keeps, drops in (((), (FAIL,)), ((TRANSIENT, IGNORE), (FAIL, TRANSIENT, IGNORE)))
        for row in (
            Row(SUMMARY + " 6", "NACK, cached, no feature: OnAmbientError(Status), Ignore", ALL, True, keeps,
                nack, ["~INVALID_ARGUMENT"], "nacked_but_cached"),
            Row(SUMMARY + " 7", "NACK, cached, feature: OnResourceChanged(Status), drop", ALL, True, drops,
                nack, ["!INVALID_ARGUMENT"], "nacked"),
            Row(SUMMARY + " 9", "LDS or CDS deletion, no feature: OnAmbientError(NOT_FOUND), Ignore", FULL_STATE, True,
                keeps, deletion, ["~NOT_FOUND"], "does_not_exist_but_cached"),
            Row(SUMMARY + " 10", "LDS or CDS deletion, feature: OnResourceChanged(NOT_FOUND), drop", FULL_STATE, True,
                drops, deletion, ["!NOT_FOUND"], "does_not_exist"),
            *(
                line
                for code, word in ((NOT_FOUND, "NOT_FOUND"), (DENIED, "PERMISSION_DENIED"))
                for line in (
                    Row(SUMMARY + " 12", f"TP3 {word}, cached, no feature: OnAmbientError(status)", ALL, True, keeps,
                        reports(code), ["~" + word], "received_error_but_cached"),
                    Row(SUMMARY + " 13", f"TP3 {word}, cached, feature: OnResourceChanged(status), drop", ALL, True,
                        drops, reports(code), ["!" + word], "received_error"),
                )
            ),
        )
    ),
    Row(SUMMARY + " 8", "Resource timeout: OnResourceChanged(NOT_FOUND)", ALL, False, (), timeout, ["!NOT_FOUND"],
        "does_not_exist"),
    Row(SUMMARY + " 8", "UNAVAILABLE if resource_timer_is_transient_error", ALL, False, (TRANSIENT,), timeout,
        ["!UNAVAILABLE"], "timeout"),
    # A88's prose.
    Row("A88 Changes to XdsClient Watcher APIs", "invoked with a new version", ALL, True, (), sends("v2"), ["v2"],
        "acked"),
    Row("A88 Changes to XdsClient Watcher APIs", "ambient error cleared by OnResourceChanged()", ALL, True, (),
        then(reports(NOT_FOUND), sends("v2")), ["~NOT_FOUND", "v2"], "acked"),
    Row("A88 Changes to XdsClient Watcher APIs", "or cleared by OnAmbientError() with OK: same content", ALL, True, (),
        then(reports(NOT_FOUND), sends("v1")), ["~NOT_FOUND", "~OK"], "acked"),
    Row("A88 Changes to XdsClient Watcher APIs", "identical content again is no new version", ALL, True, (),
        sends("v1"), [], "acked"),
    Row("A88 Changes to XdsClient Watcher APIs", "identical content after it was dropped is new", ALL, True, (FAIL,),
        then(reports(NOT_FOUND), sends("v1")), ["!NOT_FOUND", "v1"], "acked"),
    Row("A88 Handling Data Errors", "a dropped resource is not dropped twice: the next error is news too", ALL, True,
        (FAIL,), then(reports(NOT_FOUND), nack), ["!NOT_FOUND", "!INVALID_ARGUMENT"], "nacked"),
    Row("A88 Handling Transient Errors", "the stream's error is ambient; the resource stays", ALL, True, (FAIL,),
        then(stream_fails, seconds(60)), ["~UNAVAILABLE"], "acked"),
    Row("A88 Handling Transient Errors", "A57: a response proves that the server is back", ALL, True, (),
        then(stream_fails, lambda driver, _: driver.open(), sends("v1")), ["~UNAVAILABLE", "~OK"], "acked"),
    Row("A88 Handling Transient Errors", "A57: with news, which clear the error themselves", ALL, True, (),
        then(stream_fails, lambda driver, _: driver.open(), sends("v2")), ["~UNAVAILABLE", "v2"], "acked"),
    Row("A88 Handling Transient Errors", "what was wrong before the outage shows again after it", ALL, True, (),
        then(reports(DENIED), stream_fails, lambda driver, _: driver.open(), sends_nothing),
        ["~PERMISSION_DENIED", "~UNAVAILABLE", "~PERMISSION_DENIED"], "received_error_but_cached"),
    Row("A88 Handling Transient Errors", "A57: a stream that brought a response may end unnoticed", ALL, True, (),
        reconnects, [], "acked"),
    Row("A88 Support for Errors 1", "Cancel the resource timer", ALL, False, (), then(reports(14), timeout),
        ["!UNAVAILABLE"], "received_error"),
    Row("A88 Support for Errors 2", "status RECEIVED_ERROR, record the error", ALL, False, (), reports(DENIED),
        ["!PERMISSION_DENIED"], "received_error"),
    Row("A88 Support for Errors 3", "only NOT_FOUND and PERMISSION_DENIED delete the cached resource", ALL, True,
        (FAIL,), reports(16), ["~UNAUTHENTICATED"], "received_error_but_cached"),
    Row("A88 Support for Errors 4", "the newest error replaces the last", ALL, True, (),
        then(reports(14), reports(NOT_FOUND)), ["~UNAVAILABLE", "~NOT_FOUND"], "received_error_but_cached"),
    Row("A88 Changes to Resource Timer Behavior", "15 seconds: not a moment earlier", ALL, False, (), seconds(14.99),
        [], "requested"),
    Row("A88 Changes to Resource Timer Behavior", "15 seconds", ALL, False, (), seconds(15), ["!NOT_FOUND"],
        "does_not_exist"),
    Row("A88 Changes to Resource Timer Behavior", "30 seconds instead of 15", ALL, False, (TRANSIENT,), seconds(29.99),
        [], "requested"),
    Row("A88 Changes to Resource Timer Behavior", "UNAVAILABLE, and TIMEOUT instead of DOES_NOT_EXIST", ALL, False,
        (TRANSIENT,), seconds(30), ["!UNAVAILABLE"], "timeout"),
    Row("A88 Changes to Resource Timer Behavior", "fires only when nothing is cached", ALL, True, (TRANSIENT,),
        then(reconnects, seconds(60)), [], "acked"),
    Row("A88 Changes to Resource Timer Behavior", "errors are honoured regardless of the feature", ALL, False, (),
        reports(NOT_FOUND), ["!NOT_FOUND"], "received_error"),
    Row("A88 The Resource Timer", "A57: runs only when there is no transient error condition", ALL, False, (),
        then(seconds(10), lambda driver, _: driver.close(), seconds(60)), ["!UNAVAILABLE"], "requested"),
    Row("A88 The Resource Timer", "A57: and starts anew with the next stream", ALL, False, (),
        then(seconds(10), reconnects, seconds(14.99)), ["!UNAVAILABLE"], "requested"),
    Row("A88 The Resource Timer", "A57: to its end", ALL, False, (), then(seconds(10), reconnects, seconds(15)),
        ["!UNAVAILABLE", "!NOT_FOUND"], "does_not_exist"),
    Row("A88 Deprecating ignore_resource_deletion", "gRPC will ignore that feature", FULL_STATE, True, (FAIL, IGNORE),
        deletion, ["!NOT_FOUND"], "does_not_exist"),
    Row("A88 Deprecating ignore_resource_deletion", "without it deletions are ignored by default", FULL_STATE, True, (),
        deletion, ["~NOT_FOUND"], "does_not_exist_but_cached"),
    Row("A88 Deprecating ignore_resource_deletion", "when it comes back into existence it is in use as before",
        FULL_STATE, True, (), then(deletion, sends("v1")), ["~NOT_FOUND", "~OK"], "acked"),
    Row("A88 Temporary environment variable protection", "guards the new response fields", ALL, False, (),
        reports(NOT_FOUND), [], "requested", guard=False),
    Row("A88 Temporary environment variable protection", "guards fail_on_data_errors", ALL, True, (FAIL,), nack,
        ["~INVALID_ARGUMENT"], "nacked_but_cached", guard=False),
    Row("A88 Temporary environment variable protection", "guards resource_timer_is_transient_error", ALL, False,
        (TRANSIENT,), seconds(15), ["!NOT_FOUND"], "does_not_exist", guard=False),
    Row("A88 Temporary environment variable protection", "guards whether deletions are ignored", FULL_STATE, True, (),
        deletion, ["!NOT_FOUND"], "does_not_exist", guard=False),
    Row("A88 Temporary environment variable protection", "A53 holds without the guard", FULL_STATE, True, (IGNORE,),
        deletion, ["~NOT_FOUND"], "does_not_exist_but_cached", guard=False),
    # TP3.
    Row("TP3 Protocol Behavior", "cancel any resource timers", ALL, False, (), then(reports(NOT_FOUND), timeout),
        ["!NOT_FOUND"], "received_error"),
    Row("TP3 Protocol Behavior", "UNAVAILABLE, INTERNAL, UNKNOWN: MUST continue to use previously cached", ALL, True,
        (FAIL,), then(reports(14), reports(13), reports(2)), ["~UNAVAILABLE", "~INTERNAL", "~UNKNOWN"],
        "received_error_but_cached"),
    Row("TP3 Protocol Behavior", "any other status SHOULD be treated as transient", ALL, True, (FAIL,), reports(8),
        ["~RESOURCE_EXHAUSTED"], "received_error_but_cached"),
    Row("TP3 Protocol Behavior", "the server is expected to send the error once: later responses without it", ALL,
        False, (), then(reports(DENIED), sends_nothing, sends_nothing), ["!PERMISSION_DENIED"], "received_error"),
    Row("TP3 Protocol Behavior", "remembered, this includes LDS and CDS: no deletion", ALL, True, (FAIL,),
        then(reports(14), sends_nothing), ["~UNAVAILABLE"], "received_error_but_cached"),
    Row("TP3 Protocol Behavior", "remembered although the next stream says nothing for an hour", ALL, False, (),
        then(reports(DENIED), reconnects, sends_nothing, seconds(3600)), ["!PERMISSION_DENIED"], "received_error"),
    Row("TP3 Protocol Behavior", "until the resource is returned", ALL, False, (), then(reports(DENIED), sends("v1")),
        ["!PERMISSION_DENIED", "v1"], "acked"),
    Row("TP3 Protocol Behavior", "until a new error message is returned", ALL, False, (),
        then(reports(DENIED), reports(NOT_FOUND)), ["!PERMISSION_DENIED", "!NOT_FOUND"], "received_error"),
    Row("TP3 Protocol Behavior", "the same error again is no news", ALL, False, (),
        then(reports(DENIED), reports(DENIED)), ["!PERMISSION_DENIED"], "received_error"),
    Row("TP3 Protocol Behavior", "must not intersect; where they do the error comes after the resource", ALL, False,
        (), lambda driver, kind: driver.respond(kind, valid("a"), errors=[error("a", NOT_FOUND)]), ["v1", "~NOT_FOUND"],
        "received_error_but_cached"),
    Row("TP3 Abstract", "delta says that a resource does not exist without a timer", ALL, False, (), deletion,
        ["!NOT_FOUND"], "does_not_exist", DELTA),
    Row("TP3 Abstract", "SotW cannot: absence of what was never there means nothing", ALL, False, (), deletion, [],
        "requested", SOTW),
    # protocol.md F12: the same news in both variants, although delta removes the name besides.
    *(
        Row("TP3 Protocol Behavior", f"of a name that is gone and in error the error stands: {word}", ALL, cached,
            features, reports_a_loss(code), [("~" if keeps else "!") + word],
            "received_error_but_cached" if keeps else "received_error")
        for code, word in ((5, "NOT_FOUND"), (7, "PERMISSION_DENIED"), (13, "INTERNAL"), (14, "UNAVAILABLE"),
                           (2, "UNKNOWN"), (99, "99"))
        for features in ((), (FAIL,))
        for cached in (True, False)
        for keeps in (cached and not (features and code in {NOT_FOUND, DENIED}),)
    ),
    Row("A88 LDS or CDS resource deletion", "other types cannot be deleted by absence", (ROUTE, ENDPOINT), True,
        (FAIL,), sends_nothing, [], "acked", SOTW),
    # A46.
    Row("A46 Proposal", "ignore only the invalid resources", ALL, True, (),
        lambda driver, kind: driver.respond(kind, invalid("other"), valid("a", "v2")), ["v2"], "acked"),
]  # fmt: skip

CASES = [
    pytest.param(
        row,
        variant,
        id=f"{row.source}: {row.says} [{'+'.join(f.name for f in row.features) or 'plain'} {variant.value}]",
    )
    for row in ROWS
    for variant in row.variants
]


@pytest.mark.parametrize(("row", "variant"), CASES)
def test_client__what_the_sentence_says__happens_for_every_type(row: Row, variant: Variant) -> None:
    for kind in row.kinds:
        driver, watch = connected(kind, "a", *row.features, cached=row.cached, variant=variant, guard=row.guard)
        driver.heard[watch].clear()

        row.happens(driver, kind)

        assert driver.heard[watch] == row.heard, kind.short
        assert driver.label(kind, "a") == row.label, kind.short


@pytest.mark.parametrize(("row", "variant"), CASES)
def test_client__watch_that_starts_late__sees_what_the_first_one_sees(row: Row, variant: Variant) -> None:
    """A88, "New Watchers Started After Ambient Errors": the valid resource and the ambient error, in that order."""
    for kind in row.kinds:
        driver, watch = connected(kind, "a", *row.features, cached=row.cached, variant=variant, guard=row.guard)
        row.happens(driver, kind)

        late = driver.watch(kind, "a")

        if driver.label(kind, "a") == "requested" and not driver.heard[late]:
            # After an outage it is asked for anew: A88, REQUESTED holds neither resource nor error.
            continue
        assert driver.heard[late] == _standing(driver.heard[watch]), kind.short


def _standing(heard: Heard) -> Heard:
    """What still holds of what was heard: the last resource or the error in its place, then the last ambient error."""
    news = [entry for entry in heard if not entry.startswith("~")][-1:]
    after = heard[len(heard) - heard[::-1].index(news[0]) :] if news else []
    ambient = [entry for entry in after if entry.startswith("~")][-1:]
    return news + [entry for entry in ambient if entry != "~OK"]


def test_error__of_any_code__reaches_the_watcher_as_it_was_sent() -> None:
    driver, watch = connected(LISTENER, cached=False)

    driver.respond(LISTENER, errors=[error("a", 7, "PERMISSION_DENIED [XDS2103] This client may not read it.")])

    assert driver.statuses[watch] == [Status(7, "PERMISSION_DENIED [XDS2103] This client may not read it.")]


@pytest.mark.parametrize("variant", BOTH)
def test_dropped_resource__cache__does_not_hold_what_nobody_uses(variant: Variant) -> None:
    """A88, "Changes to XdsClient Watcher APIs": the XdsClient will remove the resource from its cache."""
    driver, _ = connected(ROUTE, "a", FAIL, cached=True, variant=variant)

    driver.respond(ROUTE, errors=[error("a", 5, "gone")])

    entry = driver.entry(ROUTE, "a")
    assert (entry.resource.name, entry.error) == ("ABSENT", Status(5, "gone"))  # type: ignore[union-attr]
