"""What clients' answers mean to a rehearsal, and whom one of each kind means. Pure."""

import pytest

from controlplane.rollouts.cohort import Member
from controlplane.rollouts.facts import Answer
from controlplane.rollouts.rehearsal import (
    Listener,
    RehearsalVerdict,
    Rehearsed,
    ResultState,
    Said,
    of_each_kind,
    report_of,
)

PAY, SHOP, ROUTE = ("cluster", "pay"), ("cluster", "shop"), ("route", "main")


def heard(answers: dict[tuple[str, str], Answer], *, node: str = "n", connected: bool = True) -> Listener:
    said = {key: Said(answer, "words" if answer is Answer.REFUSED else "") for key, answer in answers.items()}
    return Listener(f"id-{node}", node, "envoy 1.40", said, connected)


@pytest.mark.parametrize(
    ("answers", "verdict", "states", "settled"),
    [
        ({PAY: Answer.TAKEN, SHOP: Answer.TAKEN}, "taken", ["taken", "taken"], True),
        ({PAY: Answer.TAKEN}, "taken", ["taken", "not_asked"], True),
        ({PAY: Answer.TAKEN, SHOP: Answer.REFUSED}, "refused", ["taken", "refused"], True),
        ({PAY: Answer.SENT, SHOP: Answer.REFUSED}, "refused", ["silent", "refused"], False),
        ({PAY: Answer.TAKEN, SHOP: Answer.SENT}, "inconclusive", ["taken", "silent"], False),
        ({PAY: Answer.TAKEN, SHOP: Answer.UNSENT}, "inconclusive", ["taken", "silent"], False),
        ({PAY: Answer.TAKEN, SHOP: Answer.ERROR}, "inconclusive", ["taken", "not_asked"], True),
        ({PAY: Answer.TAKEN, SHOP: Answer.UNSURE}, "refused", ["taken", "refused"], False),
        ({PAY: Answer.REFUSED, SHOP: Answer.UNSURE}, "refused", ["refused", "silent"], False),
        ({}, "inconclusive", ["not_asked", "not_asked"], True),
    ],
    ids=str,
)
def test_report__answers_of_one_client__mean(
    answers: dict[tuple[str, str], Answer], verdict: str, states: list[str], settled: bool
) -> None:
    report = report_of([Rehearsed(PAY), Rehearsed(SHOP)], [heard(answers)])

    assert report.verdict is RehearsalVerdict(verdict)
    assert [each.state.value for each in report.results] == states
    assert report.settled is settled


def test_report__one_of_two_clients_asks_for_nothing__is_inconclusive() -> None:
    report = report_of([Rehearsed(PAY)], [heard({PAY: Answer.TAKEN}), heard({}, node="other")])

    assert (report.verdict, report.settled) == (RehearsalVerdict.INCONCLUSIVE, True)


def test_report__one_of_two_refuses__is_refused() -> None:
    """Nobody is asked in its place, so one word counts."""
    report = report_of([Rehearsed(PAY)], [heard({PAY: Answer.TAKEN}), heard({PAY: Answer.REFUSED}, node="other")])

    assert report.verdict is RehearsalVerdict.REFUSED
    assert report.results[1].message == "words"


def test_report__client_is_gone__is_silent_but_for_what_it_said() -> None:
    gone = heard({PAY: Answer.TAKEN, SHOP: Answer.SENT}, connected=False)

    report = report_of([Rehearsed(PAY), Rehearsed(SHOP), Rehearsed(ROUTE)], [gone])

    assert [each.state for each in report.results] == [ResultState.TAKEN, ResultState.SILENT, ResultState.SILENT]
    assert (report.verdict, report.settled) == (RehearsalVerdict.INCONCLUSIVE, True)


def test_report__what_it_took_refers_to_what_it_does_not_ask_for__may_ask_yet() -> None:
    """A client that took a listener asks for its route in a moment, or never."""
    names = [Rehearsed(PAY, needs=(ROUTE,)), Rehearsed(ROUTE)]

    waiting = report_of(names, [heard({PAY: Answer.TAKEN})])
    refused = report_of(names, [heard({PAY: Answer.REFUSED})])

    assert (waiting.settled, waiting.quiet) == (False, True)
    assert refused.settled


def test_report__nobody_can_be_sent_it__says_why_and_waits_for_nothing() -> None:
    report = report_of([Rehearsed(PAY, held="because.")], [heard({PAY: Answer.ERROR})])

    [result] = report.results
    assert (result.state, result.message) == (ResultState.NOT_ASKED, "It cannot be sent to anybody: because.")
    assert (report.verdict, report.settled) == (RehearsalVerdict.INCONCLUSIVE, True)


def test_report__name_that_differs_and_was_not_named__is_told_where_it_is_asked_for() -> None:
    names = [Rehearsed(PAY), Rehearsed(ROUTE, own=False)]

    asked = report_of(names, [heard({PAY: Answer.TAKEN, ROUTE: Answer.TAKEN})])
    other = report_of(names, [heard({PAY: Answer.TAKEN})])

    assert [each.name for each in asked.results] == ["pay", "main"]
    assert [each.name for each in other.results] == ["pay"]


def member(node: str, kind: str, *, asks: int = 0, identity: str = "") -> Member:
    names = frozenset(("cluster", str(number)) for number in range(asks))
    return Member(f"id-{node}", node, f"digest-{node}", identity, kind, names)


def test_of_each_kind__many__takes_who_asks_for_most_and_other_identities_first() -> None:
    fleet = [
        member("a", "envoy", asks=3, identity="one"),
        member("b", "envoy", asks=2, identity="one"),
        member("c", "envoy", asks=1, identity="two"),
        member("d", "go"),
    ]

    assert [each.node_id for each in of_each_kind(fleet, 1)] == ["a", "d"]
    assert [each.node_id for each in of_each_kind(fleet, 2)] == ["a", "c", "d"]
    assert [each.node_id for each in of_each_kind(list(reversed(fleet)), 2)] == ["a", "c", "d"]
    assert of_each_kind([], 1) == ()
