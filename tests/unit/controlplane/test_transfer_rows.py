"""A row of SQLite as PostgreSQL takes it, and a digest in which equal rows are equal."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.accounts.models import ApiToken
from controlplane.catalog.models import Blob, Change, Environment
from controlplane.ops.transfer.copying import tables
from controlplane.ops.transfer.rows import Digest, Table, table_of

BLOB = table_of(Blob)
CHANGE = table_of(Change)
A_CHANGE = {
    "id": 7,
    "public_id": "0123456789abcdef0123456789abcdef",
    "generation": 3,
    "author": "dana",
    "message": "why",
    "findings": "[]",
    "back_to": None,
    "loss": "null",
    "at": "2026-11-23 15:26:39.5",
    "environment_id": 1,
}


def raw(table: Table, **values: object) -> list[object]:
    """A row as SQLite has it; columns that are not named are empty."""
    return [values.get(name) for name in table.names]


def converted(table: Table, **values: object) -> tuple[dict[str, Any], list[str]]:
    refusals: list[str] = []
    row = table.converted(raw(table, **values), refusals)
    return dict(zip(table.names, row, strict=True)), refusals


def hash_of(table: Table, rows: Sequence[Sequence[Any]]) -> str:
    digest = Digest(table)
    for row in rows:
        digest.add(row)
    return digest.hex


def test_tables__every_model__says_how_it_moves() -> None:
    assert {"catalog_revision", "auth_user_groups", "django_session", "clients_subscription"} <= {
        each.name for each in tables()
    }


def test_row__of_a_change__has_the_types_of_its_model() -> None:
    row, refusals = converted(CHANGE, **A_CHANGE)

    assert refusals == []
    assert row["public_id"] == UUID("0123456789abcdef0123456789abcdef")
    assert row["at"] == datetime(2026, 11, 23, 15, 26, 39, 500_000, UTC)
    assert (row["back_to"], row["loss"]) == (None, "null")  # null in JSON is another thing than no value
    assert row["findings"] == "[]"


def test_row__truth_and_date__are_such() -> None:
    environment, _ = converted(table_of(Environment), deep_validation=1, require_if_match=0)
    token, _ = converted(table_of(ApiToken), last_used_on="2026-11-23")

    assert (environment["deep_validation"], environment["require_if_match"]) == (True, False)
    assert token["last_used_on"] == date(2026, 11, 23)


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("author", "x" * 151, "has 151 characters, and may have 150"),
        ("author", "a\x00b", "has a character U+0000, which PostgreSQL cannot keep"),
        ("author", 5, "is no text"),
        ("findings", r'["\u0000"]', "has a character U+0000, which PostgreSQL cannot keep"),
        ("findings", r'{"\u0000": 1}', "has a character U+0000, which PostgreSQL cannot keep"),
        ("findings", r'["\ud83d"]', "has half a surrogate pair, which PostgreSQL cannot keep"),
        ("findings", "[", "is no JSON"),
        ("generation", -1, "is not between 0 and 9223372036854775807"),
        ("generation", "many", "is no whole number"),
        ("at", "yesterday", "is no date and time"),
        ("at", 5, "is no date and time"),
        ("public_id", "no-uuid", "is no UUID"),
        ("public_id", b"no-uuid", "is no UUID"),
    ],
)
def test_row__with_what_postgresql_cannot_keep__is_refused_with_its_place_and_without_the_value(
    column: str, value: object, why: str
) -> None:
    row, refusals = converted(CHANGE, **{**A_CHANGE, column: value})

    assert refusals == [f"catalog_change, id 7: {column} {why}."]
    assert row[column] is None


def test_row__with_several_wrong_values__names_all_of_them() -> None:
    _row, refusals = converted(CHANGE, **{**A_CHANGE, "author": 5, "at": "yesterday"})

    assert [each.split(": ")[1] for each in refusals] == ["author is no text.", "at is no date and time."]


@pytest.mark.parametrize("text", [r'["\\u0000"]', r'["\u00e9"]', r'["😀"]'])
def test_row__json_with_escapes_that_postgresql_keeps__is_taken_as_it_is(text: str) -> None:
    row, refusals = converted(CHANGE, **{**A_CHANGE, "findings": text})

    assert (row["findings"], refusals) == (text, [])


@pytest.mark.parametrize(
    ("column", "one", "other"),
    [
        ("findings", '{"b": 1, "a": [1e22, 2.0]}', '{"a": [10000000000000000000000, 2.0], "b": 1}'),
        ("at", datetime(2026, 1, 1, tzinfo=UTC), datetime.fromisoformat("2026-01-01T01:00:00+01:00")),
        ("public_id", UUID(int=5), UUID("00000000-0000-0000-0000-000000000005")),
    ],
)
def test_digest__one_value_in_the_words_of_two_databases__is_the_same(column: str, one: Any, other: Any) -> None:
    assert hash_of(CHANGE, [raw(CHANGE, **{column: one})]) == hash_of(CHANGE, [raw(CHANGE, **{column: other})])


@pytest.mark.parametrize(
    ("column", "one", "other"),
    [
        ("findings", "null", None),
        ("findings", "[]", "{}"),
        ("findings", '[1, "1"]', '["1", 1]'),
        ("author", "", None),
        ("back_to", 0, None),
        ("at", datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, microsecond=1, tzinfo=UTC)),
    ],
)
def test_digest__two_values__differs(column: str, one: Any, other: Any) -> None:
    assert hash_of(CHANGE, [raw(CHANGE, **{column: one})]) != hash_of(CHANGE, [raw(CHANGE, **{column: other})])


BLOBS = st.lists(
    st.tuples(st.text(max_size=8), st.sampled_from(["chunk", "root"]), st.integers(0, 9), st.binary(max_size=8)),
    min_size=1,
    max_size=6,
)


@given(rows=BLOBS, data=st.data())
def test_digest__of_rows_in_any_order__is_the_same_and_of_others_another(
    rows: list[tuple[str, str, int, bytes]], data: st.DataObject
) -> None:
    whole = hash_of(BLOB, rows)

    assert hash_of(BLOB, data.draw(st.permutations(rows))) == whole
    assert hash_of(BLOB, rows[1:]) != whole
    assert hash_of(BLOB, [*rows, rows[0]]) != whole
    changed = (rows[0][0], rows[0][1], rows[0][2] + 1, rows[0][3])
    assert hash_of(BLOB, [changed, *rows[1:]]) != whole


@given(
    value=st.recursive(
        st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    )
)
def test_digest__json_read_and_written_with_other_spaces_and_order__is_the_same(value: Any) -> None:
    loose = json.dumps(value, indent=1, ensure_ascii=False)
    strict = json.dumps(value, sort_keys=True, separators=(",", ":"))

    one, other = (hash_of(CHANGE, [raw(CHANGE, findings=text)]) for text in (loose, strict))
    assert one == other
