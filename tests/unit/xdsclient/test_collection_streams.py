"""Watches of globs over a stream that is lost, and what a server may say that does not fit."""

from collections.abc import Callable

import pytest

from tests.unit.xdsclient.collection_driver import BOTH, DIRECTORY, GLOB, INTERNAL, X, Y, heard, opened
from tests.unit.xdsclient.driver import LOST, Driver, delta, error, invalid, valid
from xdsclient.engine.events import ChannelFailed, Variant
from xdscore.resource_types import ENDPOINT

# A new stream.


def test_sotw_parts__member_not_sent_again_on_a_new_stream__is_gone_after_the_timer() -> None:
    driver = opened(ENDPOINT, GLOB, variant=Variant.SOTW)
    driver.respond(ENDPOINT, valid(X), valid(Y))
    heard(driver)
    driver.close()
    driver.open()

    driver.wait(60)  # a server that says nothing at all may have no news
    silent = heard(driver)
    driver.respond(ENDPOINT, valid(X))
    driver.wait(14.99)
    early = heard(driver)
    driver.wait(0.01)

    assert (silent, early) == ([], [])
    assert heard(driver) == ["-y NOT_FOUND"]


def test_sotw_parts__member_sent_again_on_a_new_stream__stays() -> None:
    driver = opened(ENDPOINT, GLOB, variant=Variant.SOTW)
    driver.respond(ENDPOINT, valid(X), valid(Y))
    driver.close()
    driver.open()
    heard(driver)

    driver.respond(ENDPOINT, valid(X))
    driver.respond(ENDPOINT, valid(Y))
    driver.wait(60)

    assert heard(driver) == []


def test_delta__new_stream__lists_members_and_those_in_error_under_no_version() -> None:
    """F11a, E5: neither an error nor a member may outlive its end because the server stays silent."""
    driver = opened(ENDPOINT, GLOB, variant=Variant.DELTA)
    driver.respond(ENDPOINT, valid(X, "v7"), valid(Y), errors=[error(DIRECTORY + "z", INTERNAL)])
    driver.respond(ENDPOINT, errors=[error(Y, INTERNAL)])
    driver.close()

    driver.open()

    assert delta(driver.last()).initial_versions == {X: "v7", Y: "", DIRECTORY + "z": ""}


def test_delta__new_stream_with_nothing_new__one_member_is_left_for_the_server_to_send() -> None:
    """A57: a server without news must have something to answer, or its silence would look like a failure."""
    driver = opened(ENDPOINT, GLOB, variant=Variant.DELTA)
    driver.respond(ENDPOINT, valid(X), valid(Y))
    driver.close()

    driver.open()

    assert delta(driver.last()).initial_versions == {Y: "v1"}


def test_delta__new_stream_with_a_collection_not_answered_yet__its_members_are_left_for_the_server_to_send() -> None:
    driver = opened(ENDPOINT, X, "other", variant=Variant.DELTA)
    driver.respond(ENDPOINT, valid(X), valid("other"))
    driver.close()
    driver.watch(ENDPOINT, GLOB)

    driver.open()

    assert delta(driver.last()).initial_versions == {"other": "v1"}


# What does not fit.


@BOTH
@pytest.mark.parametrize(
    "happens",
    [
        lambda driver: driver.respond(ENDPOINT, valid(GLOB)),
        lambda driver: driver.respond(ENDPOINT, invalid("")),
        lambda driver: driver.respond(ENDPOINT, removed=[X]),
        lambda driver: driver.respond(ENDPOINT, errors=[error("elsewhere", INTERNAL)]),
        lambda driver: driver.do(ChannelFailed(LOST)) and driver.close(),
    ],
    ids=["its own name", "no name", "removed unknown", "error elsewhere", "outage"],
)
def test_collection__what_does_not_concern_its_members__tells_of_none(
    variant: Variant, happens: Callable[[Driver], object]
) -> None:
    driver = opened(ENDPOINT, GLOB, variant=variant)

    happens(driver)

    assert [each for each in heard(driver) if not each.startswith("*")] == []
