"""What a client holds for a limited time is renewed while its stream lives, and nothing else is (G1 to G5)."""

import pytest

from adsserver.engine.events import Acknowledged, Rejected, Respond, Variant, Violated
from adsserver.engine.renewals import interval_s
from adsserver.engine.settings import EngineSettings
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, names_of, versions_of
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT

V1, V2 = "v1-ttl30000", "v2-ttl30000"
# A ttl of 30 s is renewed every 8 s.
TICK_S = 8.0


def told(responses: list[Respond]) -> list[tuple[dict[str, str], bool]]:
    return [(versions_of(response), response.heartbeat) for response in responses]


def world_of(**served: str) -> World:
    world = World()
    for name, version in served.items():
        world.serve(CLUSTER, name, version)
    return world


def at_rest(world: World, variant: Variant = Variant.DELTA) -> Wire:
    """A client that asked for all clusters, and acknowledged them."""
    wire = Wire(world, variant)
    wire.now = 0.0
    ask = wire.delta if variant is Variant.DELTA else wire.sotw
    (first,) = ask(CLUSTER)
    assert ask(CLUSTER, nonce=first.nonce) == []
    return wire


@pytest.mark.parametrize(("ttl_ms", "interval"), [(1, 1), (3_000, 1), (15_000, 4), (30_000, 8), (604_800_000, 131_072)])
def test_interval__of_a_ttl__is_a_power_of_two_between_a_sixth_and_a_third(ttl_ms: int, interval: int) -> None:
    assert interval_s(ttl_ms) == interval


def test_heartbeat__nothing_else_to_say__is_of_what_has_a_ttl_alone_and_proves_nothing() -> None:
    wire = at_rest(world_of(a=V1, b="v1", c=V1))

    wire.now = wire.session.wake_at()
    (beat,) = wire.written()

    assert wire.now == TICK_S
    assert (versions_of(beat), beat.heartbeat) == ({"a": V1, "c": V1}, True)
    assert wire.delta(CLUSTER, nonce=beat.nonce) == []
    assert wire.facts == ()
    assert wire.session.wake_at() == 2 * TICK_S


def test_heartbeat__several_ttls__go_in_one_response_where_they_are_due_together() -> None:
    wire = at_rest(world_of(a="v1-ttl15000", b=V1))
    sent = []

    for now in (4.0, 8.0):
        wire.now = now
        (beat,) = wire.written()
        sent.append(names_of(beat))

    assert sent == [["a"], ["a", "b"]]


def test_heartbeat__stream_without_ttls__has_no_timer() -> None:
    wire = at_rest(world_of(a="v1"))

    assert wire.session.wake_at() == float("inf")


def test_heartbeat__two_streams_at_rest__share_their_resources() -> None:
    world = world_of(a=V1, b=V1)
    one, other = at_rest(world), at_rest(world)
    one.now = other.now = TICK_S

    (beat,), (same,) = one.written(), other.written()

    assert beat.resources is same.resources


def test_heartbeat__more_names_than_a_step_has__are_split() -> None:
    world = world_of(a=V1, b=V1, c=V1)
    wire = Wire(world, Variant.DELTA, EngineSettings(limits=Limits(names_per_step=2)))
    wire.now = 0.0
    for response in wire.delta(CLUSTER):
        wire.delta(CLUSTER, nonce=response.nonce)
    wire.now = TICK_S

    assert [names_of(beat) for beat in wire.written()] == [["a", "b"], ["c"]]


def test_heartbeat__content_is_on_its_way__waits_for_its_answer() -> None:
    wire = Wire(world_of(a=V1, b="v1"), Variant.DELTA)
    wire.now = 0.0
    (first,) = wire.delta(CLUSTER)

    wire.now = TICK_S
    before = wire.written()
    wire.delta(CLUSTER, nonce=first.nonce)
    wire.now = 2 * TICK_S

    assert before == []
    assert told(wire.written()) == [({"a": V1}, True)]


def test_heartbeat__answer_came_after_the_ttl__is_content_for_the_client_may_have_dropped_it() -> None:
    wire = Wire(world_of(a=V1), Variant.DELTA)
    wire.now = 0.0
    (first,) = wire.delta(CLUSTER)
    for tick in (1, 2, 3, 4):
        wire.now = tick * TICK_S
        assert wire.written() == []
    wire.delta(CLUSTER, nonce=first.nonce)

    wire.now = 5 * TICK_S

    assert told(wire.written()) == [({"a": V1}, False)]


def test_heartbeat__stream_that_could_not_be_written_for_a_ttl__is_content() -> None:
    wire = at_rest(world_of(a=V1))

    wire.now = 31.0
    sent = wire.written()

    assert told(sent) == [({"a": V1}, False)]
    assert wire.delta(CLUSTER, nonce=sent[0].nonce) == []
    wire.now += TICK_S
    assert told(wire.written()) == [({"a": V1}, True)]


def test_heartbeat__removed_or_changed_name__is_not_renewed_before_it_is_told() -> None:
    world = world_of(a=V1, b=V1)
    wire = at_rest(world)
    world.serve(CLUSTER, "c", "v1")
    (unanswered,) = wire.publish()
    world.remove(CLUSTER, "a")
    world.serve(CLUSTER, "b", V2)
    held_back = wire.publish()

    wire.now = TICK_S

    assert (versions_of(unanswered), held_back) == ({"c": "v1"}, [])
    assert wire.written() == []


def test_heartbeat__refused_content__goes_back_to_what_was_acknowledged_and_renews_that() -> None:
    world = world_of(a=V1)
    wire = at_rest(world)
    world.serve(CLUSTER, "a", V2)
    (pushed,) = wire.publish()

    (healed,) = wire.delta(CLUSTER, nonce=pushed.nonce, nack="no")
    (fact,) = [fact for fact in wire.facts if isinstance(fact, Rejected)]
    wire.now = TICK_S
    before = wire.written()
    wire.delta(CLUSTER, nonce=healed.nonce)
    wire.now = 2 * TICK_S

    assert versions_of(healed) == {"a": V1}  # Envoy keeps it, and would let it run out
    assert fact.healing
    assert before == []
    assert told(wire.written()) == [({"a": V1}, True)]


def test_heartbeat__refused_at_first_sight__is_none() -> None:
    wire = Wire(world_of(a=V1, b=V1), Variant.DELTA)
    wire.now = 0.0
    (first,) = wire.delta(CLUSTER)
    text = "xDS response validation errors: [resource index 0: a: INVALID_ARGUMENT: bad]"
    for response in wire.delta(CLUSTER, nonce=first.nonce, nack=text):
        wire.delta(CLUSTER, nonce=response.nonce)

    wire.now = TICK_S

    assert told(wire.written()) == [({"b": V1}, True)]


def test_heartbeat__nobody_knows_since_a_refusal_whether_it_is_held__is_none() -> None:
    world = world_of(a="v1", b="v1")
    wire = Wire(world, Variant.DELTA, EngineSettings(limits=Limits(isolation_resends=0)))
    wire.now = 0.0
    wire.delta(CLUSTER, nonce=wire.delta(CLUSTER)[0].nonce)
    for name in ("a", "b"):
        world.serve(CLUSTER, name, V2)
    (pushed,) = wire.publish()

    text = "xDS response validation errors: [resource index 0: a: INVALID_ARGUMENT: bad]"
    wire.delta(CLUSTER, nonce=pushed.nonce, nack=text)
    wire.now = TICK_S

    assert wire.written() == []


def test_heartbeat__refused__is_a_violation_and_content_from_then_on() -> None:
    wire = at_rest(world_of(a=V1))
    wire.now = TICK_S
    (beat,) = wire.written()

    sent = wire.delta(CLUSTER, nonce=beat.nonce, nack="a resource without content")
    (fact,) = wire.facts
    wire.delta(CLUSTER, nonce=sent[0].nonce)
    wire.now = 2 * TICK_S
    again = wire.written()

    assert isinstance(fact, Violated)
    assert fact.rule == "G2"
    assert told(sent) == told(again) == [({"a": V1}, False)]


@pytest.mark.parametrize("names", [(), ("a", "b")], ids=["wildcard", "by name"])
def test_reconnect__what_the_client_holds_is_current__is_renewed_at_once(names: tuple[str, ...]) -> None:
    wire = Wire(world_of(a=V1, b="v1"), Variant.DELTA)
    wire.now = 50.0

    sent = wire.delta(CLUSTER, *names, has={"a": V1, "b": "v1"})

    assert told(sent)[-1] == ({"a": V1}, True)
    assert sum(response.heartbeat for response in sent) == 1


def test_reconnect__what_the_client_holds_is_older__is_sent_and_renewed_after_its_answer() -> None:
    wire = Wire(world_of(a=V2, b=V1), Variant.DELTA)
    wire.now = 0.0

    sent = wire.delta(CLUSTER, has={"a": V1, "b": V1})
    wire.delta(CLUSTER, nonce=sent[0].nonce)
    wire.now = TICK_S

    assert told(sent) == [({"a": V2}, False), ({"b": V1}, True)]
    assert told(wire.written()) == [({"a": V2, "b": V1}, True)]


def test_ttl__changes_alone__is_another_version_and_sent_with_its_content() -> None:
    world = world_of(a=V1)
    wire = at_rest(world)
    world.serve(CLUSTER, "a", "v1")

    sent = wire.publish()
    wire.delta(CLUSTER, nonce=sent[0].nonce)

    assert told(sent) == [({"a": "v1"}, False)]
    assert wire.session.wake_at() == float("inf")


def test_full_state__client_that_reads_ttls__is_sent_all_of_it_again_once_it_is_acknowledged() -> None:
    wire = at_rest(world_of(a=V1, b="v1"), Variant.SOTW)

    wire.now = TICK_S
    (again,) = wire.written()
    early = wire.session.wake_at()
    wire.sotw(CLUSTER, nonce=again.nonce)

    assert (versions_of(again), again.heartbeat) == ({"a": V1, "b": "v1"}, False)
    assert early == 2 * TICK_S
    assert [type(fact) for fact in wire.facts] == [Acknowledged]
    wire.now = 2 * TICK_S
    assert [versions_of(response) for response in wire.written()] == [{"a": V1, "b": "v1"}]


def test_full_state__not_answered_yet__is_not_sent_again() -> None:
    wire = Wire(world_of(a=V1), Variant.SOTW)
    wire.now = 0.0
    wire.sotw(CLUSTER)

    wire.now = TICK_S

    assert wire.written() == []


def test_full_state__renewal_is_refused__is_sent_in_its_time_again() -> None:
    wire = at_rest(world_of(a=V1), Variant.SOTW)
    wire.now = TICK_S
    (again,) = wire.written()

    assert wire.sotw(CLUSTER, nonce=again.nonce, nack="no") == []
    wire.now = 2 * TICK_S

    assert [versions_of(response) for response in wire.written()] == [{"a": V1}]


def test_sotw__type_that_comes_in_parts__is_never_renewed() -> None:
    world = World()
    world.serve(ENDPOINT, "a", V1)
    wire = Wire(world, Variant.SOTW)

    wire.sotw(ENDPOINT, "a")

    assert wire.session.wake_at() == float("inf")
