"""What pictures say in words, and that their tables hold every number that is drawn."""

from datetime import UTC, datetime, timedelta

from controlplane.console.charts import convergence_chart, counts_picture, fleet_picture
from controlplane.history.convergence import convergence
from controlplane.history.series import Series, Window

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
FOUR = Window(NOON, NOON + timedelta(minutes=4), 60)


def test_fleet__with_refusals_and_a_gap__says_how_it_stands_the_worst_and_what_is_not_known() -> None:
    acked, nacked = (8.0, None, 5.0, 7.5), (0.0, None, 3.0, 0.0)
    series = [Series({"state": "nacked"}, nacked), Series({"state": "acked"}, acked)]

    chart = fleet_picture([*series, Series({"state": "sent"}, (0.0, None, 0.0, 0.0))], FOUR)

    assert chart.says == (
        "At 12:03: 7.5 acked.",
        "Most that refused something: 3 at 12:02.",
        "Nothing is known of 1 min of this time: there the lines have a gap.",
    )
    assert [(line.label, line.tone) for line in chart.lines] == [("nacked", "bad"), ("acked", "good")]
    assert [(row.label, row.cells) for row in chart.rows] == [
        ("12:03", ("0", "7.5")), ("12:02", ("3", "5")), ("12:01", ("?", "?")), ("12:00", ("0", "8"))
    ]  # fmt: skip
    assert chart.rows[-1].x == NOON.timestamp()


def test_fleet__never_counted_and_counted_without_anybody__are_two_sentences() -> None:
    unknown = fleet_picture([Series({"state": "acked"}, (None,) * 4)], FOUR)
    empty = fleet_picture([Series({"state": "acked"}, (0.0,) * 4)], FOUR)

    assert unknown.says == ("Clients were not counted from 12:00 to 12:04 UTC.",)
    assert empty.says == ("No client is known from 12:00 to 12:04 UTC.",)
    assert unknown.rows == empty.rows == ()


def test_counts__of_two_types__say_the_sum_the_peak_and_the_last() -> None:
    series = [Series({"type": "cluster"}, (1, 5, 0, 0)), Series({"type": "listener"}, (0, 2, 1, 0))]

    chart = counts_picture("nacks", "NACKs", "NACK", series, FOUR)

    assert chart.says == ("9 NACKs from 12:00 to 12:04 UTC.", "Most at 12:01: 7.", "Last at 12:02.")
    assert [line.tone for line in chart.lines] == ["line-1", "line-2"]


def test_counts__of_nothing__say_whether_that_is_known() -> None:
    none = counts_picture("nacks", "NACKs", "NACK", [Series({"type": "other"}, (0, None, 0, 0))], FOUR)
    unknown = counts_picture("nacks", "NACKs", "NACK", [Series({"type": "other"}, (None,) * 4)], FOUR)

    assert none.says[0] == "No NACK from 12:00 to 12:04 UTC."
    assert none.says[1].startswith("Nothing is known of 1 min")
    assert unknown.says == ("Nothing is known of the time from 12:00 to 12:04 UTC.",)


def test_counts__of_more_lines_than_eyes_tell_apart__draw_the_rest_as_one_and_lose_no_number() -> None:
    series = [Series({"kind": f"envoy 1.{each}"}, (each, each, each, each)) for each in range(1, 11)]

    chart = counts_picture("kinds", "NACKs", "NACK", series, FOUR)

    assert [line.label for line in chart.lines] == [*(f"envoy 1.{each}" for each in (10, 9, 8, 7, 6)), "other"]
    assert len({line.tone for line in chart.lines}) == 6
    assert chart.rows[0].cells[-1] == "15"


def test_convergence__of_a_change_that_some_did_not_take__says_when_and_how_many() -> None:
    chart = convergence_chart(convergence([(0.5, 6), (2.25, 3)], of=10))

    assert chart.says == (
        "9 of 10 clients took it: half after 0.5 s, 99 % not yet, the last after 2.25 s.",
        "1 has not.",
    )
    assert [(row.x, row.cells) for row in chart.rows] == [(2.25, ("9",)), (0.5, ("6",)), (0.0, ("0",))]
    assert not chart.clock


def test_convergence__nobody_took_it__says_so() -> None:
    assert convergence_chart(convergence([], of=4)).says == ("None of 4 clients has taken it.",)
