"""What follows from a verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.catalog.rollout_settings import OnFailure
from controlplane.rollouts.facts import Ask, Verdict
from controlplane.rollouts.moves import (
    AskMore,
    AskPerson,
    Begin,
    Consult,
    Move,
    Needs,
    Position,
    Promote,
    Stay,
    Step,
    TakeBack,
    move_of,
    with_dependants,
)
from controlplane.rollouts.values import Key, Outcome
from tests.unit.rollouts.facts_made import ENVOY, PAY, SHOP

ROUTE: Key = ("route", "r")
ALL = frozenset({PAY, SHOP, ROUTE})
ASK = Ask(ENVOY, PAY, frozenset())


@pytest.mark.parametrize(
    ("verdict", "step", "move"),
    [
        (Verdict(Outcome.PASS), 0, Step()),
        (Verdict(Outcome.PASS), 1, Promote()),
        (Verdict(Outcome.INCONCLUSIVE), 1, AskPerson()),
        (Verdict(None, consults=True), 0, Consult()),
        (Verdict(None), 0, Stay()),
        (Verdict(None, asks=(ASK,)), 0, AskMore((ASK,))),
        (Verdict(Outcome.FAIL, blamed=frozenset({PAY})), 0, TakeBack(frozenset({PAY}), over=False)),
        (Verdict(Outcome.FAIL), 0, TakeBack(ALL, over=True)),
        (Verdict(Outcome.FAIL, blamed=frozenset({PAY, ("secret", "s")})), 0, TakeBack(ALL, over=True)),
    ],
)
def test_move_of__a_verdict__leads_to_one_move(verdict: Verdict, step: int, move: Move) -> None:
    assert move_of(verdict, Position(step, 2, ALL)) == move


def test_move_of__the_first_step_may_go_out__begins() -> None:
    assert move_of(Verdict(Outcome.PASS), Position(0, 1, ALL, begun=False)) == Begin()


def test_move_of__failing_aborts__takes_everything_back() -> None:
    position = Position(0, 1, ALL, OnFailure.ABORT)

    assert move_of(Verdict(Outcome.FAIL, blamed=frozenset({PAY})), position) == TakeBack(ALL, over=True)


def test_with_dependants__a_new_name_goes__so_does_what_refers_to_it() -> None:
    needs = Needs(new=frozenset({PAY}), then={ROUTE: [PAY]})

    assert with_dependants(frozenset({PAY}), ALL, needs) == {PAY, ROUTE}


def test_with_dependants__a_name_goes_back_to_what_it_was__what_refers_to_it_stays() -> None:
    assert with_dependants(frozenset({PAY}), ALL, Needs(then={ROUTE: [PAY]})) == {PAY}


def test_with_dependants__what_goes_back_needs_a_name_that_is_deleted__that_stays() -> None:
    needs = Needs(deleted=frozenset({PAY}), now={ROUTE: [PAY]})

    assert with_dependants(frozenset({ROUTE}), ALL, needs) == {PAY, ROUTE}


NAMES = [("cluster", str(number)) for number in range(6)]
SOME = st.frozensets(st.sampled_from(NAMES))
LINKS = st.dictionaries(st.sampled_from(NAMES), SOME)


@given(SOME, SOME, SOME, LINKS, LINKS)
def test_with_dependants__anything__leaves_both_sides_closed(
    blamed: frozenset[Key],
    new: frozenset[Key],
    deleted: frozenset[Key],
    then: dict[Key, frozenset[Key]],
    now: dict[Key, frozenset[Key]],
) -> None:
    names, deleted = frozenset(NAMES), deleted - new
    then = {key: targets - deleted for key, targets in then.items() if key not in deleted}
    now = {key: targets - new for key, targets in now.items() if key not in new}

    back = with_dependants(blamed, names, Needs(new, deleted, then, now))

    exists = {key for key in names if (key not in new if key in back else key not in deleted)}
    refers = {key: (now if key in back else then).get(key, frozenset()) for key in exists}
    assert blamed <= back
    assert all(targets <= exists for targets in refers.values())
