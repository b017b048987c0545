"""Watches of globs (xRFC TP1) and wildcards: members come, change, are in error and go, in both variants."""

import pytest

from tests.unit.xdsclient.collection_driver import (
    BOTH,
    DENIED,
    DIRECTORY,
    FEATURES,
    GLOB,
    INTERNAL,
    NOT_FOUND,
    SOME_TYPES,
    X,
    Y,
    heard,
    opened,
)
from tests.unit.xdsclient.driver import FAIL, LOST, TRANSIENT, Driver, delta, error, invalid, names_asked, valid
from xdsclient.engine.events import ChannelFailed, Gone, Variant
from xdsclient.engine.values import CacheState, ResourceKey, ServerFeature, StatusCode
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType


def lets_go(driver: Driver, kind: ResourceType, name: str, *others: str) -> None:
    """The server says that a member is gone, as each variant and type says it."""
    if driver.variant is Variant.DELTA:
        driver.respond(kind, removed=[name])
    elif kind.full_state:
        driver.respond(kind, *map(valid, others))
    else:
        driver.respond(kind, errors=[error(name, NOT_FOUND)])


# Asking.


def test_glob__asked_for__by_its_own_name_alone() -> None:
    sotw = opened(ENDPOINT, GLOB, variant=Variant.SOTW)
    by_delta = opened(ENDPOINT, GLOB, variant=Variant.DELTA)

    sotw.respond(ENDPOINT, valid(X))
    by_delta.respond(ENDPOINT, valid(X))

    assert names_asked(sotw.last()) == (GLOB,)
    assert delta(by_delta.written[0]).subscribe == (GLOB,)
    assert delta(by_delta.last()).subscribe == ()


@pytest.mark.parametrize("kind", [CLUSTER, LISTENER])
def test_wildcard__asked_for__by_its_star(kind: ResourceType) -> None:
    sotw = opened(kind, "*", variant=Variant.SOTW)
    by_delta = opened(kind, "*", variant=Variant.DELTA)

    assert names_asked(sotw.last()) == ("*",)
    assert delta(by_delta.last()).subscribe == ("*",)


@BOTH
def test_collection__watched_twice__is_asked_for_once_and_left_with_the_last_watch(variant: Variant) -> None:
    driver = opened(ENDPOINT, GLOB, GLOB, "other", variant=variant)
    driver.respond(ENDPOINT, valid(X))

    driver.unwatch(1)
    before = len(driver.written)
    driver.unwatch(2)

    left = driver.written[before:]
    if variant is Variant.SOTW:
        assert [names_asked(each) for each in left] == [("other",)]
    else:
        assert [delta(each).unsubscribe for each in left] == [(GLOB,)]
    assert list(driver.engine.entries()) == [ResourceKey(ENDPOINT, "other")]


@BOTH
def test_member__watched_by_name_too__is_asked_for_and_left_by_name(variant: Variant) -> None:
    driver = opened(ENDPOINT, GLOB, variant=variant)
    driver.respond(ENDPOINT, valid(X))
    named = driver.watch(ENDPOINT, X)
    asked = driver.last()
    driver.unwatch(named)
    left = driver.last()

    if variant is Variant.SOTW:
        assert (set(names_asked(asked)), names_asked(left)) == ({X, GLOB}, (GLOB,))
    else:
        assert (delta(asked).subscribe, delta(left).unsubscribe) == ((X,), (X,))
    assert driver.label(ENDPOINT, X) == "acked"


@BOTH
def test_collection_left_before_the_stream_reopens__nothing_is_asked_for_in_its_place(variant: Variant) -> None:
    """A first request without names would ask for everything (protocol.md C2)."""
    driver = Driver(variant=variant)
    driver.watch(ROUTE, "keeps the stream")
    watch = driver.watch(CLUSTER, "*")
    driver.open()
    driver.respond(CLUSTER, valid("c"))
    driver.close()
    driver.unwatch(watch)

    driver.open()

    assert {request.kind for request in driver.written[-1:]} == {ROUTE}
    assert driver.engine.request() is None


# Members.


@BOTH
@SOME_TYPES
def test_members__come_and_change__are_told_by_their_own_names(variant: Variant, kind: ResourceType) -> None:
    driver = opened(kind, GLOB, variant=variant)

    driver.respond(kind, valid(X), valid(Y), valid("elsewhere"), valid(DIRECTORY + "deeper/z"))
    first = heard(driver)
    driver.respond(kind, valid(X, "v2"), valid(Y))
    driver.respond(kind, valid(X, "v2"), valid(Y))

    assert first == ["x v1", "y v1", "* answered"]
    assert heard(driver) == ["x v2"]
    assert [driver.label(kind, name) for name in (X, Y)] == ["acked", "acked"]


@BOTH
@SOME_TYPES
@FEATURES
def test_member__gone__is_told_once_whatever_the_features_are(
    variant: Variant, kind: ResourceType, features: tuple[ServerFeature, ...]
) -> None:
    driver = opened(kind, GLOB, variant=variant, features=features)
    driver.respond(kind, valid(X), valid(Y))
    heard(driver)

    lets_go(driver, kind, X, Y)
    lets_go(driver, kind, X, Y)
    gone = heard(driver)
    driver.respond(kind, valid(X), valid(Y))

    assert gone == ["-x NOT_FOUND"]
    assert heard(driver) == ["x v1"]


@BOTH
@SOME_TYPES
@FEATURES
@pytest.mark.parametrize("code", [NOT_FOUND, DENIED])
def test_member__data_error__makes_it_none_with_the_servers_words(
    variant: Variant, kind: ResourceType, features: tuple[ServerFeature, ...], code: StatusCode
) -> None:
    driver = opened(kind, GLOB, variant=variant, features=features)
    driver.respond(kind, valid(X), valid(Y))
    heard(driver)

    removed = [X] if variant is Variant.DELTA else []
    driver.respond(kind, valid(Y), errors=[error(X, code, "why")], removed=removed)

    assert heard(driver) == [f"-x {code.name}"]
    assert [effect.reason.message for effect in driver.effects if isinstance(effect, Gone)] == ["why"]
    assert ResourceKey(kind, X) not in driver.engine.entries()


@BOTH
@SOME_TYPES
@FEATURES
@pytest.mark.parametrize("code", [INTERNAL, StatusCode.UNAVAILABLE, StatusCode.UNKNOWN, 99])
@pytest.mark.parametrize("removed", [False, True])
def test_member__transient_error__stays_in_use(
    variant: Variant, kind: ResourceType, features: tuple[ServerFeature, ...], code: int, removed: bool
) -> None:
    driver = opened(kind, GLOB, variant=variant, features=features)
    driver.respond(kind, valid(X))
    heard(driver)

    driver.respond(kind, errors=[error(X, code)], removed=[X] if removed and variant is Variant.DELTA else [])
    told = heard(driver)
    driver.respond(kind, valid(X))

    word = StatusCode(code).name if code in set(StatusCode) else str(code)
    assert told == [f"x ~{word}"]
    assert heard(driver) == ["x ~OK"]


@BOTH
@SOME_TYPES
def test_member__in_error_from_the_start__is_told_so_and_ends_when_it_is_gone(
    variant: Variant, kind: ResourceType
) -> None:
    driver = opened(kind, GLOB, variant=variant)

    driver.respond(kind, errors=[error(X, INTERNAL)])
    withheld, label = heard(driver), driver.label(kind, X)
    driver.respond(kind, errors=[error(X, NOT_FOUND)])

    assert (withheld, label) == (["x !INTERNAL", "* answered"], "received_error")
    assert heard(driver) == ["-x NOT_FOUND"]


@BOTH
def test_member__never_told_of__its_data_error_says_nothing(variant: Variant) -> None:
    driver = opened(ENDPOINT, GLOB, variant=variant)

    driver.respond(ENDPOINT, errors=[error(X, NOT_FOUND), error(Y, DENIED)])

    assert heard(driver) == []


@BOTH
@SOME_TYPES
@pytest.mark.parametrize(("features", "told"), [((), "x ~INVALID_ARGUMENT"), ((FAIL,), "x !INVALID_ARGUMENT")])
def test_member__refused__is_treated_as_any_resource(
    variant: Variant, kind: ResourceType, features: tuple[ServerFeature, ...], told: str
) -> None:
    driver = opened(kind, GLOB, variant=variant, features=features)
    driver.respond(kind, valid(X))
    heard(driver)

    (answer,) = driver.respond(kind, invalid(X), invalid(Y))

    assert heard(driver) == [told, "y !INVALID_ARGUMENT"]
    assert answer.nack is not None
    assert X in answer.nack.message


@BOTH
def test_outage__is_ambient_for_members_and_the_whole_and_ends(variant: Variant) -> None:
    driver = opened(ENDPOINT, GLOB, variant=variant)
    driver.respond(ENDPOINT, valid(X))
    heard(driver)

    driver.do(ChannelFailed(LOST))
    lost = heard(driver)
    driver.respond(ENDPOINT)

    assert sorted(lost) == ["* ~UNAVAILABLE", "x ~UNAVAILABLE"]
    assert sorted(heard(driver)) == ["* ~OK", "x ~OK"]


@BOTH
def test_watch_that_starts_late__sees_what_the_first_one_sees(variant: Variant) -> None:
    driver = opened(ENDPOINT, GLOB, variant=variant)
    driver.respond(ENDPOINT, valid(X), errors=[error(Y, INTERNAL)])
    driver.respond(ENDPOINT, errors=[error(X, INTERNAL)])

    late = driver.watch(ENDPOINT, GLOB)

    assert heard(driver, late) == ["x v1", "x ~INTERNAL", "y !INTERNAL", "* answered"]


# One name in several ways.


@BOTH
@SOME_TYPES
@pytest.mark.parametrize(("features", "named"), [((), "~NOT_FOUND"), ((FAIL,), "!NOT_FOUND")])
def test_name__watched_by_itself_and_as_a_member__follows_a88_by_name_and_leaves_the_collection(
    variant: Variant, kind: ResourceType, features: tuple[ServerFeature, ...], named: str
) -> None:
    driver = opened(kind, GLOB, X, variant=variant, features=features)
    driver.respond(kind, valid(X))
    heard(driver, 1)

    driver.respond(kind, errors=[error(X, NOT_FOUND)])

    assert heard(driver, 1) == ["-x NOT_FOUND"]
    assert driver.heard[2] == ["v1", named]


@BOTH
def test_collection__watched_when_a_member_is_known_by_name__has_it_at_once(variant: Variant) -> None:
    driver = opened(CLUSTER, "c", variant=variant)
    driver.respond(CLUSTER, valid("c"))

    watch = driver.watch(CLUSTER, "*")
    driver.respond(CLUSTER, *([] if variant is Variant.DELTA else [valid("c")]))

    assert heard(driver, watch) == ["c v1", "* answered"]


@BOTH
def test_denied_name__of_its_own__is_no_member(variant: Variant) -> None:
    driver = opened(ENDPOINT, GLOB, X, variant=variant)

    driver.respond(ENDPOINT, valid(Y), errors=[error(X, DENIED)])

    assert heard(driver, 1) == ["y v1", "* answered"]
    assert driver.heard[2] == ["!PERMISSION_DENIED"]


@BOTH
def test_wildcard__name_in_error_that_is_asked_for_by_itself__is_no_member_of_it(variant: Variant) -> None:
    """TP3 has no errors under a wildcard: the error is of the name, and the wildcard has lost it."""
    driver = opened(CLUSTER, "*", "c", variant=variant)
    driver.respond(CLUSTER, valid("c"))
    heard(driver)

    driver.respond(CLUSTER, errors=[error("c", INTERNAL)], removed=["c"] if variant is Variant.DELTA else [])

    assert heard(driver, 1) == ["-c NOT_FOUND"]
    assert driver.heard[2] == ["v1", "~INTERNAL"]


# The collection as a whole.


@BOTH
@pytest.mark.parametrize(
    ("features", "seconds", "told", "label"),
    [((), 15, "* !NOT_FOUND", "does_not_exist"), ((TRANSIENT,), 30, "* !UNAVAILABLE", "timeout")],
)
def test_collection__nobody_answers__times_out_and_recovers(
    variant: Variant, features: tuple[ServerFeature, ...], seconds: int, told: str, label: str
) -> None:
    driver = opened(ENDPOINT, GLOB, variant=variant, features=features)

    driver.wait(seconds - 0.01)
    early, requested = heard(driver), driver.label(ENDPOINT, GLOB)
    driver.wait(0.01)
    late, timed_out = heard(driver), driver.label(ENDPOINT, GLOB)
    driver.respond(ENDPOINT, valid(X))

    assert (early, requested, late, timed_out) == ([], "requested", [told], label)
    assert heard(driver) == ["x v1", "* answered"]
    assert list(driver.engine.entries()) == [ResourceKey(ENDPOINT, X)]


@BOTH
def test_wildcard__nothing_there__is_answered_by_an_empty_response(variant: Variant) -> None:
    driver = opened(CLUSTER, "*", variant=variant)

    driver.respond(CLUSTER)
    driver.wait(60)

    assert heard(driver) == ["* answered"]


def test_glob__removed_by_its_own_name__is_empty_and_no_error() -> None:
    """xRFC TP1, protocol.md F19."""
    driver = opened(ENDPOINT, GLOB, variant=Variant.DELTA)
    driver.respond(ENDPOINT, valid(X))
    heard(driver)

    driver.respond(ENDPOINT, removed=[GLOB, X])

    assert heard(driver) == ["-x NOT_FOUND"]
    assert driver.engine.entries() == {}


@BOTH
@SOME_TYPES
@pytest.mark.parametrize("code", [NOT_FOUND, DENIED])
def test_collection__refused__ends_its_members_only_for_who_fails_on_data_errors(
    variant: Variant, kind: ResourceType, code: StatusCode
) -> None:
    def refuses(driver: Driver) -> None:
        driver.respond(kind, errors=[error(GLOB, code)], removed=[GLOB, X] if variant is Variant.DELTA else [])

    strict = opened(kind, GLOB, variant=variant, features=(FAIL,))
    lenient = opened(kind, GLOB, variant=variant)
    for driver in (strict, lenient):
        driver.respond(kind, valid(X))
        heard(driver)
        refuses(driver)

    assert heard(strict) == [f"-x {code.name}", f"* !{code.name}"]
    assert heard(lenient) == [f"* ~{code.name}"]
    assert lenient.label(kind, X) == "acked"
    assert strict.entry(kind, GLOB).state is lenient.entry(kind, GLOB).state is CacheState.RECEIVED_ERROR


@BOTH
@pytest.mark.parametrize("code", [INTERNAL, StatusCode.UNAVAILABLE])
def test_collection__transient_error__leaves_its_members_alone(variant: Variant, code: StatusCode) -> None:
    driver = opened(ENDPOINT, GLOB, variant=variant, features=(FAIL,))
    driver.respond(ENDPOINT, valid(X))
    heard(driver)

    driver.respond(ENDPOINT, errors=[error(GLOB, code)])
    told = heard(driver)
    driver.respond(ENDPOINT, valid(X))

    assert told == [f"* ~{code.name}"]
    assert heard(driver) == ["* ~OK"]


@BOTH
def test_collection__refused_and_back__what_it_does_not_mention_any_more_is_gone(variant: Variant) -> None:
    driver = opened(ENDPOINT, GLOB, variant=variant)
    driver.respond(ENDPOINT, valid(X), valid(Y))
    driver.respond(ENDPOINT, errors=[error(GLOB, DENIED)], removed=[X, Y] if variant is Variant.DELTA else [])
    heard(driver)

    driver.respond(ENDPOINT, valid(X))
    back = heard(driver)
    driver.wait(15)

    assert back == ["* ~OK"]
    assert heard(driver) == ["-y NOT_FOUND"]
