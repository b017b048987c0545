"""What the query of an address asks of a list."""

from datetime import UTC, datetime
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.common.errors import InputInvalid
from controlplane.listing.frames import MAX_QUERY_CHARS, SINCE, UNTIL, Filter, Frame, Kind, Order, options

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
FRAME = Frame(
    "fruit",
    "fruits",
    "fruits",
    (
        Filter("name", "Name contains", max_chars=20),
        Filter("colour", "Colour", Kind.CHOICE, options(["red", "green"])),
        Filter("grower", "Grower", Kind.CHOICE, options(["me"]), free=True),
        SINCE,
        UNTIL,
    ),
    (Order("name", "Name"), Order("ripe", "Ripe", falls=True)),
)


def test_read__nothing__asks_for_everything() -> None:
    asked = FRAME.read({"page": "2", "name": "  "}, NOON)

    assert (asked.query, asked.values, asked.problems, asked.sort, asked.since) == ("", {}, {}, "", None)


def test_read__filters_and_order__are_one_query_however_they_were_spelled() -> None:
    asked = FRAME.read({"sort": "-ripe", "since": "2 h", "name": " pear ", "colour": "green"}, NOON)

    assert asked.query == "name=pear&colour=green&since=2+h&sort=-ripe"
    assert asked.since == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert FRAME.read(dict(parse_qsl(asked.query)), NOON) == asked


@pytest.mark.parametrize(
    ("given_", "name", "says"),
    [
        ({"colour": "blue"}, "colour", "'Colour' cannot be 'blue'. Choices: red, green."),
        ({"name": "x" * 21}, "name", "'Name contains' has 21 characters; at most 20 are allowed."),
        ({"name": "a\x00b"}, "name", "'Name contains' holds a character that cannot be printed on one line."),
        ({"since": "yesterday"}, "since", "'Since' cannot be 'yesterday': it is a time such as 2026-07-01 12:00 or "),
        ({"since": "1h", "until": "2h"}, "until", "'Until' is before 'Since', so nothing can be in between."),
        ({"sort": "taste"}, "sort", "This list cannot be sorted by 'taste'. It can by: name, ripe."),
    ],
)
def test_read__what_cannot_be__is_said_of_its_field_and_kept_as_it_was_typed(
    given_: dict[str, str], name: str, says: str
) -> None:
    asked = FRAME.read(given_, NOON)

    assert asked.problems[name].startswith(says)
    assert all(asked.text(key) == value for key, value in given_.items() if key != "sort")
    with pytest.raises(InputInvalid):
        asked.require()


def test_sorted_by__first_in_its_natural_direction__then_in_the_other() -> None:
    plain = FRAME.read({"colour": "red", "page": "7"}, NOON)
    ripe = FRAME.read(dict(parse_qsl(plain.sorted_by("ripe"))), NOON)

    assert plain.sorted_by("name") == "colour=red&sort=name"
    assert plain.sorted_by("ripe") == "colour=red&sort=-ripe"
    assert ripe.sorted_by("ripe") == "colour=red&sort=ripe"


@pytest.mark.parametrize(
    "query",
    [
        "next=https://evil.example/",
        "colour=red&page=3",
        "colour=blue",
        "sort=taste",
        "since=tomorrow-ish",
        "grower=" + "x" * (MAX_QUERY_CHARS + 1),
    ],
)
def test_kept__what_is_not_wholly_of_this_list__is_turned_down(query: str) -> None:
    with pytest.raises(InputInvalid):
        FRAME.kept(query, NOON)


@given(st.text(max_size=200))
def test_kept__any_text__is_a_query_of_the_list_or_turned_down(text: str) -> None:
    try:
        kept = FRAME.kept(text, NOON)
    except InputInvalid:
        return
    assert "\n" not in kept
    assert {name for name, _ in parse_qsl(kept)} <= {"name", "colour", "grower", "since", "until", "sort"}
    assert FRAME.kept(kept, NOON) == kept
