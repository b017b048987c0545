"""What xdsctl says of a rollout and of a change that is on its way, and with which exit status it ends."""

import pytest

from xdsctl.commands.rollouts import outcome_of, summary
from xdsctl.exits import Exit, JsonObject
from xdsctl.follow import Tolerance, _decided, _outcome
from xdsctl.follow import summary as change_summary

ROLLOUT: JsonObject = {
    "id": "r",
    "state": "waiting",
    "step": 2,
    "steps": [
        {"number": 1, "who": "1 client of each kind", "clients": 4, "bake": "0s", "approve": False},
        {"number": 2, "who": "10 % of the clients", "clients": 21, "bake": "5m", "approve": True},
    ],
    "changes": ["c"],
    "resources": [
        {"type": "cluster", "name": "pay", "from": 1, "to": 2},
        {"type": "route", "name": "edge", "from": None, "to": 1},
        {"type": "secret", "name": "old", "from": 3, "to": None},
    ],
    "cohort": 21,
    "control": 193,
    "exposed": 20,
    "acked": 19,
    "refused": 1,
    "silent": 0,
    "verdict": "inconclusive",
    "reasons": ["One client of three refuses cluster 'pay'."],
    "reverted": [],
    "uncovered": ["grpc-go 1.60"],
    "waits_for": "a person's word",
    "until": None,
    "started_at": "2026-07-01T12:00:00Z",
    "ended_at": None,
}
REVERTED: JsonObject = {"type": "cluster", "name": "pay", "incident": "i"}
COUNTS = {"clients": 1, "acked": 0, "nacked": 1, "silent": 0}
INCIDENT: JsonObject = {
    "id": "i",
    "cause": "nack",
    "type": "cluster",
    "name": "pay",
    "message": "bad path",
    "clients": {"nacked": 2, "sent": 2},
}
CHANGE: JsonObject = {
    "id": "c",
    "state": "candidate",
    "epoch": None,
    "author": "dana",
    "message": "",
    "counts": COUNTS,
    "held": [],
    "incidents": [INCIDENT],
    "reverted": [],
    "rollout": "r",
    "status": "candidate",
}


def test_summary__of_a_rollout__says_where_it_is_who_has_it_and_what_it_waits_for() -> None:
    lines = summary(ROLLOUT).splitlines()

    assert lines[2:] == [
        "step      1 1 client of each kind, 4 clients",
        "step    > 2 10 % of the clients, 21 clients, then a person's word",
        "clients   21 on the candidate side, 193 on the stable side",
        "answers   20 ask for it: 19 took it, 1 refused, 0 silent",
        "verdict   inconclusive",
        "          One client of three refuses cluster 'pay'.",
        "waits for a person's word",
        "uncovered grpc-go 1.60: no client of this kind has it",
        "resource  cluster/pay: r1 -> r2",
        "resource  route/edge: new -> r1",
        "resource  secret/old: r3 -> deleted",
        "change    c",
    ]


@pytest.mark.parametrize(
    ("state", "reverted", "status", "said"),
    [
        ("done", [], Exit.DONE, "Every client may have it now."),
        ("done", [REVERTED], Exit.NO, "cluster 'pay' was taken back; the rest reached the fleet. "),
        ("reverted", [REVERTED, REVERTED], Exit.NO, "cluster 'pay', cluster 'pay' were taken back. "),
        ("aborted", [], Exit.NO, "Nothing is left of it. "),
        ("waiting", [], Exit.UNDECIDED, "Time ran out: waiting, step 2 of 2: 21 clients"),
        ("paused", [], Exit.UNDECIDED, "Time ran out: paused, step 2 of 2"),
    ],
)
def test_outcome__of_a_rollout__is_done_only_where_everything_reached_the_fleet(
    state: str, reverted: list[JsonObject], status: Exit, said: str
) -> None:
    outcome = outcome_of({**ROLLOUT, "state": state, "reverted": reverted})

    assert outcome.exit_status is status
    assert outcome.text.startswith(said)


def test_decided__refused_by_one_of_the_cohort__is_not_for_others_are_asked() -> None:
    tolerance = Tolerance.of("nack", "1s")

    assert not _decided(CHANGE, tolerance)
    assert _decided({**CHANGE, "state": "published"}, tolerance)
    assert _decided({**CHANGE, "state": "stopped"}, tolerance)
    assert _outcome(CHANGE, tolerance).exit_status is Exit.UNDECIDED


def test_outcome__of_a_stopped_change__is_no_whatever_is_tolerated_and_quotes_the_client() -> None:
    outcome = _outcome({**CHANGE, "state": "stopped", "reverted": [REVERTED]}, Tolerance.of("silent", "1s"))

    assert outcome.exit_status is Exit.NO
    assert outcome.text == (
        "Its rollout took it back before the fleet had it: cluster 'pay'. "
        "cluster 'pay' is refused by 2 of 2 clients: bad path"
    )


def test_summary__of_a_change__names_its_rollout_and_what_that_took_back() -> None:
    lines = change_summary({**CHANGE, "state": "stopped", "status": "stopped", "reverted": [REVERTED]}).splitlines()

    assert "rollout  r" in lines
    assert "reverted cluster/pay" in lines
