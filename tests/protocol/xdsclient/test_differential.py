"""The same server, two clients: ours and gRPC C-core 1.85, the one other client that implements A88.

Where they differ, the scenario says so, with the sentence that decides for ours. Nothing else may differ.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from tests.protocol.xdsclient.differential import CHAIN, Hand, Outcome, Play, Scenario, Seen, run_all
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType

# All scenarios run at once, in the fixture, and some wait for the 15 s timer: one process of the suite does it once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("differential")]

FAIL = "fail_on_data_errors"
TRANSIENT = "resource_timer_is_transient_error"
IGNORE = "ignore_resource_deletion"
FULL_STATE = (LISTENER, CLUSTER)
OTHERS = (ROUTE, ENDPOINT)
# The resource timer, and a moment for a busy machine.
TIMER_S = 17.0


def errors_at_once(kind: ResourceType, *codes: int) -> Play:
    async def play(hand: Hand) -> None:
        await hand.load_above(kind)
        for code in codes:
            await hand.error(kind, code, f"reason {code}")

    return play


def errors_when_cached(kind: ResourceType, *codes: int) -> Play:
    async def play(hand: Hand) -> None:
        await hand.load(kind)
        for code in codes:
            await hand.error(kind, code, f"reason {code}")

    return play


def refused_at_once(kind: ResourceType) -> Play:
    async def play(hand: Hand) -> None:
        await hand.load_above(kind)
        await hand.send(kind, hand.bad(kind))

    return play


def refused_when_cached(kind: ResourceType) -> Play:
    async def play(hand: Hand) -> None:
        await hand.load(kind)
        await hand.send(kind, hand.bad(kind))

    return play


def deleted(kind: ResourceType) -> Play:
    async def play(hand: Hand) -> None:
        await hand.load(kind)
        await hand.send(kind)

    return play


def comes_after(what: Play, kind: ResourceType, edition: int) -> Play:
    async def play(hand: Hand) -> None:
        await what(hand)
        await hand.send(kind, hand.resource(kind, edition))

    return play


def reconnects(what: Play, *, resend: ResourceType | None = None) -> Play:
    async def play(hand: Hand) -> None:
        await what(hand)
        await hand.reconnect()
        if resend is not None:
            await hand.send(resend, hand.resource(resend, 2))

    return play


def waits(what: Play) -> Play:
    async def play(hand: Hand) -> None:
        await what(hand)
        await asyncio.sleep(TIMER_S)

    return play


def loaded(kind: ResourceType) -> Play:
    return lambda hand: hand.load(kind)


def asked(kind: ResourceType) -> Play:
    return lambda hand: hand.load_above(kind)


async def error_and_resource_in_one(hand: Hand) -> None:
    await hand.load_above(ROUTE)
    await hand.send(ROUTE, hand.resource(ROUTE), errors=[(hand.names_of(ROUTE), 5, "both")])


async def malformed_errors_beside_a_sound_one(hand: Hand) -> None:
    await hand.load_above(ROUTE)
    name = hand.names_of(ROUTE)
    await hand.send(ROUTE, errors=[("", 5, "nameless"), (name, 0, "well"), (name, 7, "sound")])


async def error_of_somebody_else(hand: Hand) -> None:
    await hand.load(ROUTE)
    await hand.send(ROUTE, errors=[(hand.name("other"), 5, "not asked for")])


async def error_twice_in_one_response(hand: Hand) -> None:
    await hand.load_above(ENDPOINT)
    name = hand.names_of(ENDPOINT)
    await hand.send(ENDPOINT, errors=[(name, 5, "first"), (name, 7, "last")])


async def unreadable_and_nameless(hand: Hand) -> None:
    await hand.load(CLUSTER)
    await hand.send(CLUSTER, hand.nameless(CLUSTER), hand.resource(CLUSTER, 2))


async def full_state_without_the_one_in_error(hand: Hand) -> None:
    await hand.load(CLUSTER)
    await hand.error(CLUSTER, 14)
    await hand.send(CLUSTER)


async def error_repeated_in_every_full_state(hand: Hand) -> None:
    await hand.load(CLUSTER)
    for _ in range(3):
        await hand.error(CLUSTER, 14)


async def error_then_reconnect_and_error_again(hand: Hand) -> None:
    await hand.load_above(ROUTE)
    await hand.error(ROUTE, 7)
    await hand.reconnect()
    await hand.error(ROUTE, 7)


SCENARIOS = [
    Scenario("plain: everything is there", loaded(ENDPOINT)),
    *(
        Scenario(f"{kind.short}: {code} at once", errors_at_once(kind, code))
        for kind in CHAIN for code in (5, 7, 14, 13)
    ),
    *(
        Scenario(f"{kind.short}: {code} when cached{', ' + features[0] if features else ''}",
                 errors_when_cached(kind, code), features)
        for kind in CHAIN for code in (5, 7, 14, 8) for features in ((), (FAIL,))
    ),
    *(Scenario(f"{kind.short}: refused at once", refused_at_once(kind)) for kind in CHAIN),
    *(
        Scenario(f"{kind.short}: refused when cached{', ' + features[0] if features else ''}",
                 refused_when_cached(kind), features)
        for kind in CHAIN for features in ((), (FAIL,))
    ),
    *(
        Scenario(f"{kind.short}: deleted{', ' + features[0] if features else ''}", deleted(kind), features)
        for kind in FULL_STATE for features in ((), (FAIL,), (IGNORE,))
    ),
    *(Scenario(f"{kind.short}: not in the response", deleted(kind), (FAIL,)) for kind in OTHERS),
    *(
        Scenario(f"{kind.short}: error, then the resource", comes_after(errors_at_once(kind, 5), kind, 1))
        for kind in CHAIN
    ),
    *(
        Scenario(f"{kind.short}: error, then {what} edition", comes_after(errors_when_cached(kind, 7), kind, edition))
        for kind in CHAIN for what, edition in (("the same", 1), ("another", 2))
    ),
    *(
        Scenario(f"{kind.short}: refused, then a good one", comes_after(refused_when_cached(kind), kind, 2))
        for kind in CHAIN
    ),
    *(Scenario(f"{kind.short}: deleted, then back", comes_after(deleted(kind), kind, 2)) for kind in FULL_STATE),
    Scenario("one error replaces another", errors_at_once(ROUTE, 14, 5)),
    Scenario("one error replaces another when cached", errors_when_cached(ENDPOINT, 14, 7)),
    Scenario("error and resource in one response", error_and_resource_in_one),
    Scenario("malformed errors beside a sound one", malformed_errors_beside_a_sound_one),
    Scenario("error of a name nobody asked for", error_of_somebody_else),
    Scenario("error twice in one response", error_twice_in_one_response),
    Scenario("unreadable nameless resource beside a good one", unreadable_and_nameless),
    Scenario("error repeated in every full state", error_repeated_in_every_full_state),
    Scenario("full state without the one in error", full_state_without_the_one_in_error),
    Scenario("full state without the one in error, fail_on_data_errors", full_state_without_the_one_in_error, (FAIL,)),
    Scenario("reconnect: resources are kept", reconnects(loaded(ENDPOINT))),
    Scenario("reconnect: errors beside a resource are kept", reconnects(errors_when_cached(ROUTE, 7))),
    Scenario("reconnect: another edition", reconnects(loaded(ENDPOINT), resend=ENDPOINT)),
    Scenario("reconnect: the error is sent again", error_then_reconnect_and_error_again),
    Scenario("guard off: error at once", errors_at_once(ROUTE, 5), guard=False),
    Scenario("guard off: error when cached", errors_when_cached(ROUTE, 5), (FAIL,), guard=False),
    Scenario("guard off: deleted", deleted(CLUSTER), guard=False),
    Scenario("guard off: deleted and ignored", deleted(CLUSTER), (IGNORE,), guard=False),
    Scenario("guard off: refused when cached", refused_when_cached(CLUSTER), (FAIL,), guard=False),
    *(Scenario(f"{kind.short}: 15 s of silence", waits(asked(kind))) for kind in CHAIN),
    Scenario("15 s after an error", waits(errors_at_once(ROUTE, 7))),
    Scenario("15 s of silence, transient timer", waits(asked(ROUTE)), (TRANSIENT,)),
    Scenario("15 s after a reconnect, resource cached", waits(reconnects(loaded(ROUTE)))),
    Scenario("15 s after a reconnect, error not sent again", waits(reconnects(errors_at_once(ROUTE, 7)))),
]  # fmt: skip


@dataclass(frozen=True)
class Deviation:
    """Where ours is right and C-core is not: the sentence that decides, and what each of the two says of one type."""

    decides: str
    kind: ResourceType
    ours: str
    core: str


REMEMBERED = (
    "TP3, Protocol Behavior: The client is expected to remember the error message until either a new error message is "
    "returned or the resource is returned. This includes LDS and CDS"
)
DEVIATIONS: Mapping[str, Deviation] = {
    "full state without the one in error": Deviation(
        REMEMBERED, CLUSTER, "RECEIVED_ERROR+resource", "DOES_NOT_EXIST+resource"
    ),
    "full state without the one in error, fail_on_data_errors": Deviation(
        REMEMBERED, CLUSTER, "RECEIVED_ERROR+resource", "DOES_NOT_EXIST"
    ),
    "15 s after a reconnect, error not sent again": Deviation(REMEMBERED, ROUTE, "RECEIVED_ERROR", "DOES_NOT_EXIST"),
    "15 s of silence, transient timer": Deviation(
        "A88, Changes to Resource Timer Behavior: the timer will be set for 30 seconds instead of 15 seconds",
        ROUTE,
        "REQUESTED",
        "TIMEOUT",
    ),
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return asyncio.run(run_all(SCENARIOS))


@pytest.mark.parametrize("name", [each.name for each in SCENARIOS if each.name not in DEVIATIONS])
def test_states__of_both_clients__agree(name: str, outcomes: dict[str, Outcome]) -> None:
    """State, what is cached, its version, and the error's text, of each resource that both watch.

    Which resources a target needs at all is gRFC A74's subject: after a dropped listener or route C-core goes on to
    watch what was below it, and ours does not.
    """
    ours, core = outcomes[name].ours, outcomes[name].core

    both = ours.keys() & core.keys()
    assert LISTENER.short in both
    assert {kind: _comparable(ours[kind]) for kind in both} == {kind: _comparable(core[kind]) for kind in both}


@pytest.mark.parametrize("name", DEVIATIONS)
def test_states__where_we_deviate__are_as_listed(name: str, outcomes: dict[str, Outcome]) -> None:
    """A deviation that has gone (a new C-core) must leave the list."""
    deviation, outcome = DEVIATIONS[name], outcomes[name]

    seen = outcome.ours[deviation.kind.short].state, outcome.core[deviation.kind.short].state
    assert seen == (deviation.ours, deviation.core), deviation.decides


def test_deviations__name_scenarios_that_exist() -> None:
    assert DEVIATIONS.keys() <= {each.name for each in SCENARIOS}


def _comparable(seen: Seen) -> Seen:
    """Errors of the server are shown word by word; our own say the same as C-core's in the words before the colon."""
    own = seen.state.startswith(("NACKED", "DOES_NOT_EXIST"))
    return replace(seen, text=seen.text.partition(":")[0]) if own else seen
