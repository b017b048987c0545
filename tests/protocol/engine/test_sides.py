"""Streams of clients on the two sides of an open rollout (rollouts.md R3, R4)."""

import pytest

from adsserver.engine.events import Acknowledged, Respond, Variant
from adsserver.engine.publication import Publication
from adsserver.engine.session import Session
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import (
    AUDIENCE,
    CLIENT,
    GRPC_CLIENT,
    SETTINGS,
    World,
    content,
    errors_of,
    name_rules,
    names_of,
    versions_of,
)
from xdscore.access import Effect
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType
from xdscore.snapshot import Served, WithheldName

KINDS = (LISTENER, CLUSTER, ROUTE, ENDPOINT)
OTHER = ClientFacts(node_id="client-2", kind=CLIENT.kind)
every_type = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)
both = pytest.mark.parametrize("variant", Variant)


class Two:
    """A client that rollouts pick, and another one that they do not; both ask for the same and acknowledge it."""

    def __init__(self, variant: Variant, kind: ResourceType, *names: str) -> None:
        self.world, self.variant, self.kind, self.names = World(access=name_rules({})), variant, kind, names
        for each in KINDS:
            for name in "ab":
                self.world.serve(each, name, f"{name}1")
        self.picked, self.other = (Wire(self.world, variant, SETTINGS, client) for client in (CLIENT, OTHER))
        for wire in (self.picked, self.other):
            self.answer(wire, self.ask(wire))

    def ask(self, wire: Wire, nonce: str = "", nack: str = "") -> list[Respond]:
        if self.variant is Variant.SOTW:
            return wire.sotw(self.kind, *self.names, nonce=nonce, nack=nack)
        return wire.delta(self.kind, *(() if nonce else self.names), nonce=nonce, nack=nack)

    def answer(self, wire: Wire, responses: list[Respond], nack: str = "") -> None:
        for response in responses:
            for more in self.ask(wire, response.nonce, nack):
                self.answer(wire, [more])

    def publish(self) -> tuple[list[Respond], list[Respond]]:
        """What the two are sent because of the next publication; they have not answered yet."""
        publication = self.world.publish()
        sent = []
        for wire in (self.picked, self.other):
            wire.session.offer(publication, wire.now)
            sent.append(wire.written())
        return sent[0], sent[1]


@both
@every_type
def test_rollout__opens__who_is_picked_is_sent_the_candidate_and_nobody_else_is_woken(
    variant: Variant, kind: ResourceType
) -> None:
    two = Two(variant, kind, "a", "b")
    two.world.stage(kind, "a", "a2")
    two.world.roll(CLIENT)

    publication = two.world.publish()

    assert two.picked.session.offer(publication, 100.0)
    assert not two.other.session.offer(publication, 100.0)
    (sent,) = two.picked.written()
    assert versions_of(sent)["a"] == "a2"


@both
@every_type
def test_rollout__concerns_another_type__nobody_is_woken(variant: Variant, kind: ResourceType) -> None:
    two = Two(variant, kind, "a", "b")
    two.world.stage(next(each for each in KINDS if each is not kind), "a", "a2")
    two.world.roll(permille=1000)

    publication = two.world.publish()

    assert not two.picked.session.offer(publication, 100.0)
    assert two.picked.session.audience.side == "candidate"


@both
@every_type
def test_rollout__goes_on_to_a_larger_step__only_who_joins_is_sent_anything(
    variant: Variant, kind: ResourceType
) -> None:
    two = Two(variant, kind, "a", "b")
    two.world.stage(kind, "a", "a2")
    two.world.roll(CLIENT)
    two.answer(two.picked, two.publish()[0])
    two.world.roll(CLIENT, OTHER)

    publication = two.world.publish()

    assert not two.picked.session.offer(publication, 100.0)
    assert two.other.session.offer(publication, 100.0)
    (sent,) = two.other.written()
    assert versions_of(sent)["a"] == "a2"


@both
@every_type
def test_promotion__cohort__is_sent_nothing_and_the_rest_the_new_content(variant: Variant, kind: ResourceType) -> None:
    two = Two(variant, kind, "a", "b")
    two.world.stage(kind, "a", "a2")
    two.world.roll(CLIENT)
    two.answer(two.picked, two.publish()[0])
    two.world.promote()
    # The cohort acknowledged it: from now on it is what clients fall back on (R6).
    two.world.serve(kind, "a", "a2", proven="a2")

    to_cohort, to_rest = two.publish()

    assert to_cohort == []
    (sent,) = to_rest
    assert versions_of(sent)["a"] == "a2"
    assert two.picked.session.audience == two.other.session.audience


@both
@every_type
def test_promotion__of_the_very_same_entries__does_not_even_wake_the_cohort(
    variant: Variant, kind: ResourceType
) -> None:
    two = Two(variant, kind, "a", "b")
    two.world.stage(kind, "a", "a2")
    two.world.roll(CLIENT)
    two.answer(two.picked, two.publish()[0])
    two.world.promote()

    assert not two.picked.session.offer(two.world.publish(), 100.0)


@both
@every_type
def test_promotion__of_one_of_two_names__cohort_is_sent_nothing(variant: Variant, kind: ResourceType) -> None:
    two = Two(variant, kind, "a", "b")
    two.world.stage(kind, "a", "a2")
    two.world.stage(kind, "b", "b2")
    two.world.roll(CLIENT)
    two.answer(two.picked, two.publish()[0])
    two.world.entries[kind.word, "a"] = two.world.diff.pop((kind.word, "a"))  # type: ignore[assignment]

    to_cohort, to_rest = two.publish()

    assert to_cohort == []
    (sent,) = to_rest
    assert (versions_of(sent)["a"], versions_of(sent).get("b", "b1")) == ("a2", "b1")


@both
@every_type
def test_take_back__cohort__is_sent_what_the_stable_side_has_and_the_rest_nothing(
    variant: Variant, kind: ResourceType
) -> None:
    two = Two(variant, kind, "a", "b")
    two.world.stage(kind, "a", "a2")
    two.world.roll(CLIENT)
    two.answer(two.picked, two.publish()[0])
    two.world.take_back()

    to_cohort, to_rest = two.publish()

    assert to_rest == []
    (sent,) = to_cohort
    assert versions_of(sent)["a"] == "a1"


@both
@every_type
def test_refusal_on_the_candidate_side__falls_back_on_stable_content(variant: Variant, kind: ResourceType) -> None:
    two = Two(variant, kind, "a")
    two.world.stage(kind, "a", "a2")
    two.world.roll(GRPC_CLIENT)
    two.world.publish()
    # A newcomer of the cohort has nothing of its own to fall back on.
    wire = Wire(two.world, variant, SETTINGS, GRPC_CLIENT)
    (first,) = two.ask(wire)
    assert versions_of(first) == {"a": "a2"}

    (again,) = two.ask(wire, first.nonce, nack="bad")

    assert versions_of(again) == {"a": "a1"}  # R6


@both
@every_type
def test_new_name__is_told_to_the_stable_side_exactly_as_before(variant: Variant, kind: ResourceType) -> None:
    two = Two(variant, kind, "a", "new")
    (as_before,) = two.ask(Wire(two.world, variant, SETTINGS, OTHER))
    two.world.stage(kind, "new", "n1")
    two.world.roll(CLIENT)

    to_cohort, to_rest = two.publish()
    (first,) = two.ask(Wire(two.world, variant, SETTINGS, OTHER))

    assert to_rest == []
    assert (versions_of(first), first.errors, first.version) == (
        versions_of(as_before),
        as_before.errors,
        as_before.version,
    )
    (sent,) = to_cohort
    assert versions_of(sent)["new"] == "n1"


@both
@every_type
def test_staged_deletion__is_there_for_the_stable_side_and_gone_for_the_other(
    variant: Variant, kind: ResourceType
) -> None:
    two = Two(variant, kind, "a", "b")
    two.world.stage_removal(kind, "a")
    two.world.roll(CLIENT)

    to_cohort, to_rest = two.publish()

    assert to_rest == []
    (sent,) = to_cohort
    assert errors_of(sent) == {"a": "NOT_FOUND"}
    (newcomer,) = two.ask(Wire(two.world, variant, SETTINGS, OTHER))
    assert versions_of(newcomer) == {"a": "a1", "b": "b1"}


@both
def test_wildcard__rollout_that_opens_and_is_promoted__each_stream_is_sent_the_change_once(variant: Variant) -> None:
    two = Two(variant, CLUSTER, "*")
    two.world.stage(CLUSTER, "a", "a2")
    two.world.stage(CLUSTER, "c", "c1")
    two.world.stage_removal(CLUSTER, "b")
    two.world.roll(CLIENT)

    to_cohort, to_rest = two.publish()
    two.answer(two.picked, to_cohort)
    two.world.promote()
    cohort_again, rest_then = two.publish()

    assert (to_rest, cohort_again) == ([], [])
    assert [*map(names_of, to_cohort)] == [*map(names_of, rest_then)]
    assert [each.version for each in to_cohort] == [each.version for each in rest_then]  # B10
    assert [each.removed for each in to_cohort] == [each.removed for each in rest_then]
    # Shared bytes, also with who took the same step as the cohort before.
    assert to_cohort[0].resources is rest_then[0].resources


@both
def test_cohort__make_before_break__holds_when_a_stream_changes_sides(variant: Variant) -> None:
    world = World()
    world.serve(LISTENER, "l", "l1")
    world.serve(CLUSTER, "old", "o1")
    wire = Wire(world, variant)
    for kind in (CLUSTER, LISTENER):
        ask = wire.sotw if variant is Variant.SOTW else wire.delta
        (first,) = ask(kind, "*")
        ask(kind, *(("*",) if variant is Variant.SOTW else ()), nonce=first.nonce)
    world.stage(LISTENER, "l", "l2")
    world.stage(CLUSTER, "new", "n1")
    world.stage_removal(CLUSTER, "old")
    world.roll(CLIENT)

    order = []
    pending = wire.publish()
    while pending:
        response = pending.pop(0)
        order.append((response.kind, frozenset(names_of(response))))
        answer = wire.sotw if variant is Variant.SOTW else wire.delta
        pending += answer(response.kind, *(("*",) if variant is Variant.SOTW else ()), nonce=response.nonce)

    # The new cluster comes before the listener that needs it, and the old one goes after that (I1).
    assert [kind for kind, _ in order] == [CLUSTER, LISTENER, CLUSTER]
    assert "new" in order[0][1]


def test_ack_of_the_cohort__is_a_fact_like_any_other() -> None:
    two = Two(Variant.DELTA, CLUSTER, "a")
    two.world.stage(CLUSTER, "a", "a2")
    two.world.roll(CLIENT)
    (sent,), _ = two.publish()

    two.answer(two.picked, [sent])

    (fact,) = two.picked.facts
    assert isinstance(fact, Acknowledged)
    assert [member.content for member in fact.resources] == [content("a2", eds_name="a")]


def test_access__rules_hold_on_the_candidate_side_as_on_the_other() -> None:
    world = World()
    world.serve(CLUSTER, "a", "a1")
    world.rule(CLUSTER, "a", Effect.HIDE)
    world.stage(CLUSTER, "a", "a2")
    world.roll(permille=1000)

    (first,) = Wire(world, Variant.DELTA).delta(CLUSTER, "a")

    assert errors_of(first) == {"a": "NOT_FOUND"}
    assert names_of(first) == []


def test_kind__content_that_the_candidate_withholds_from_it__is_withheld_there_alone() -> None:
    world = World(access=name_rules({}))
    world.serve(ROUTE, "a", "a1")
    world.diff["route", "a"] = WithheldName("refused", content("a2"), (str(CLIENT.kind),))
    world.roll(CLIENT)
    picked = Session(Variant.DELTA, CLIENT, SETTINGS, world.publish())
    other = Session(Variant.DELTA, OTHER, SETTINGS, world.publication)

    assert picked.audience.kind == str(CLIENT.kind)
    assert other.audience.kind == ""

    # The same table, but nothing is withheld any more.
    world.diff["route", "a"] = Served(content("a3"))
    assert not picked.offer(world.publish(), 100.0)
    assert picked.audience.kind == ""


def test_probe__of_what_the_candidate_withholds__is_let_on_that_side() -> None:
    world = World()
    world.serve(ROUTE, "a", "a1")
    world.stage(ROUTE, "a", "a2")
    staged = world.diff["route", "a"]
    assert isinstance(staged, Served)
    world.diff["route", "a"] = WithheldName("refused", staged.content, (), ("someone",))
    verified = ClientFacts(identity="spiffe://shop/web", node_id="n", kind=CLIENT.kind)
    world.roll(verified)

    wire = Wire(world, Variant.DELTA, client=verified)
    (first,) = wire.delta(ROUTE, "a")

    assert versions_of(first) == {"a": "a2"}
    assert wire.publish() == []  # still withheld, so still its to try
    (stable,) = Wire(world, Variant.DELTA, client=OTHER).delta(ROUTE, "a")
    assert versions_of(stable) == {"a": "a1"}


def test_view__first_one_of_the_candidate_side__is_made_of_the_stable_sides() -> None:
    world = World()
    for name in "abc":
        world.serve(CLUSTER, name, f"{name}1")
    world.stage(CLUSTER, "a", "a2")
    world.roll(CLIENT)
    publication = world.publish()
    candidate = publication.audience(CLIENT)

    stable_view, view = publication.view(AUDIENCE, CLUSTER), publication.view(candidate, CLUSTER)

    assert view.named["b"] is stable_view.named["b"]
    assert publication.view(candidate, ROUTE) is publication.view(AUDIENCE, ROUTE)
    # None was made for this side where the sides do not differ: it takes time and memory.
    assert {audience.side for audience, word in publication.made if word == "route"} == {AUDIENCE.side}


def test_is_costly__a_view_of_the_candidate_side__costs_little_where_the_stable_sides_is_there() -> None:
    world = World()
    for number in range(5_001):
        world.serve(CLUSTER, f"c{number}", "1")
    world.stage(CLUSTER, "c1", "2")
    world.roll(CLIENT)
    publication = world.publish()
    candidate = publication.audience(CLIENT)

    assert publication.is_costly(candidate, CLUSTER)
    publication.make_first(candidate, CLUSTER)

    assert not publication.is_costly(candidate, CLUSTER)
    assert publication.view(candidate, CLUSTER).named["c1"].content.version == "2"
    assert publication.view(AUDIENCE, CLUSTER).named["c1"].content.version == "1"


def test_publication__without_a_rollout__asks_for_no_digest() -> None:
    world = World()
    world.serve(CLUSTER, "a", "a1")
    session = Session(Variant.DELTA, CLIENT, SETTINGS, world.publish())

    session.offer(Publication(world.snapshot, world.publication), 100.0)

    assert session._digest == ""
