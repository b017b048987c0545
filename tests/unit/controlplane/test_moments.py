"""Points in time as people write them."""

from datetime import UTC, datetime

import pytest

from controlplane.http.moments import moment_or_age, moment_or_span, moment_typed

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("90s", datetime(2026, 7, 1, 11, 58, 30, tzinfo=UTC)),
        ("30m", datetime(2026, 7, 1, 11, 30, tzinfo=UTC)),
        ("24h", datetime(2026, 6, 30, 12, tzinfo=UTC)),
        ("7d", datetime(2026, 6, 24, 12, tzinfo=UTC)),
        ("1w", datetime(2026, 6, 24, 12, tzinfo=UTC)),
        ("2026-07-01T10:00:00Z", datetime(2026, 7, 1, 10, tzinfo=UTC)),
        ("2026-07-01T10:00:00.5+02:00", datetime(2026, 7, 1, 8, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_moment__time_or_age__is_that_moment(text: str, found: datetime) -> None:
    assert moment_or_age(text, NOON) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("8h", datetime(2026, 7, 1, 20, tzinfo=UTC)),
        ("1w", datetime(2026, 7, 8, 12, tzinfo=UTC)),
        ("2026-07-02T10:00:00Z", datetime(2026, 7, 2, 10, tzinfo=UTC)),
        ("999999w", None),
        ("soon", None),
    ],
)
def test_moment__time_or_span__is_that_moment_to_come(text: str, found: datetime | None) -> None:
    assert moment_or_span(text, NOON) == found


@pytest.mark.parametrize(
    "text",
    [
        *("", "24", "h", "-1h", "1.5h", "24 h", "1y", "٣h", "1h\n", "yesterday", "2026-07-01", "2026-07-01T12:00:00"),
        *("2026-13-01T00:00:00Z", "999999d", "0001-01-01T00:00:00+23:59"),
    ],
)
def test_moment__anything_else__is_none(text: str) -> None:
    assert moment_or_age(text, NOON) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (" 2 h", datetime(2026, 7, 1, 10, tzinfo=UTC)),
        ("7d", datetime(2026, 6, 24, 12, tzinfo=UTC)),
        ("2026-07-01", datetime(2026, 7, 1, tzinfo=UTC)),
        ("2026-07-01 10:30", datetime(2026, 7, 1, 10, 30, tzinfo=UTC)),
        ("2026-07-01T10:30", datetime(2026, 7, 1, 10, 30, tzinfo=UTC)),
        ("2026-07-01T10:00:00+02:00", datetime(2026, 7, 1, 8, tzinfo=UTC)),
        ("999999w", None),
        ("2 hours", None),
        ("", None),
    ],
)
def test_moment__typed_into_a_field__is_in_utc_where_it_does_not_say(text: str, found: datetime | None) -> None:
    assert moment_typed(text, NOON) == found
