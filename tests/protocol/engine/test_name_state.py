"""The table of what happens to a name: every step of it is taken, every other one is refused, and the page shows it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from adsserver.engine import name_state
from adsserver.engine.events import DeltaRequest, Nack, SotwRequest, Variant
from adsserver.engine.looking import Viewer, look
from adsserver.engine.name_state import (
    TABLE,
    Acceptance,
    Due,
    Event,
    IllegalStepError,
    NameState,
    Row,
    Standing,
    after,
)
from adsserver.engine.subscription import Subscription
from adsserver.engine.told import ABSENT
from tests.protocol.engine.hostile import GLOB, HostileClient
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import AUDIENCE, World, errors_of, names_of, versions_of
from xdscore.access import Effect
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE, ResourceType

Facet = Standing | Acceptance | Due
Step = tuple[Event, Facet]

MEMBER, OTHER_MEMBER = "xdstp://x/t/d/c", "xdstp://x/t/d/d"


def facets_of(row: Row) -> tuple[Facet, ...]:
    return (*row.standing, *row.acceptance, *row.due)


STEPS: set[Step] = {(event, facet) for event, row in TABLE.items() for facet in facets_of(row)}
# What games reach seldom or never: each has a scenario below.
RARE: set[Step] = {
    (Event.ACKNOWLEDGED, Due.AGAIN),
    (Event.ACKNOWLEDGED, Due.MEND),
    (Event.FIXED, Standing.UNKNOWN),
    (Event.IN_COMPANY, Acceptance.DOUBTED),
    (Event.IN_COMPANY, Acceptance.PARKED),
    (Event.LEFT_OPEN, Acceptance.PARKED),
    (Event.LEFT_OPEN, Due.AGAIN),
    (Event.LOST_TRACK, Acceptance.REFUSED),
    (Event.LOST_TRACK, Due.AGAIN),
    (Event.LOST_TRACK, Due.MEND),
    (Event.LOST_TRACK, Standing.EXCUSED),
    (Event.NACKED, Due.AGAIN),
    (Event.OVERTAKEN, Acceptance.PARKED),
    (Event.PASSED_OVER, Acceptance.PARKED),
    (Event.PASSED_OVER, Standing.UNKNOWN),
    (Event.REPEATED, Standing.REPORTED),
    (Event.STOOD_IN, Acceptance.DOUBTED),
    (Event.STOOD_IN, Standing.UNKNOWN),
    (Event.TRACED, Acceptance.PARKED),
    (Event.TRACED, Acceptance.REFUSED),
    (Event.TRACED, Due.AGAIN),
    (Event.TRACED, Due.MEND),
    (Event.VOID, Standing.UNKNOWN),
    (Event.WITHHELD, Standing.EXCUSED),
    (Event.WITHHELD, Standing.UNTOLD),
}
GAMES, MOVES = 1_500, 100
FACETS: tuple[Facet, ...] = (*Standing, *Acceptance, *Due)
OTHERS = [(event, facet) for event in Event for facet in FACETS if (event, facet) not in STEPS]


class Noting(dict[Any, Any]):
    """A part of a row that notes which of its steps are taken."""

    def __init__(self, event: Event, steps: Mapping[Any, Any], taken: set[Step]) -> None:
        super().__init__(steps)
        self.event = event
        self.taken = taken

    def __getitem__(self, facet: Any) -> Any:
        self.taken.add((self.event, facet))
        return super().__getitem__(facet)


@pytest.fixture
def taken() -> Iterator[set[Step]]:
    """The steps of the table that were taken since."""
    steps: set[Step] = set()

    def noting(event: Event, row: Row) -> Row:
        return replace(
            row,
            standing=Noting(event, row.standing, steps),
            acceptance=Noting(event, row.acceptance, steps),
            due=Noting(event, row.due, steps),
        )

    with mock.patch.object(name_state, "TABLE", {event: noting(event, row) for event, row in TABLE.items()}):
        yield steps


class Unread(Wire):
    """A delta client that may say something before the server has its turn."""

    def says(
        self, kind: ResourceType, *subscribe: str, left: tuple[str, ...] = (), nonce: str = "", nack: str = ""
    ) -> None:
        refusal = Nack(3, nack) if nack else None
        self.session.receive(DeltaRequest(kind, subscribe, left, nonce=nonce, nack=refusal), self.now)


def cluster_that_was_missing(proven: str = "") -> tuple[World, Unread, str, str]:
    """A wildcard client that is sent that "x" is removed, and then "x"; the nonces of both, unanswered."""
    world = World()
    world.serve(CLUSTER, "y", "y1")
    wire = Unread(world, Variant.DELTA)
    (removal,) = wire.delta(CLUSTER, "*", "x", "y")
    world.serve(CLUSTER, "x", "x1", proven=proven)
    (arrival,) = wire.publish()
    return world, wire, removal.nonce, arrival.nonce


def refuses_and_asks_anew(wire: Unread, removal: str, arrival: str) -> None:
    """Nobody knows what the client has of "x" then, and it refused what the view shows (B12, C6)."""
    wire.says(CLUSTER, nonce=arrival, nack="no")
    wire.says(CLUSTER, "*")
    wire.says(CLUSTER, nonce=removal, nack="no")


def test_unknown__refused_and_nothing_stands_in__is_passed_over(taken: set[Step]) -> None:
    _, wire, removal, arrival = cluster_that_was_missing()
    refuses_and_asks_anew(wire, removal, arrival)

    assert [versions_of(response) for response in wire.written()] == [{"y": "y1"}]  # N3
    assert {(Event.LOST_TRACK, Due.MEND), (Event.PASSED_OVER, Standing.UNKNOWN)} <= taken


def test_unknown__refused_and_others_proved_one__that_stands_in(taken: set[Step]) -> None:
    _, wire, removal, arrival = cluster_that_was_missing(proven="x0")
    refuses_and_asks_anew(wire, removal, arrival)

    assert [versions_of(response) for response in wire.written()] == [{"x": "x0", "y": "y1"}]  # F17
    assert {(Event.LOST_TRACK, Acceptance.REFUSED), (Event.STOOD_IN, Standing.UNKNOWN)} <= taken


def test_unknown__refused_and_fixed__the_fix_is_sent(taken: set[Step]) -> None:
    world, wire, removal, arrival = cluster_that_was_missing()
    refuses_and_asks_anew(wire, removal, arrival)
    world.serve(CLUSTER, "x", "x2")

    assert [versions_of(response) for response in wire.publish()] == [{"x": "x2", "y": "y1"}]  # F17
    assert (Event.FIXED, Standing.UNKNOWN) in taken


@pytest.mark.parametrize("answered", [False, True])
def test_unknown__stand_in_acknowledged__is_what_the_client_has(taken: set[Step], answered: bool) -> None:
    world, wire, removal, arrival = cluster_that_was_missing(proven="x0")
    (stand_in,) = wire.delta(CLUSTER, nonce=arrival, nack="no")
    (again,) = wire.delta(CLUSTER, "x")
    if answered:
        wire.says(CLUSTER, nonce=stand_in.nonce)
    wire.says(CLUSTER, "*")
    wire.says(CLUSTER, nonce=removal, nack="no")
    wire.says(CLUSTER, nonce=again.nonce)
    wire.written()
    world.serve(CLUSTER, "x", "x1")

    (asked,) = wire.delta(CLUSTER, "x")

    assert versions_of(asked) == {"x": "x0"}  # F17: nobody proves it to others any more
    assert (Event.TRACED, Acceptance.PARKED if answered else Acceptance.REFUSED) in taken


def test_unknown__its_error_was_refused_too__is_told_again(taken: set[Step]) -> None:
    world = World()
    world.serve(CLUSTER, "y", "y1")
    wire = Unread(world, Variant.DELTA)
    (removal,) = wire.delta(CLUSTER, "x", "y")
    world.serve(CLUSTER, "x", "x1")
    (arrival,) = wire.publish()
    world.withhold(CLUSTER, "x")
    wire.session.offer(world.publish(), wire.now)
    (error,) = wire.delta(CLUSTER, "x", "y")
    wire.says(CLUSTER, nonce=error.nonce, nack="no")
    wire.says(CLUSTER, nonce=removal.nonce, nack="no")
    wire.says(CLUSTER, nonce=arrival.nonce)

    (again,) = wire.written()

    assert (errors_of(again), again.removed) == ({"x": "INTERNAL"}, ())  # B12, F18a
    assert {(Event.LOST_TRACK, Standing.EXCUSED), (Event.TRACED, Due.MEND)} <= taken


def test_withheld__its_error_is_refused_and_the_fix_before_it_acknowledged__is_told_again(taken: set[Step]) -> None:
    world, wire, _, arrival = cluster_that_was_missing()
    wire.delta(CLUSTER, nonce=arrival, nack="no")
    world.serve(CLUSTER, "x", "x2")
    (fix,) = wire.publish()
    world.withhold(CLUSTER, "x")
    wire.session.offer(world.publish(), wire.now)
    (error,) = wire.delta(CLUSTER, "x", "y")
    wire.says(CLUSTER, nonce=error.nonce, nack="no")
    wire.says(CLUSTER, nonce=fix.nonce)

    (again,) = wire.written()

    assert (errors_of(again), again.removed) == ({"x": "INTERNAL"}, ())  # B12, F18a
    assert (Event.ACKNOWLEDGED, Due.MEND) in taken


@pytest.mark.parametrize("kind", [ROUTE, CLUSTER])
def test_refused__asked_for_by_name_and_nothing_stands_in__is_answered_with_it(
    taken: set[Step], kind: ResourceType
) -> None:
    world = World()
    world.serve(kind, "a", "a1")
    wire = Wire(world, Variant.DELTA)
    (first,) = wire.delta(kind, "a")
    assert wire.delta(kind, nonce=first.nonce, nack="no") == []

    (again,) = wire.delta(kind, "a")

    assert versions_of(again) == {"a": "a1"}  # C6, T1
    assert wire.delta(kind, nonce=again.nonce) == []
    assert (Event.SENT, Acceptance.REFUSED) in taken


def parked_and_gone(wire: Unread, world: World) -> None:
    """The client refused "x" and acknowledged what stood in for it; it asks for everything when "x" is unreadable."""
    world.serve(CLUSTER, "x", "x1", proven="x0")
    (arrival,) = wire.publish()
    (stand_in,) = wire.delta(CLUSTER, nonce=arrival.nonce, nack="no")
    wire.delta(CLUSTER, nonce=stand_in.nonce)
    wire.says(CLUSTER, "*")
    world.unread(CLUSTER, "x")
    (everything,) = wire.publish()
    wire.delta(CLUSTER, nonce=everything.nonce)


def test_parked__asked_for_by_name_and_back_again__the_stand_in_is_sent(taken: set[Step]) -> None:
    world = World()
    world.serve(CLUSTER, "y", "y1")
    wire = Unread(world, Variant.DELTA)
    (first,) = wire.delta(CLUSTER, "*")
    wire.delta(CLUSTER, nonce=first.nonce)
    parked_and_gone(wire, world)
    wire.says(CLUSTER, "x")
    world.serve(CLUSTER, "x", "x1", proven="x0")

    assert [versions_of(response) for response in wire.publish()] == [{"x": "x0"}]  # F17
    assert (Event.OVERTAKEN, Acceptance.PARKED) in taken


def test_parked__its_error_of_long_ago_is_refused__is_told_again(taken: set[Step]) -> None:
    world = World()
    world.serve(CLUSTER, "y", "y1")
    world.unread(CLUSTER, "x")
    wire = Unread(world, Variant.DELTA)
    (first,) = wire.delta(CLUSTER, "*", "x", "y")
    wire.delta(CLUSTER, unsubscribe=("x",))
    parked_and_gone(wire, world)
    wire.says(CLUSTER, "x")
    wire.says(CLUSTER, nonce=first.nonce, nack="no")

    assert [errors_of(response) for response in wire.written()] == [{"x": "UNAVAILABLE"}]  # B12
    assert (Event.LEFT_OPEN, Acceptance.PARKED) in taken


def test_look__parked_without_a_copy_and_nothing_stands_in__is_passed_over(taken: set[Step]) -> None:
    world = World()
    world.serve(CLUSTER, "x", "x1")
    view = world.publish().view(AUDIENCE, CLUSTER)
    viewer = Viewer(Subscription(wildcard=True), "", lambda _name, _has_copy: True)
    state = NameState(Standing.UNTOLD, Acceptance.PARKED, Due.MEND, ABSENT, refused=frozenset({"x1"}))

    seen = look(view, viewer, "x", state, ABSENT)

    assert seen == (
        NameState(Standing.UNTOLD, Acceptance.PARKED, told=ABSENT, refused=frozenset({"x1"}), moves=True),
        None,
        False,
    )
    assert (Event.PASSED_OVER, Acceptance.PARKED) in taken


def endpoints_behind_a_cluster(name: str) -> tuple[World, Unread]:
    world = World()
    world.serve(CLUSTER, "k", "k1", eds_name=name)
    world.serve(ENDPOINT, name, "e1")
    wire = Unread(world, Variant.DELTA)
    (clusters,) = wire.delta(CLUSTER, "*")
    wire.delta(CLUSTER, nonce=clusters.nonce)
    return world, wire


def cluster_changes(world: World, wire: Unread, name: str) -> None:
    """The cluster is written, and its endpoints are still to follow (I3)."""
    world.serve(CLUSTER, "k", "k2", eds_name=name)
    wire.session.offer(world.publish(), wire.now)
    response = wire.session.compose(wire.now)
    assert response is not None
    assert names_of(response) == ["k"]


@pytest.mark.parametrize("nack", ["", "no"])
def test_again__fix_is_answered_before_it_is_sent_again__only_a_good_one_follows(taken: set[Step], nack: str) -> None:
    world, wire = endpoints_behind_a_cluster("a")
    (first,) = wire.delta(ENDPOINT, "a")
    wire.delta(ENDPOINT, nonce=first.nonce, nack="no")
    world.serve(ENDPOINT, "a", "e2")
    (fix,) = wire.publish()
    cluster_changes(world, wire, "a")
    wire.says(ENDPOINT, nonce=fix.nonce, nack=nack)

    assert [versions_of(response) for response in wire.written()] == ([] if nack else [{"a": "e2"}])  # I3, N3
    steps = {Event.NACKED, Event.LEFT_OPEN} if nack else {Event.ACKNOWLEDGED}
    assert {(event, Due.AGAIN) for event in steps} <= taken


def test_again__endpoints_on_their_way_to_who_asks_anew__are_sent_once(taken: set[Step]) -> None:
    world, wire = endpoints_behind_a_cluster(MEMBER)
    (first,) = wire.delta(ENDPOINT, MEMBER)
    wire.says(ENDPOINT, left=(MEMBER,))
    wire.says(ENDPOINT, GLOB)
    cluster_changes(world, wire, MEMBER)
    wire.says(ENDPOINT, nonce=first.nonce)

    assert [versions_of(response) for response in wire.written()] == [{MEMBER: "e1"}]
    assert (Event.TRACED, Due.AGAIN) in taken


def test_again__removal_of_the_endpoints_was_refused__is_said_again(taken: set[Step]) -> None:
    world, wire = endpoints_behind_a_cluster("a")
    world.forget(ENDPOINT, "a")
    world.serve(ENDPOINT, "b", "e1")
    wire.publish()
    (removal,) = wire.delta(ENDPOINT, "a", "b")
    cluster_changes(world, wire, "a")
    wire.says(ENDPOINT, nonce=removal.nonce, nack="no")

    assert [response.removed for response in wire.written()] == [("a",)]  # B12
    assert (Event.LOST_TRACK, Due.AGAIN) in taken


def test_unknown__its_collection_is_refused_meanwhile__nothing_is_said_of_it(taken: set[Step]) -> None:
    world = World()
    world.serve(ENDPOINT, MEMBER, "1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(ENDPOINT, MEMBER)
    wire.session.receive(SotwRequest(ENDPOINT, ()), wire.now)
    wire.session.receive(SotwRequest(ENDPOINT, (GLOB,)), wire.now)
    for name in (MEMBER, GLOB):
        world.rule(ENDPOINT, name, Effect.DENY)

    (response,) = wire.publish()

    assert errors_of(response) == {GLOB: "PERMISSION_DENIED"}  # F16, F19
    assert (Event.VOID, Standing.UNKNOWN) in taken


def test_again__what_the_client_said_it_holds__is_replaced_once(taken: set[Step]) -> None:
    world, wire = endpoints_behind_a_cluster("a")
    wire.session.receive(DeltaRequest(ENDPOINT, ("a",), initial_versions={"a": "e0"}), wire.now)
    cluster_changes(world, wire, "a")

    assert [versions_of(response) for response in wire.written()] == [{"a": "e1"}]  # E5, I3
    assert (Event.REPEATED, Standing.REPORTED) in taken


def blaming(index: int, name: str) -> Nack:
    return Nack(3, f"xDS response validation errors: [resource index {index}: {name}: INVALID_ARGUMENT: bad]")


def test_full_state__blamed_in_one_and_innocent_in_the_next__is_not_sent_again(taken: set[Step]) -> None:
    world = World()
    for name in "ab":
        world.serve(CLUSTER, name, f"{name}1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER, "a")
    wire.sotw(CLUSTER, "a", "b")
    for nonce, nack in (("1", blaming(0, "a")), ("2", blaming(1, "b"))):
        wire.session.receive(SotwRequest(CLUSTER, ("a", "b"), nonce, nack=nack), wire.now)

    assert [names_of(response) for response in wire.written()] == [[]]  # N3
    assert (Event.IN_COMPANY, Acceptance.PARKED) in taken


def test_full_state__one_after_the_other_blamed__the_rest_comes_to_be_used(taken: set[Step]) -> None:
    world = World()
    for name in "abc":
        world.serve(CLUSTER, name, f"{name}1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    responses = []
    for nonce, name in (("1", "a"), ("2", "b")):
        wire.session.receive(SotwRequest(CLUSTER, (), nonce, nack=blaming(0, name)), wire.now)
        responses = [versions_of(response) for response in wire.written()]

    assert responses == [{"c": "c1"}]  # law 1
    assert (Event.IN_COMPANY, Acceptance.DOUBTED) in taken


def withheld_member(*names: str) -> tuple[World, Unread]:
    """A wildcard client that asked for a collection, too, and was told that a member of it is withheld."""
    world = World()
    for name in (MEMBER, OTHER_MEMBER, *names):
        world.serve(CLUSTER, name, "1")
    wire = Unread(world, Variant.DELTA)
    (response,) = wire.delta(CLUSTER, "*", GLOB, *names)
    wire.delta(CLUSTER, nonce=response.nonce)
    world.withhold(CLUSTER, MEMBER, "one reason")
    (error,) = wire.publish()
    assert (errors_of(error), error.removed) == ({MEMBER: "INTERNAL"}, ())
    wire.delta(CLUSTER, nonce=error.nonce)
    return world, wire


def test_withheld__collection_left_and_another_reason__the_copy_stays(taken: set[Step]) -> None:
    world, wire = withheld_member("y")
    wire.delta(CLUSTER, unsubscribe=(GLOB,))
    world.withhold(CLUSTER, MEMBER, "another reason")
    world.serve(CLUSTER, "y", "2")

    (response,) = wire.publish()

    assert (versions_of(response), response.errors, response.removed) == ({"y": "2"}, (), ())  # F18a, F22
    assert (Event.WITHHELD, Standing.UNTOLD) in taken


def test_withheld__error_refused_and_collection_left__the_copy_stays_until_it_is_gone(taken: set[Step]) -> None:
    world, wire = withheld_member()
    (error,) = wire.delta(CLUSTER, GLOB)
    wire.says(CLUSTER, nonce=error.nonce, nack="no")
    wire.says(CLUSTER, left=(GLOB,))

    assert wire.written() == []  # F18a, F22
    assert (Event.WITHHELD, Standing.EXCUSED) in taken
    world.forget(CLUSTER, MEMBER)
    assert [response.removed for response in wire.publish()] == [(MEMBER,)]


def test_withheld__fix_that_is_not_answered__is_what_the_client_goes_on_with(taken: set[Step]) -> None:
    world, wire, _, arrival = cluster_that_was_missing()
    wire.delta(CLUSTER, nonce=arrival, nack="no")
    world.serve(CLUSTER, "x", "x2")
    wire.publish()
    world.withhold(CLUSTER, "x")
    wire.now += 31  # B13
    wire.publish()

    (response,) = wire.delta(CLUSTER, unsubscribe=("x",))

    assert versions_of(response) == {"x": "x2"}  # C7, F18a
    assert (Event.STOOD_IN, Acceptance.DOUBTED) in taken


@pytest.mark.hypothesis  # generated, as `mutants` understands it
def test_table__games_of_hostile_clients__take_every_step_that_no_scenario_here_takes(taken: set[Step]) -> None:
    for seed in range(GAMES):
        HostileClient(seed).play(MOVES)

    assert STEPS - taken <= RARE


@pytest.mark.parametrize(("event", "facet"), OTHERS, ids=lambda each: each.name)
def test_table__step_that_cannot_happen__is_refused(event: Event, facet: Facet) -> None:
    row = TABLE[event]
    state = NameState(next(iter(row.standing)), next(iter(row.acceptance)), next(iter(row.due)))
    match facet:
        case Standing():
            state = state._replace(standing=facet)
        case Acceptance():
            state = state._replace(acceptance=facet)
        case Due():
            state = state._replace(due=facet)

    with pytest.raises(IllegalStepError, match=f"{event.name} cannot happen .* {facet.name}"):
        after(state, event)
