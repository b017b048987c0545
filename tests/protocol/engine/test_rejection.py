"""What happens after a NACK: nothing rejected comes back, and nothing else suffers (B7, B12, F17; N2, N3, N5)."""

import pytest

from adsserver.engine.events import Rejected, Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, errors_of, names_of, versions_of
from xdscore.evidence import Evidence
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE, SECRET, ResourceType


def core(names: list[str], *bad: str) -> str:
    rows = [f"resource index {names.index(name)}: {name}: INVALID_ARGUMENT: bad" for name in bad]
    return f"xDS response validation errors: [{'; '.join(rows)}]"


def suspects(wire: Wire) -> list[str]:
    (fact,) = [fact for fact in wire.facts if isinstance(fact, Rejected)]
    return [member.name for member in fact.suspects]


def evidence(wire: Wire) -> Evidence:
    (fact,) = [fact for fact in wire.facts if isinstance(fact, Rejected)]
    return fact.evidence


@pytest.fixture
def world() -> World:
    world = World()
    for name in "abcd":
        world.serve(CLUSTER, name, f"{name}1")
        world.serve(ROUTE, name, f"{name}1")
    return world


def test_full_state__one_changed_cluster_is_rejected__nothing_is_sent(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")
    wire.publish()

    assert wire.sotw(CLUSTER, nonce="2", nack="bad") == []  # B7
    assert suspects(wire) == ["a"]  # N2: of four resources only one changed


def test_full_state__neighbour_changes_after_a_rejection__goes_out_with_the_acknowledged_content(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")
    wire.publish()
    wire.sotw(CLUSTER, nonce="2", nack="bad")
    world.serve(CLUSTER, "b", "b2")

    (response,) = wire.publish()

    assert versions_of(response) == {"a": "a1", "b": "b2", "c": "c1", "d": "d1"}  # D13, N5


def test_full_state__fix_after_a_rejection__is_sent_at_once(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1", nack=core(["a", "b", "c", "d"], "a"))
    wire.sotw(CLUSTER, nonce="2")
    world.serve(CLUSTER, "a", "a2")

    assert [versions_of(r)["a"] for r in wire.publish()] == ["a2"]  # F17


@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
@pytest.mark.parametrize("variant", Variant)
def test_rejected__content_before_it_comes_back__is_sent_once(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    wire = Wire(world, variant)
    names = ("a", "b") if variant is Variant.SOTW else ()
    answer = wire.sotw if variant is Variant.SOTW else wire.delta
    answer(kind, "a", "b")
    answer(kind, *names, nonce="1")
    world.serve(kind, "a", "a2")
    wire.publish()
    answer(kind, *names, nonce="2", nack="bad")
    world.serve(kind, "a", "a1")

    (response,) = wire.publish()

    # gRPC with fail_on_data_errors (A88) has dropped what it acknowledged before: it cannot do without.
    assert versions_of(response)["a"] == "a1"
    assert answer(kind, *names, nonce="3") == []


def test_full_state__rejected_at_start_with_others__the_others_arrive_without_it(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    (first,) = wire.sotw(CLUSTER)

    (second,) = wire.sotw(CLUSTER, nonce="1", nack=core(names_of(first), "c"))

    assert suspects(wire) == ["c"]
    assert names_of(second) == ["a", "b", "d"]  # after a decode failure Envoy applied nothing (law 1)
    assert wire.sotw(CLUSTER, nonce="2") == []


def test_full_state__rejected_at_start_where_others_proved_one__the_proven_content_stands_in(world: World) -> None:
    world.serve(CLUSTER, "c", "c2", proven="c1")
    wire = Wire(world, Variant.SOTW)
    (first,) = wire.sotw(CLUSTER)

    (second,) = wire.sotw(CLUSTER, nonce="1", nack=core(names_of(first), "c"))

    assert versions_of(second) == {"a": "a1", "b": "b1", "c": "c1", "d": "d1"}  # D13


def test_full_state__new_stream_after_a_rejection__is_given_the_current_state(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1", nack="bad")

    (response,) = Wire(world, Variant.SOTW).sotw(CLUSTER)

    assert names_of(response) == ["a", "b", "c", "d"]  # decisions C9


def test_parts__repeated_ask_and_changed_cluster__do_not_bring_rejected_endpoints_back(world: World) -> None:
    world.serve(ENDPOINT, "a", "e1")
    wire = Wire(world, Variant.DELTA)
    wire.delta(CLUSTER)
    wire.delta(CLUSTER, nonce="1")
    wire.delta(ENDPOINT, "a")
    wire.delta(ENDPOINT, nonce="2", nack="malformed IP address")
    world.serve(CLUSTER, "a", "a2")

    assert [r.kind for r in wire.publish()] == [CLUSTER]  # N3
    wire.delta(CLUSTER, nonce="3")
    assert wire.session.offer(world.publish(), wire.now) is False  # nothing is left to look at


def test_parts__asked_for_again_after_a_rejection__is_answered_with_what_others_use(world: World) -> None:
    world.serve(ROUTE, "a", "a2", proven="a1")
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, "a")
    (stand_in,) = wire.delta(ROUTE, nonce="1", nack="bad")
    wire.delta(ROUTE, nonce="2")

    (again,) = wire.delta(ROUTE, "a")

    assert versions_of(stand_in) == versions_of(again) == {"a": "a1"}  # F17, C6


@pytest.mark.parametrize(
    ("variant", "kind"),
    [(Variant.SOTW, ROUTE), (Variant.SOTW, CLUSTER), (Variant.DELTA, ROUTE), (Variant.DELTA, CLUSTER)],
)
@pytest.mark.parametrize("bad", ["a", "c", "d"])
def test_isolation__text_names_nobody__the_bad_one_is_proven_and_the_good_are_in_use(
    world: World, variant: Variant, kind: ResourceType, bad: str
) -> None:
    wire = Wire(world, variant)
    send = wire.delta if variant is Variant.DELTA else wire.sotw
    held: dict[str, str] = {}
    proven: list[str] = []
    pending = send(kind, *"abcd")
    sent = 0

    while pending:
        response = pending.pop(0)
        sent += 1
        names = () if variant is Variant.DELTA else tuple("abcd")
        if bad in names_of(response):
            pending += send(kind, *names, nonce=response.nonce, nack="missing ): (")
            proven = suspects(wire)
        else:
            held.update(versions_of(response))
            pending += send(kind, *names, nonce=response.nonce)

    assert proven == [bad]  # decisions C8
    assert held == {name: f"{name}1" for name in "abcd" if name != bad}
    assert sent <= 1 + 16


@pytest.mark.parametrize(("variant", "kind"), [(Variant.DELTA, ROUTE), (Variant.SOTW, CLUSTER)])
def test_isolation__client_that_rejects_everything__comes_to_rest(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    for number in range(40):
        world.serve(kind, f"r{number}", "x")
    names = [f"r{number}" for number in range(40)]
    wire = Wire(world, variant)
    send = wire.delta if variant is Variant.DELTA else wire.sotw
    listed = () if variant is Variant.DELTA else names
    pending = send(kind, *names)
    count = 0

    while pending:
        count += 1
        pending += send(kind, *listed, nonce=pending.pop(0).nonce, nack="no")

    assert count == 1 + 16  # N3


def test_full_state__new_stream_and_a_text_that_names_nobody__what_others_use_does_not_vanish() -> None:
    world = World()
    for name in "abcd":
        world.serve(CLUSTER, name, f"{name}1", proven=f"{name}1")
    world.serve(CLUSTER, "b", "b2", proven="b1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)

    (second,) = wire.sotw(CLUSTER, nonce="1", nack="Invalid duration")

    assert suspects(wire) == ["b"]  # of four only one was never acknowledged by anybody
    assert versions_of(second) == {"a": "a1", "b": "b1", "c": "c1", "d": "d1"}  # law 1, D13


def test_full_state__what_others_use_is_what_the_client_cannot__the_new_one_is_not_blamed_for_it() -> None:
    world = World()
    world.serve(CLUSTER, "new", "n1")
    world.serve(CLUSTER, "old", "o1", proven="o1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)

    (second,) = wire.sotw(CLUSTER, nonce="1", nack="Invalid duration")
    (third,) = wire.sotw(CLUSTER, nonce="2", nack="Invalid duration")

    assert names_of(second) == ["old"]
    assert suspects(wire) == ["old"]
    assert names_of(third) == ["new"]
    assert wire.sotw(CLUSTER, nonce="3") == []


def test_isolation__text_names_the_culprit__the_rest_is_sent_once_more(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    (first,) = wire.delta(ROUTE, *"abcd")

    (second,) = wire.delta(ROUTE, nonce="1", nack=core(names_of(first), "b"))

    assert suspects(wire) == ["b"]
    assert names_of(second) == ["a", "c", "d"]
    assert wire.delta(ROUTE, nonce="2") == []


def test_suspects__content_acknowledged_before_is_sent_again_and_rejected__is_not_blamed(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, "a")
    wire.delta(ROUTE, "a", "b", nonce="1")

    wire.delta(ROUTE, nonce="2", nack="no")

    assert suspects(wire) == ["b"]  # N2


@pytest.mark.parametrize("variant", Variant)
def test_isolation__clients_that_compare_with_what_they_refused__are_sent_what_they_used_in_between(
    world: World, variant: Variant
) -> None:
    for name in "ab":
        world.serve(SECRET, name, f"{name}1")
    wire = Wire(world, variant)
    send = wire.delta if variant is Variant.DELTA else wire.sotw
    listed = () if variant is Variant.DELTA else ("a", "b")
    (first,) = send(SECRET, "a", "b")
    send(SECRET, *listed, nonce=first.nonce)
    for name in "ab":
        world.serve(SECRET, name, f"{name}2")
    (second,) = wire.publish()

    (reverted,) = send(SECRET, *listed, nonce=second.nonce, nack="Failed to load trusted CA certificates")
    (apart,) = send(SECRET, *listed, nonce=reverted.nonce)

    assert versions_of(reverted) == {"a": "a1", "b": "b1"}  # Envoy 1.40's SDS acknowledges refused content unseen
    assert versions_of(apart) == {"a": "a2"}


@pytest.mark.parametrize("gone", ["b", "c"])
def test_full_state__new_ones_refused_one_after_the_other__the_removal_of_either_is_sent(gone: str) -> None:
    world = World()
    world.serve(CLUSTER, "a", "a1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    for name in "bc":
        world.serve(CLUSTER, name, f"{name}1")
        (push,) = wire.publish()
        assert wire.sotw(CLUSTER, nonce=push.nonce, nack=core(names_of(push), name)) == []
    world.forget(CLUSTER, gone)

    (push,) = wire.publish()

    assert versions_of(push) == {"a": "a1"}  # B12: the client may have taken it up although it refused it
    assert wire.sotw(CLUSTER, nonce=push.nonce) == []


def test_full_state__removal_in_a_refused_response__is_sent_again_without_the_culprit(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")
    world.forget(CLUSTER, "b")
    (push,) = wire.publish()

    (again,) = wire.sotw(CLUSTER, nonce=push.nonce, nack="no")

    assert versions_of(again) == {"a": "a1", "c": "c1", "d": "d1"}  # B12, D13


def test_full_state__earlier_response_refused_and_the_later_acknowledged__is_good_after_all(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER, "a")
    wire.sotw(CLUSTER, "a", nonce="1")
    world.serve(CLUSTER, "a", "a2")
    wire.publish()
    wire.sotw(CLUSTER, "a", "b")  # crosses the push, and is answered with a2, too
    wire.sotw(CLUSTER, "a", nonce="2", nack="no")
    wire.sotw(CLUSTER, "a", "b", nonce="3")
    world.serve(CLUSTER, "b", "b2")
    wire.publish()

    (push,) = wire.sotw(CLUSTER, "a", "b", nonce="4")  # what was sent for the refusal

    assert versions_of(push) == {"a": "a2", "b": "b2"}


def test_full_state__both_of_two_outstanding_responses_refused__neither_content_comes_back(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER, "a")
    wire.sotw(CLUSTER, "a", nonce="1")
    world.serve(CLUSTER, "a", "a2")
    wire.publish()
    world.serve(CLUSTER, "a", "a3")
    wire.publish()
    wire.sotw(CLUSTER, "a", "b")
    sent = wire.sotw(CLUSTER, "a", "b", nonce="3", nack=core(["a", "b"], "a"))
    sent += wire.sotw(CLUSTER, "a", "b", nonce="2", nack="no")
    world.serve(CLUSTER, "b", "b2")

    sent += wire.publish()

    assert {versions_of(response)["a"] for response in sent} == {"a1"}  # N3


def test_full_state__text_names_two_of_three__they_are_not_sent_again(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    for name in "abc":
        world.serve(CLUSTER, name, f"{name}2")
    (push,) = wire.publish()

    (again,) = wire.sotw(CLUSTER, nonce=push.nonce, nack=core(names_of(push), "a", "b"))

    assert versions_of(again) == {"a": "a1", "b": "b1", "c": "c2", "d": "d1"}
    assert wire.sotw(CLUSTER, nonce=again.nonce) == []  # B7: who is named needs no isolation


def test_full_state__the_only_change_refused_twice__the_first_is_not_tried_again(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    sent = []
    for name in "ab":
        world.serve(CLUSTER, name, f"{name}2")
        (push,) = wire.publish()
        sent.append(versions_of(push))
        sent += map(versions_of, wire.sotw(CLUSTER, nonce=push.nonce, nack="no"))

    assert [(each["a"], each["b"]) for each in sent] == [("a2", "b1"), ("a1", "b2")]  # N3


def test_parts__wildcard_at_rest_refuses_the_only_change__goes_on_with_its_own_copy(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    wire.delta(CLUSTER)
    wire.delta(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2", proven="a0")
    (push,) = wire.publish()

    assert wire.delta(CLUSTER, nonce=push.nonce, nack="no") == []  # F17: who has a copy of its own needs no other
    assert wire.session.offer(world.publish(), wire.now) is False


@pytest.mark.parametrize("variant", Variant)
def test_parts__error_in_a_refused_response__is_said_again(world: World, variant: Variant) -> None:
    wire = Wire(world, variant)
    send = wire.delta if variant is Variant.DELTA else wire.sotw
    listed = () if variant is Variant.DELTA else ("a", "nope")
    send(ROUTE, "a", "nope")

    (again,) = send(ROUTE, *listed, nonce="1", nack="no")

    assert (names_of(again), errors_of(again)) == ([], {"nope": "NOT_FOUND"})  # B12
    assert send(ROUTE, *listed, nonce=again.nonce) == []


def test_evidence__by_how_the_culprit_was_found(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    (first,) = wire.delta(ROUTE, "a", "b")
    found = []
    pending = wire.delta(ROUTE, nonce=first.nonce, nack="no")
    found.append(evidence(wire))
    (alone,) = pending
    wire.delta(ROUTE, nonce=alone.nonce, nack="no")
    found.append(evidence(wire))
    (only,) = Wire(world, Variant.DELTA).delta(ROUTE, "a")
    other = Wire(world, Variant.DELTA)
    other.delta(ROUTE, "a")
    other.delta(ROUTE, nonce=only.nonce, nack="no")

    assert [*found, evidence(other)] == [Evidence.TEXT, Evidence.ISOLATED, Evidence.ONLY_CHANGE]  # N2


@pytest.mark.parametrize("variant", Variant)
def test_isolation__two_streams_refuse_the_same__each_comes_to_use_the_good_ones(
    world: World, variant: Variant
) -> None:
    listed = () if variant is Variant.DELTA else tuple("abcd")
    held: list[dict[str, str]] = [{}, {}]
    wires = [Wire(world, variant) for _ in held]

    for wire, used in zip(wires, held, strict=True):
        send = wire.delta if variant is Variant.DELTA else wire.sotw
        pending = send(ROUTE, *"abcd")
        while pending:
            response = pending.pop(0)
            bad = "c" in names_of(response)
            used.update({} if bad else versions_of(response))
            pending += send(ROUTE, *listed, nonce=response.nonce, nack="missing" if bad else "")

    assert held == [{"a": "a1", "b": "b1", "d": "d1"}] * 2  # law 1, for every client


@pytest.mark.parametrize("change", ["removal", "neighbour"])
def test_full_state__rest_of_a_refused_response_was_undone_meanwhile__is_sent_as_it_was(
    world: World, change: str
) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")
    if change == "removal":
        world.forget(CLUSTER, "b")
    else:
        world.serve(CLUSTER, "b", "b2")
    (push,) = wire.publish()
    world.serve(CLUSTER, "b", "b1")
    assert wire.publish() == []

    (again,) = wire.sotw(CLUSTER, nonce=push.nonce, nack=core(names_of(push), "a"))

    # B12: the client may have taken up the rest of what it refused, so that even what it once had is news to it.
    assert versions_of(again) == {"a": "a1", "b": "b1", "c": "c1", "d": "d1"}


def test_isolation__suspect_that_changed_meanwhile__is_no_suspect_any_more(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, *"abcd")
    (half,) = wire.delta(ROUTE, nonce="1", nack="no")
    world.serve(ROUTE, "c", "c2")
    assert wire.publish() == []

    (changed,) = wire.delta(ROUTE, nonce=half.nonce)
    (rest,) = wire.delta(ROUTE, nonce=changed.nonce)

    assert [versions_of(each) for each in (half, changed, rest)] == [{"a": "a1", "b": "b1"}, {"c": "c2"}, {"d": "d1"}]
