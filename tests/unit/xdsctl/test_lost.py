"""What xdsctl says of what clients lost by a change."""

import pytest

from xdsctl.commands.incidents import _description
from xdsctl.exits import Exit, JsonObject
from xdsctl.follow import Tolerance, _outcome, incident_sentence, summary

LOSS = {
    "clients": 3,
    "connected": 5,
    "kinds": {"envoy 1.40": 2, "grpc-go 1.70": 1},
    "names": [{"type": "cluster", "name": "pay", "clients": 3}, {"type": "cluster", "name": "other", "clients": 1}],
    "truncated": True,
    "doubtful": 0,
    "who": [{"client": "c1", "node_id": "node-1", "kind": "envoy 1.40"}],
}
INCIDENT: JsonObject = {
    "id": "i",
    "cause": "loss",
    "state": "open",
    "type": "cluster",
    "name": "pay",
    "message": "3 of 5 connected clients lost 2 names by change 01234567 of dana.",
    "clients": {"nacked": 3, "sent": 5},
    "change": "0123456789",
    "author": "dana",
    "first_at": "2026-07-01T12:00:00Z",
    "loss": LOSS,
}
# What `incidents show` reads of a refusal beside these.
SHOWN: JsonObject = {
    **dict.fromkeys(("used_by", "suspects", "refusing", "samples"), ()),
    "quarantined": False,
    "confidence": "named",
    "revision": 12,
    "last_at": "2026-07-01T12:00:00Z",
}
NACK: JsonObject = {**INCIDENT, "id": "n", "cause": "nack", "message": "no", "loss": None}


def change(**more: object) -> JsonObject:
    """A settled change."""
    counts = {"clients": 3, "acked": 3, "nacked": 0, "silent": 0}
    told = {"id": "c", "state": "settled", "epoch": 2, "author": "dana", "message": "", "counts": counts}
    return {**told, "held": [], "incidents": [], **more}


def test_incident_sentence__of_a_loss__is_parleys_and_says_nothing_of_refusals() -> None:
    assert incident_sentence(INCIDENT) == INCIDENT["message"]
    assert incident_sentence(NACK) == "cluster 'pay' is refused by 3 of 5 clients: no"
    before = {key: value for key, value in NACK.items() if key != "cause"}  # of a server of the version before
    assert incident_sentence(before) == incident_sentence(NACK)


def test_summary__clients_lost_something__says_who_and_what() -> None:
    lines = summary(change(loss=LOSS, incidents=[INCIDENT])).splitlines()

    assert lines[4:] == [
        "lost     3 of 5 connected clients: 2 envoy 1.40, 1 grpc-go 1.70",
        "lost     cluster 'pay' by 3",
        "lost     cluster 'other' by 1",
        "lost     and more names",
        f"incident i {INCIDENT['message']}",
    ]
    assert not [line for line in summary(change(loss=None)).splitlines() if line.startswith("lost")]


@pytest.mark.parametrize(("incidents", "exit_status"), [([INCIDENT], Exit.DONE), ([INCIDENT, NACK], Exit.NO)])
def test_outcome__with_fail_on_nack__a_loss_is_no_refusal(incidents: list[JsonObject], exit_status: Exit) -> None:
    outcome = _outcome(change(incidents=incidents), Tolerance.of("nack", "1s"))

    assert outcome.exit_status is exit_status
    assert "lost" not in outcome.text


def test_description__of_a_loss__lists_what_and_who() -> None:
    lines = _description(INCIDENT).splitlines()

    assert lines[:3] == [
        "Incident:     i  open",
        f"What:         {INCIDENT['message']}",
        "Change:       0123456789 by dana",
    ]
    assert lines[4:] == [
        "Lost:",
        "  3 of 5 connected clients: 2 envoy 1.40, 1 grpc-go 1.70",
        "  cluster 'pay' by 3",
        "  cluster 'other' by 1",
        "  and more names",
        "Clients:",
        "  node-1  envoy 1.40",
        "  and 2 more",
    ]


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        (None, "Verdict:      -"),
        (
            {"outcome": "fail", "reason": "2 of 2 clients refused it", "suggested": True},
            "Verdict:      2 of 2 clients refused it; quarantine is suggested",
        ),
        (
            {"outcome": "inconclusive", "reason": "10 clients acknowledged r12; 2 refuse it", "suggested": True},
            "Verdict:      10 clients acknowledged r12; 2 refuse it",
        ),
    ],
)
def test_description__of_a_refusal__says_what_that_means_for_the_fleet(verdict: JsonObject | None, line: str) -> None:
    assert line in _description({**NACK, **SHOWN, "verdict": verdict}).splitlines()
