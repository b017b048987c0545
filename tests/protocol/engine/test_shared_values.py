"""What streams share: views, bodies, steps and the ledger's reckoning, each by itself (architecture.md law 5)."""

import pytest

from adsserver.engine.body import EMPTY_BODY, body_of, marks_of
from adsserver.engine.client_view import FRAMING_BYTES, ClientView
from adsserver.engine.ledger import Entry, Ledger
from adsserver.engine.shared import Shared
from adsserver.engine.subscription import subscription_to
from adsserver.engine.told import ABSENT, Absent
from adsserver.engine.versions import version_text
from tests.protocol.engine.world import AUDIENCE, URL, World
from xdscore.access import Effect
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER
from xdscore.xdstp import Glob, glob_of

GLOB_NAME = "xdstp://x/t/d/*"


@pytest.fixture
def world() -> World:
    world = World()
    world.serve(CLUSTER, "a", "a1", size=1000)
    world.serve(CLUSTER, "bb", "b1", size=2000)
    world.serve(CLUSTER, "xdstp://x/t/d/m", "m1")
    return world


def view_of(world: World) -> ClientView:
    return world.publish().view(AUDIENCE, CLUSTER)


def glob() -> Glob:
    found = glob_of(GLOB_NAME)
    assert found is not None
    return found


def test_view__names_that_one_client_made_up__are_not_kept_for_everybody(world: World) -> None:
    view = view_of(world)
    few, many = (
        subscription_to(wildcard=False, names=frozenset(f"n{number}" for number in range(count)), named_once=True)
        for count in (100, 101)
    )

    for wanted in (few, many):
        assert len(view.body(wanted, (), URL).errors) == len(wanted.names)

    assert view.known_body(few, (), URL) is view.body(few, (), URL)
    assert view.known_body(many, (), URL) is None


def test_view__asked_twice__answers_with_the_same_objects(world: World) -> None:
    view = view_of(world)
    wanted = subscription_to(wildcard=False, names=frozenset({"a", "nope"}), named_once=True)
    body = view.body(wanted, (), URL)

    assert view.body(wanted, (), URL) is body
    assert view.collection(glob()) is view.collection(glob())
    assert view.error("nope", URL) is view.error("nope", URL) is body.errors[0]
    assert body.transition_from(EMPTY_BODY, lambda _: True) is body.transition_from(EMPTY_BODY, lambda _: False)


def test_view__error_of_another_link_or_name__is_another(world: World) -> None:
    view = view_of(world)

    assert len({view.error("nope", URL), view.error("nope", "https://other"), view.error("nay", URL)}) == 3


def test_step__from_nothing__is_everything_with_its_size_on_the_wire(world: World) -> None:
    view = view_of(world)

    step = view.step_from(ABSENT)

    assert step.names == {"a", "bb", "xdstp://x/t/d/m"}
    assert (step.all_names, step.losses, step.gains) == (False, (), view.members)
    assert step.size == 1000 + 1 + 2000 + 2 + 100 + 15 + 3 * FRAMING_BYTES


def test_step__withheld_and_removed_names__count_when_they_come_go_or_change(world: World) -> None:
    for name in ("stays", "goes", "changes"):
        world.withhold(CLUSTER, f"w-{name}")
        world.remove(CLUSTER, f"r-{name}")
    before = view_of(world)
    world.forget(CLUSTER, "w-goes")
    world.forget(CLUSTER, "r-goes")
    world.withhold(CLUSTER, "w-changes", "another reason")
    world.withhold(CLUSTER, "w-comes")

    step = view_of(world).step_from(before)

    assert step.names == {"w-goes", "r-goes", "w-changes", "w-comes"}
    assert (step.gains, step.losses, step.size) == ((), (), 0)


def test_lets_go__by_why_it_is_gone__only_where_access_did_not_end(world: World) -> None:
    for name, effect in (("denied", Effect.DENY), ("hidden", Effect.HIDE)):
        world.rule(CLUSTER, name, effect)
    world.withhold(CLUSTER, "withheld")
    view = view_of(world)

    gently = {name: view.lets_go_gently(name) for name in ("gone", "withheld", "denied", "hidden", "a")}

    assert gently == {"gone": True, "withheld": True, "denied": False, "hidden": False, "a": False}  # D14, S4


def test_proven__nothing_was_acknowledged_or_nothing_is_served__is_absent(world: World) -> None:
    world.serve(CLUSTER, "p", "p2", proven="p1")
    view = view_of(world)

    proven = view.proven("p")

    assert not isinstance(proven, Absent)
    assert proven.version == "p1"
    assert (view.proven("a"), view.proven("nope")) == (ABSENT, ABSENT)


def test_body__wildcard_and_list_of_all__have_one_version_with_and_without_errors(world: World) -> None:
    view = view_of(world)
    all_names = frozenset(view.named)
    wild = view.body(subscription_to(wildcard=True, names=frozenset({"nope"}), named_once=True), (), URL)
    listed = view.body(subscription_to(wildcard=False, names=all_names | {"nope"}, named_once=True), (), URL)

    assert wild.version == listed.version == version_text(view.total + marks_of(wild.errors))
    assert wild.version not in {view.version, body_of(wild.named, ()).version}  # F7


@pytest.mark.parametrize(
    ("name", "covered", "explained"),
    [("a", True, True), ("b", False, False), (GLOB_NAME, True, True), ("xdstp://x/t/d/m", True, True)],
)
def test_subscription__names_and_members__are_covered_and_explained(name: str, covered: bool, explained: bool) -> None:
    named = subscription_to(wildcard=False, names=frozenset({"a", GLOB_NAME}), named_once=True)
    wild = subscription_to(wildcard=True, names=frozenset({"a", GLOB_NAME}), named_once=True)

    assert (named.covers(name), named.explains(name)) == (covered, explained)
    assert (wild.covers(name), wild.explains(name)) == (True, explained)  # F4


def test_ledger__later_response_is_answered__the_earlier_no_longer_delays_a_push() -> None:
    ledger = Ledger(Limits(silent_client_s=20))
    first, second = (Entry("v", (), (), push=True) for _ in range(2))
    assert ledger.push_due_s() == 0.0
    ledger.sent(first, "9", 100.0)
    assert ledger.push_due_s() == 100.0 + 20
    ledger.sent(second, "10", 101.0)

    settled = ledger.settle("10", acknowledged=True)

    assert settled is second
    assert (first.passed, second.passed) == (True, False)
    assert ledger.push_due_s() == 0.0  # B13
    assert not ledger.idle
    assert ledger.last_acknowledged
    ledger.settle("9", acknowledged=False)
    assert (ledger.idle, ledger.last_acknowledged) == (True, True)


def test_ledger__earlier_response_is_answered__the_later_still_delays_a_push() -> None:
    ledger = Ledger(Limits(silent_client_s=20))
    first, second = (Entry("v", (), (), push=True) for _ in range(2))
    ledger.sent(first, "1", 100.0)
    ledger.sent(second, "2", 101.0)

    ledger.settle("1", acknowledged=True)

    assert not second.passed
    assert ledger.push_due_s() == 101.0 + 20
    assert not ledger.last_acknowledged


def test_shared__one_more_than_it_keeps__forgets_the_oldest() -> None:
    kept: Shared[str, int] = Shared(2)

    for number, name in enumerate("abc"):
        kept.put(name, number)

    assert [kept.get(name) for name in "abc"] == [None, 1, 2]
