"""From rows to steps: what is added up, what is averaged, and that a gap stays a gap."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.history.series import (
    MAX_POINTS,
    Kept,
    Looks,
    Series,
    Sum,
    Window,
    WindowInvalid,
    averaged,
    floor,
    most,
    summed,
    window_of,
)
from controlplane.history.values import REST

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEPT = Kept(timedelta(hours=24), timedelta(days=14))
FIVE = Window(NOON, NOON + 5 * MINUTE, 60)


def after(minutes: float) -> datetime:
    return NOON + minutes * MINUTE


def test_summed__rows_of_one_step__are_added_and_a_known_step_without_rows_is_zero() -> None:
    rows = [Sum(after(0), "cluster", 2), Sum(after(0.5), "cluster", 3), Sum(after(3), "listener", 1)]

    found = summed(FIVE, rows, known=[after(1)])

    assert found == {"cluster": (5, 0, None, 0, None), "listener": (0, 0, None, 1, None)}


def test_summed__no_row_at_all__tells_nothing_happened_from_nobody_knows() -> None:
    assert summed(FIVE, [], known=[after(0), after(4)]) == {REST: (0, None, None, None, 0)}


def test_summed__rows_before_and_behind_the_window__count_nowhere() -> None:
    rows = [Sum(after(-0.1), "cluster", 1), Sum(after(5), "cluster", 1)]

    assert summed(FIVE, rows, known=[after(-1), after(5)]) == {REST: (None,) * 5}


def test_averaged__long_rows_and_a_minute_without_a_look__average_the_looks_and_leave_a_gap() -> None:
    ten = Window(NOON, NOON + 30 * MINUTE, 600)
    rows = [Looks(after(0), 8, (40, 4)), Looks(after(5), 1, (14, 0)), Looks(after(20), 1, (7, 0))]

    found = averaged(ten, rows, ("acked", "nacked"))

    assert found == {"acked": (6.0, None, 7.0), "nacked": (0.4, None, 0.0)}


def test_most__more_series_than_room__the_smallest_are_one_and_lose_nothing() -> None:
    series = [Series({"kind": str(each)}, (each, None, 1)) for each in range(1, 6)]

    found = most([Series({"kind": REST}, (7, None, None)), *series], room=2)

    assert [each.label for each in found] == ["5", "4", REST]
    assert found[-1].values == (1 + 2 + 3 + 7, None, 3)


@pytest.mark.parametrize("length", [timedelta(minutes=1), timedelta(hours=3), timedelta(hours=24), timedelta(days=14)])
def test_window__of_any_length_that_is_kept__has_a_readable_number_of_whole_steps_that_are_over(
    length: timedelta,
) -> None:
    now = NOON + timedelta(seconds=59)

    window = window_of(now, now - length, None, 0, KEPT)

    assert 1 <= window.points <= 360 + 1
    assert window.until <= now
    assert window.since == floor(window.since, window.step_s)
    assert window.starts[-1] + timedelta(seconds=window.step_s) == window.until


@pytest.mark.parametrize(
    ("since", "until", "step_s", "field", "says"),
    [
        (NOON, None, 60, "from", "earlier than the end"),
        (NOON - timedelta(hours=1), NOON - timedelta(hours=2), 60, "from", "earlier than the end"),
        (NOON - timedelta(days=15), None, 600, "from", "longer ago than is kept: 14 days"),
        (NOON - timedelta(days=2), None, 60, "step", "must be a multiple of 600 s"),
        (NOON - timedelta(hours=2), None, 90, "step", "must be a multiple of 60 s"),
        (NOON - timedelta(days=13), None, 600, "step", f"makes 1872 points; at most {MAX_POINTS}"),
        (NOON - timedelta(minutes=30), None, 3_600, "", ""),
        (NOON - timedelta(seconds=20), NOON - timedelta(seconds=10), 60, "from", "leaves no whole step"),
    ],
)
def test_window__that_cannot_be_drawn__says_which_part_of_it_is_wrong(
    since: datetime, until: datetime | None, step_s: int, field: str, says: str
) -> None:
    if not field:
        assert window_of(NOON, since, until, step_s, KEPT).points == 1
        return

    with pytest.raises(WindowInvalid, match=says) as refused:
        window_of(NOON, since, until, step_s, KEPT)

    assert refused.value.field == field


def test_window__a_day_ago_to_the_minute__is_still_told_by_the_minute() -> None:
    now = NOON + timedelta(seconds=30)

    assert window_of(now, now - timedelta(hours=24), None, 60, KEPT).points == 24 * 60
