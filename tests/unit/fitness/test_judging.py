"""What is wrong between a process and the database it shares with the others."""

import pytest

from controlplane.fitness.judging import CLOCK_BOUND_S, Check, judge_clock, judge_keys, judge_schema

A, B, C = "a" * 16, "b" * 16, "c" * 16


@pytest.mark.parametrize(
    ("ours", "noted"),
    [((A,), ()), ((A,), (A,)), ((A, B), (A, B)), ((A, B), (A,)), ((C, A), (A,)), ((C, B, A), (B, A))],
    ids=["nothing-noted", "the-one", "all", "one-more", "rotation-begins", "rotation-begins-again"],
)
def test_keys__that_open_everything__no_finding(ours: tuple[str, ...], noted: tuple[str, ...]) -> None:
    assert judge_keys(ours, noted) == ()


def test_keys__none_of_those_that_are_noted__stop_and_say_which_variable_and_which_keys() -> None:
    (found,) = judge_keys((C,), (A, B))

    assert (found.check, found.stops) == (Check.KEYS, True)
    assert C in found.text
    assert f"{A}, {B}" in found.text
    assert "PARLEY_ENCRYPTION_KEYS" in found.text
    assert "--give-up-lost" in found.text


@pytest.mark.parametrize(
    ("ours", "noted", "said"),
    [
        ((A,), (B, A), f"lacks the newest key {B}"),
        ((B,), (B, A), f"lacks {A}, under which something may be stored"),
        ((A, B), (B, A), f"signs with {A}, others with the newer {B}"),
    ],
    ids=["newest-missing", "oldest-missing", "wrong-order"],
)
def test_keys__some_are_missing_or_out_of_order__warn_and_go_on(
    ours: tuple[str, ...], noted: tuple[str, ...], said: str
) -> None:
    (found,) = judge_keys(ours, noted)

    assert not found.stops
    assert said in found.text


def test_schema__migrations_to_apply__stops_and_names_them() -> None:
    (found,) = judge_schema({"a.0001"}, {"a.0001", *(f"b.{number:04}" for number in range(7))})

    assert found.stops
    assert "(b.0000, b.0001, b.0002, b.0003, b.0004 and 2 more): manage.py migrate" in found.text


def test_schema__database_of_a_newer_version__is_served_on_with_a_warning() -> None:
    (found,) = judge_schema({"a.0001", "a.0002"}, {"a.0001"})

    assert not found.stops
    assert "newer version (a.0002)" in found.text


@pytest.mark.parametrize(("ahead_s", "unsure_s"), [(0, 0), (CLOCK_BOUND_S, 0), (-CLOCK_BOUND_S, 0), (9, 4.5)])
def test_clock__within_the_bound_or_not_surely_beyond_it__no_finding(ahead_s: float, unsure_s: float) -> None:
    assert judge_clock(ahead_s, unsure_s) == ()


@pytest.mark.parametrize(
    ("ahead_s", "said"), [(6.4, "6 s ahead of the database's"), (-90, "90 s behind the database's")]
)
def test_clock__beyond_the_bound__warns_and_never_stops(ahead_s: float, said: str) -> None:
    (found,) = judge_clock(ahead_s, 0.1)

    assert not found.stops
    assert said in found.text
