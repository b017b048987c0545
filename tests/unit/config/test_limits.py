"""Every limit: its variable, its bounds, its neighbours (reliability S8: one below, at, and one above)."""

from pathlib import Path

import pytest

from controlplane.config.loading import ConfigError, load
from xdscore.limits import LIMITS, ORDERED, Limit, Limits

HERE = Path("/here")
BY_NAME = {limit.name: limit for limit in LIMITS}


def limited(limit: Limit, value: int) -> int:
    """The value in force when the variable says `value` and every ordered neighbour makes room for it."""
    environment = {limit.variable: str(value)}
    for _ in ORDERED:
        for smaller, larger in ORDERED:
            low, high = BY_NAME[smaller], BY_NAME[larger]
            low_value = int(environment.get(low.variable, low.default))
            high_value = int(environment.get(high.variable, high.default))
            if low_value > high_value:
                moved, to = (low, high_value) if high.variable in environment else (high, low_value)
                environment[moved.variable] = str(to)
    environment[limit.variable] = str(value)
    return int(getattr(load(environment, directory=HERE).limits, limit.name))


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_limit__without_a_variable__is_its_default(limit: Limit) -> None:
    assert getattr(load({}, directory=HERE).limits, limit.name) == limit.default
    assert limit.minimum <= limit.default <= limit.maximum


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_limit__beside_its_bounds__is_refused_by_name(limit: Limit) -> None:
    for value in (limit.minimum - 1, limit.maximum + 1):
        with pytest.raises(ConfigError) as caught:
            load({limit.variable: str(value)}, directory=HERE)

        assert caught.value.problems[0].startswith(f"{limit.variable} must be from {limit.minimum:,}")


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_limit__another_value_of_its_range__is_in_force(limit: Limit) -> None:
    value = limit.default + 1 if limit.default < limit.maximum else limit.default - 1

    assert limited(limit, value) == value


@pytest.mark.parametrize(("smaller", "larger"), ORDERED)
def test_limits__in_the_wrong_order__both_are_named(smaller: str, larger: str) -> None:
    low, high = BY_NAME[smaller], BY_NAME[larger]
    value = max(high.minimum, min(high.maximum, low.default))
    environment = {high.variable: str(value), low.variable: str(value + 1)}

    with pytest.raises(ConfigError) as caught:
        load(environment, directory=HERE)

    assert any(low.variable in problem and high.variable in problem for problem in caught.value.problems)


def test_limits__a_misspelt_variable__is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError) as caught:
        load({"PARLEY_LIMIT_STREAMS_PER_REPLICAS": "1"}, directory=HERE)

    assert "did you mean PARLEY_LIMIT_STREAMS_PER_REPLICA?" in caught.value.problems[0]


def test_table__every_row__has_a_meaning_and_a_source() -> None:
    assert {limit.name for limit in LIMITS} == set(Limits.__dataclass_fields__)
    assert all(limit.meaning.endswith(".") and limit.source and limit.unit for limit in LIMITS)
