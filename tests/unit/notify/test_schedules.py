"""When digests are due: on the clocks of their zone, whatever these do, and once in each hour or day."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from controlplane.catalog.json_reading import Reader
from controlplane.notify.schedules import DEFAULT, Every, Schedule, schedule_read, schedule_stored

BERLIN = Schedule(Every.DAY, 8, "Europe/Berlin")
NIGHT = Schedule(Every.DAY, 2, "Europe/Berlin")
HOURLY = Schedule(Every.HOUR, 0, "UTC")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        (BERLIN, "2026-11-28 06:59:59", "2026-11-28 07:00"),
        (BERLIN, "2026-11-28 07:00", "2026-11-29 07:00"),
        (BERLIN, "2026-07-01 05:00", "2026-07-01 06:00"),
        # The day begins earlier there than in UTC.
        (Schedule(Every.DAY, 1, "Pacific/Auckland"), "2026-06-30 23:00", "2026-07-01 13:00"),
        # On 2027-03-28 there is no 02:00 in Berlin, and on 2026-10-25 there are two.
        (NIGHT, "2027-03-28 00:00", "2027-03-28 01:00"),
        (NIGHT, "2026-10-25 00:00", "2026-10-26 01:00"),
        (NIGHT, "2026-10-24 23:00", "2026-10-25 00:00"),
        (HOURLY, "2026-11-28 06:00", "2026-11-28 07:00"),
        (HOURLY, "2026-11-28 06:59:59.999999", "2026-11-28 07:00"),
        # Full hours there are half ones here.
        (Schedule(Every.HOUR, 0, "Asia/Kolkata"), "2026-11-28 06:10", "2026-11-28 06:30"),
    ],
)
def test_due__after_a_moment__is_the_next_time_on_the_clocks_of_the_zone(
    schedule: Schedule, after: str, due: str
) -> None:
    assert schedule.due_after(at(after)) == at(due)


@pytest.mark.parametrize("schedule", [BERLIN, NIGHT, HOURLY])
def test_due__one_after_the_other_for_a_year__come_once_in_each_period(schedule: Schedule) -> None:
    moment, ends = at("2026-06-01 00:30"), at("2027-06-01 00:30")
    found = []

    while (moment := schedule.due_after(moment)) < ends:
        found.append(moment)

    apart = {later - earlier for earlier, later in pairwise(found)}
    if schedule is HOURLY:
        assert apart == {timedelta(hours=1)}
    else:
        assert len(found) == 365
        assert apart == {timedelta(hours=hours) for hours in (23, 24, 25)}


@pytest.mark.parametrize("given", [{}, {"every": "hour"}, {"hour": 23, "zone": "Europe/Berlin"}])
def test_schedule__as_json__is_read_as_the_same(given: dict[str, object]) -> None:
    reader = Reader()

    schedule = schedule_read(reader.object(given, "/digest"))

    assert reader.findings == []
    assert schedule == schedule_stored(schedule.as_json())
    assert schedule.zone == given.get("zone", DEFAULT.zone)


def test_schedule__wrong_in_all_parts__says_so_of_each() -> None:
    reader = Reader()

    schedule_read(reader.object({"every": "year", "hour": 24, "zone": "../../etc/passwd", "at": 1}, "/digest"))

    assert {each.pointer for each in reader.findings} == {"/digest/at", "/digest/every", "/digest/hour", "/digest/zone"}


def test_words__of_a_moment__are_of_the_zone() -> None:
    assert BERLIN.local_words(at("2026-11-28 07:00")) == "2026-11-28 08:00 Europe/Berlin"
    assert (BERLIN.words, HOURLY.words) == ("every day at 08:00 Europe/Berlin", "every hour")
