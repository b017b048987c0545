"""When a freeze holds, and what is wrong with settings of freezes. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.accounts.principal import Role
from controlplane.catalog.freezes import (
    Freeze,
    Weekday,
    freezes_from_json,
    frozen_at,
)
from controlplane.catalog.review import DEFAULT_REVIEW, review_from_json
from controlplane.common.errors import InputInvalid


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def once(begins: str = "2026-12-20T00:00:00Z", ends: str = "2027-01-04T08:00:00Z", **more: Any) -> dict[str, Any]:
    return {"from": begins, "until": ends, "reason": "the year's end", **more}


def weekly(*days: str, begins: str = "15:00", ends: str = "24:00", zone: str = "UTC", **more: Any) -> dict[str, Any]:
    hours = {"days": list(days), "from": begins, "until": ends, "zone": zone}
    return {"reason": "no deploys", "weekly": hours, **more}


def freeze(data: dict[str, Any]) -> Freeze:
    (found,) = freezes_from_json([data])
    return found


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        ("2026-12-19T23:59:59.999Z", False),
        ("2026-12-20T00:00:00Z", True),
        ("2027-01-04T07:59:59Z", True),
        ("2027-01-04T09:00:00+01:00", False),  # which is when it ends
    ],
)
def test_once__holds_from_its_first_moment_until_before_its_last(now: str, holds: bool) -> None:
    assert freeze(once()).end_at(at(now)) == (at("2027-01-04T08:00:00Z") if holds else None)


@pytest.mark.parametrize(
    ("hours", "now", "ends"),
    [
        # 2026-11-27 is a friday.
        (weekly("friday"), "2026-11-27T14:59:00Z", None),
        (weekly("friday"), "2026-11-27T15:00:00Z", "2026-11-28T00:00:00Z"),
        (weekly("friday"), "2026-11-28T00:00:00Z", None),
        # Over midnight: what began yesterday goes on.
        (weekly("friday", begins="22:00", ends="06:00"), "2026-11-28T05:59:00Z", "2026-11-28T06:00:00Z"),
        (weekly("friday", begins="22:00", ends="06:00"), "2026-11-27T05:59:00Z", None),
        # The same time: a whole day.
        (weekly("friday", begins="09:00", ends="09:00"), "2026-11-28T08:59:00Z", "2026-11-28T09:00:00Z"),
        # Where it is, not where the server is: 15:00 in Berlin is 14:00 UTC in winter and 13:00 in summer.
        (weekly("friday", zone="Europe/Berlin"), "2026-11-27T14:00:00Z", "2026-11-27T23:00:00Z"),
        (weekly("friday", zone="Europe/Berlin"), "2026-07-03T13:00:00Z", "2026-07-03T22:00:00Z"),
        (weekly("friday", zone="Pacific/Auckland"), "2026-11-27T03:00:00Z", "2026-11-27T11:00:00Z"),
        # Night in which an hour comes twice: it lasts nine hours, and in the one in which an hour is skipped seven.
        (
            weekly("saturday", begins="22:00", ends="06:00", zone="Europe/Berlin"),
            "2026-10-25T04:30:00Z",
            "2026-10-25T05:00:00Z",
        ),
        (
            weekly("saturday", begins="22:00", ends="06:00", zone="Europe/Berlin"),
            "2026-03-29T03:30:00Z",
            "2026-03-29T04:00:00Z",
        ),
    ],
)
def test_weekly__holds_in_its_hours_of_its_zone(hours: dict[str, Any], now: str, ends: str | None) -> None:
    assert freeze(hours).end_at(at(now)) == (at(ends) if ends is not None else None)


def test_weekly__between_two_times__holds_in_these_only_and_ends_with_the_last() -> None:
    found = freeze(
        {**weekly("friday", begins="00:00"), "from": "2026-11-27T10:00:00Z", "until": "2026-12-04T12:00:00Z"}
    )

    assert found.end_at(at("2026-11-27T09:59:59Z")) is None
    assert found.end_at(at("2026-11-27T10:00:00Z")) == at("2026-11-28T00:00:00Z")
    assert found.end_at(at("2026-12-04T11:00:00Z")) == at("2026-12-04T12:00:00Z")
    assert found.end_at(at("2026-12-11T11:00:00Z")) is None


def test_frozen__of_several__is_the_one_that_ends_last() -> None:
    short, long = once(ends="2026-12-24T00:00:00Z"), once(reason="inventory")

    found = frozen_at(freezes_from_json([short, long]), at("2026-12-21T00:00:00Z"))

    assert found is not None
    assert (found.freeze.reason, found.until) == ("inventory", at("2027-01-04T08:00:00Z"))
    assert found.words == "until 2027-01-04 08:00 UTC: inventory"
    assert frozen_at(freezes_from_json([short, long]), at("2026-12-01T00:00:00Z")) is None


@given(
    days=st.sets(st.sampled_from(list(Weekday)), min_size=1),
    begins=st.integers(0, 1439),
    ends=st.integers(1, 1440),
    now=st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2035, 1, 1)),  # noqa: DTZ001 - UTC is added
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
)
def test_weekly__whatever_the_hours__holds_at_once_before_its_end_and_no_more_at_it(
    days: set[Weekday], begins: int, ends: int, now: datetime, zone: str
) -> None:
    spelled = [f"{minute // 60:02}:{minute % 60:02}" for minute in (begins, ends)]
    data = weekly(*days, begins=spelled[0], ends=spelled[1], zone=zone)
    found = freeze(data)

    assert freezes_from_json([found.as_json()]) == (found,)
    end = found.end_at(now.replace(tzinfo=UTC))
    if end is not None:
        # Never longer than a day, and the hour that a clock repeats.
        assert timedelta(0) < end - now.replace(tzinfo=UTC) <= timedelta(hours=25)
        assert found.end_at(end - timedelta(microseconds=1)) == end


@pytest.mark.parametrize(
    ("data", "pointers"),
    [
        ({}, ["/freezes"]),
        ([3], ["/freezes/0"]),
        ([{}], ["/freezes/0/reason", "/freezes/0/from", "/freezes/0/until"]),
        ([once(reason=" ")], ["/freezes/0/reason"]),
        ([once(reason="a\nb")], ["/freezes/0/reason"]),
        ([once(reason="x" * 201)], ["/freezes/0/reason"]),
        ([once(begins="tomorrow")], ["/freezes/0/from"]),
        ([once(begins="2026-12-20T00:00:00")], ["/freezes/0/from"]),
        ([once(begins="9999-12-31T23:59:59-14:00")], ["/freezes/0/from"]),
        ([once(begins="2027-01-04T08:00:00Z")], ["/freezes/0/until"]),
        ([once(untill="2027")], ["/freezes/0/untill"]),
        ([weekly()], ["/freezes/0/weekly/days"]),
        ([weekly("funday")], ["/freezes/0/weekly/days"]),
        ([weekly("friday", begins="24:00")], ["/freezes/0/weekly/from"]),
        ([weekly("friday", begins="9 am", ends="25:00")], ["/freezes/0/weekly/from", "/freezes/0/weekly/until"]),
        ([weekly("friday", zone="Europe/Atlantis")], ["/freezes/0/weekly/zone"]),
        ([weekly("friday", zone="../../etc/passwd")], ["/freezes/0/weekly/zone"]),
        ([weekly("friday", zone="")], ["/freezes/0/weekly/zone"]),
        ([once()] * 51, ["/freezes"]),
    ],
)
def test_settings__that_are_wrong__say_all_of_it_and_where(data: object, pointers: list[str]) -> None:
    with pytest.raises(InputInvalid) as refused:
        freezes_from_json(data)

    assert sorted(each.pointer for each in refused.value.findings) == sorted(pointers)


def test_review__default_and_what_it_may_be() -> None:
    assert review_from_json({}) == DEFAULT_REVIEW
    assert review_from_json({"break_glass_role": "admin"}).break_glass_role is Role.ADMIN
    wrongs: tuple[object, ...] = (
        *({"break_glass_role": "viewer"}, {"break_glass_role": 3}, {"required": "yes"}, {"self_approval": 1}, []),
        *({"approvals": 0}, {"approvals": 11}, {"approvals": True}, {"colour": "red"}),
    )
    for wrong in wrongs:
        with pytest.raises(InputInvalid):
            review_from_json(wrong)
