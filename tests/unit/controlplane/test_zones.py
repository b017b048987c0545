"""Time zones: what a clock there shows, and the hours that it skips or shows twice."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.common.zones import instant, instant_problem, zone_named
from controlplane.http.moments import clock_problem, moment_typed
from controlplane.listing.frames import SINCE, UNTIL, Frame

BERLIN = ZoneInfo("Europe/Berlin")
SOON = datetime(2037, 12, 31)  # noqa: DTZ001 - what a clock shows has no zone
NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
FRAME = Frame("things", "things", "things", (SINCE, UNTIL))


@pytest.mark.parametrize("name", ["", "Europe", "../../etc/passwd", "/etc/passwd", "a\0b", "E" * 65, "Berlyn", "%"])
def test_zone__name_that_there_is_not__is_none(name: str) -> None:
    assert zone_named(name) is None


@given(st.datetimes(SOON.replace(year=2000), SOON), st.sampled_from(["Europe/Berlin", "Asia/Kolkata"]))
def test_instant__any_clock__comes_back_or_is_said_why_not(clock: datetime, name: str) -> None:
    zone = ZoneInfo(name)

    found = instant(clock, zone)

    if found is not None:
        assert found.astimezone(zone).replace(tzinfo=None) == clock
        assert instant_problem(clock, zone) == ""
    else:
        assert instant_problem(clock, zone).startswith(f"On {clock:%Y-%m-%d} clocks in {name} are put ")


def test_typed__hour_that_is_skipped_or_comes_twice__is_turned_down_with_words() -> None:
    skipped, twice = "2026-03-29T02:30", "2026-10-25 02:30"

    assert moment_typed(skipped, NOW, BERLIN) is moment_typed(twice, NOW, BERLIN) is None
    assert clock_problem(skipped, BERLIN) == (
        "On 2026-03-29 clocks in Europe/Berlin are put forward and never show 02:30: give another time."
    )
    assert clock_problem(twice, BERLIN) == (
        "On 2026-10-25 clocks in Europe/Berlin are put back and show 02:30 twice: give a time outside that hour, or "
        "one with its offset from UTC, 2026-10-25T02:30+02:00 or 2026-10-25T02:30+01:00."
    )
    assert moment_typed("2026-10-25T02:30+01:00", NOW, BERLIN) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert clock_problem("yesterday", BERLIN) == clock_problem(twice, UTC) == ""


def test_list__times_in_a_zone__means_the_same_to_everybody_and_is_kept() -> None:
    asked = FRAME.read({"since": "2026-07-01 12:00", "times_in": "Europe/Berlin"}, NOW)

    assert asked.since == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert asked.query == "since=2026-07-01+12%3A00&times_in=Europe%2FBerlin"
    assert FRAME.kept(asked.query, NOW) == asked.query
    assert FRAME.read({"since": "2026-07-01 12:00"}, NOW).since == datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert FRAME.read({"times_in": "Europe/Berlin"}, NOW).query == ""


def test_list__zone_that_there_is_not_or_hour_that_comes_twice__is_said_and_lists_nothing() -> None:
    nowhere = FRAME.read({"since": "2h", "times_in": "Nowhere"}, NOW)
    twice = FRAME.read({"since": "2026-10-25 02:30", "times_in": "Europe/Berlin"}, NOW)

    assert nowhere.problems == {"times_in": "There is no time zone 'Nowhere'."}
    assert twice.problems["since"].startswith("'Since' cannot be '2026-10-25 02:30'. On 2026-10-25 clocks in Europe")
