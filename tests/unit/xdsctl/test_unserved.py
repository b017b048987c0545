"""What xdsctl says of a change that ADS processes do not serve."""

import pytest

from xdsctl.exits import Exit, JsonObject
from xdsctl.follow import Tolerance, _outcome, summary

COUNTS = {"clients": 0, "acked": 0, "nacked": 0, "silent": 0}
UNSERVED = [
    {"replica": "ads-1/7", "epoch": 1, "reason": "snapshot 2 of 'default' is refused (its signature does not hold)"},
    {"replica": "ads-2/7", "epoch": 0, "reason": "it has not loaded snapshot 2"},
]
WHY = "ADS ads-1/7 does not serve it: snapshot 2 of 'default' is refused (its signature does not hold)"


def change(**more: object) -> JsonObject:
    """A published change."""
    told = {"id": "c", "state": "published", "epoch": 2, "author": "dana", "message": "", "counts": COUNTS}
    return {**told, "held": [], "incidents": [], **more}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "published"),  # of a server of the version before
        ({"unserved": []}, "published"),
        ({"unserved": UNSERVED[:1]}, f"published and {WHY}"),
        ({"unserved": UNSERVED}, f"published and {WHY} (and 1 more)"),
    ],
)
def test_outcome__time_runs_out__says_who_does_not_serve_it(more: dict[str, object], said: str) -> None:
    outcome = _outcome(change(**more), Tolerance.of("nack", "1s"))

    assert outcome.exit_status is Exit.UNDECIDED
    assert outcome.text == f"Time ran out while the change is {said}; it goes on without this command."


def test_summary__somebody_does_not_serve_it__has_a_line_for_each() -> None:
    lines = summary(change(unserved=UNSERVED)).splitlines()

    assert lines[4:] == [f"unserved ADS {each['replica']}: {each['reason']}" for each in UNSERVED]
