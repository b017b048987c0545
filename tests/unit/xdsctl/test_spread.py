"""What xdsctl says of how a change spread, and of who took it and does not use it."""

from typing import Any

import pytest

from xdsctl.exits import JsonObject
from xdsctl.follow import summary
from xdsctl.spread import spread_lines

COUNTS = {"clients": 3, "acked": 3, "nacked": 0, "silent": 0}


def convergence(steps: tuple[tuple[float, int], ...], **more: Any) -> JsonObject:
    """As the API tells it, of three clients."""
    found = [{"second": second, "clients": clients} for second, clients in steps]
    told = {"known": True, "took": found[-1]["clients"] if found else 0, "of": 3, "p50_s": None, "p99_s": None}
    return {**told, "last_s": None, "waiting": 0, "steps": found, **more}


def change(**more: object) -> JsonObject:
    """A settled change."""
    told = {"id": "c", "state": "settled", "epoch": 2, "author": "dana", "message": "", "counts": COUNTS}
    return {**told, "held": [], "incidents": [], **more}


def test_spread_lines__some_took_it__say_when_and_draw_it() -> None:
    found = convergence(((0.0, 0), (0.4, 2), (12.25, 3)), p50_s=0.4, p99_s=12.25, last_s=12.25)

    assert spread_lines(found) == [
        "spread   3 of 3 clients took it: half after 0.4 s, 99 % after 12.25 s, the last of them after 12.25 s",
        "         0 s       0",
        f"       0.4 s       2  {'#' * 27}",
        f"     12.25 s       3  {'#' * 40}",
    ]


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (convergence((), known=False), "not known: it is not published"),
        (convergence((), of=0), "no connected client was to take it"),
        (convergence(((0.0, 0),)), "0 of 3 clients took it: half not yet, 99 % not yet, the last of them not yet"),
    ],
)
def test_spread_lines__nobody_took_it__one_line_says_so(found: JsonObject, says: str) -> None:
    (line,) = spread_lines(found)

    assert line.startswith(f"spread   {says}")


def test_spread_lines__many_moments__fit_a_screen_and_keep_both_ends() -> None:
    found = convergence(tuple((float(second), second) for second in range(300)), of=300)

    lines = spread_lines(found)[1:]

    assert len(lines) == 20
    assert (lines[0].split()[0], lines[-1].split()[0]) == ("0", "299")


def test_summary__with_how_it_spread__ends_with_that() -> None:
    lines = summary(change(convergence=convergence(((0.0, 0),)))).splitlines()

    assert lines[-1].startswith("spread   0 of 3 clients")


def test_summary__held_and_not_in_use__counts_them_and_says_of_what() -> None:
    sentence = "2 clients took listener 'web' and did not ask for route 'shop'."
    named = {"type": "listener", "name": "web", "clients": 2, "message": sentence}

    lines = summary(change(counts={**COUNTS, "not_in_use": 2}, not_in_use=[named])).splitlines()

    assert lines[3:] == [
        "clients  3: 3 acked, 0 nacked, 0 silent, 2 hold it and do not use all of it yet",
        f"not in use {sentence}",
    ]
    assert "not in use" not in summary(change(counts={**COUNTS, "not_in_use": 0}, not_in_use=[]))
