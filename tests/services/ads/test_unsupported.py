"""What a stream is told about types that are not in the table. Pure: no server here."""

import pytest

from adsserver.servicers.unsupported import MAX_TYPES, TooManyTypesError, UnsupportedAnswer, UnsupportedTypes
from adsserver.wire.discovery import UnknownTypeRequest
from xdscore.errors import MAX_TEXT_CHARS, StatusCode
from xdscore.limits import Limits

TYPE = "type.googleapis.com/example.Unknown"


def ask(*names: str, nonce: str = "", type_url: str = TYPE) -> UnknownTypeRequest:
    return UnknownTypeRequest(type_url, names, nonce)


def told(types: UnsupportedTypes) -> tuple[str, ...]:
    answer = types.take()
    return tuple(error.name for error in answer.errors) if answer is not None else ()


def answered(types: UnsupportedTypes, *names: str) -> UnsupportedAnswer:
    types.receive_sotw(ask(*names))
    answer = types.take()
    assert answer is not None
    return answer


def test_sotw__acknowledged__is_not_told_again() -> None:
    types = UnsupportedTypes(Limits())
    answer = answered(types, "a")

    types.receive_sotw(ask("a", nonce=answer.nonce))

    assert told(types) == ()


def test_sotw__name_added__all_are_told_so_that_nobody_forgets() -> None:
    types = UnsupportedTypes(Limits())
    answer = answered(types, "a")

    types.receive_sotw(ask("a", "b", nonce=answer.nonce))

    assert told(types) == ("a", "b")


def test_sotw__name_dropped_and_asked_for_again__is_told_again() -> None:
    types = UnsupportedTypes(Limits())
    answer = answered(types, "a", "b")
    types.receive_sotw(ask("b", nonce=answer.nonce))
    nothing = told(types)

    types.receive_sotw(ask("a", "b", nonce=answer.nonce))

    assert nothing == ()
    assert told(types) == ("a", "b")


def test_sotw__stale_nonce__changes_nothing() -> None:
    types = UnsupportedTypes(Limits())
    first = answered(types, "a")
    types.receive_sotw(ask("a", "b", nonce=first.nonce))
    types.take()

    types.receive_sotw(ask("a", "b", "c", nonce=first.nonce))

    assert told(types) == ()


def test_sotw__several_requests_before_a_write__only_the_newest_counts() -> None:
    types = UnsupportedTypes(Limits())
    types.receive_sotw(ask("a"))

    types.receive_sotw(ask("b"))

    assert told(types) == ("b",)
    assert told(types) == ()


@pytest.mark.parametrize("names", [(), ("",), ("*",), ("", "*")])
def test_both__nothing_that_can_be_named__silence(names: tuple[str, ...]) -> None:
    types = UnsupportedTypes(Limits())

    types.receive_sotw(ask(*names))
    types.receive_delta(ask(*names))

    assert told(types) == ()


def test_delta__subscribed_again__is_told_again() -> None:
    types = UnsupportedTypes(Limits())
    types.receive_delta(ask("a"))
    told(types)

    types.receive_delta(ask("a", "b"))

    assert told(types) == ("a", "b")


def test_answers__of_one_stream__have_nonces_of_their_own_and_versions_of_their_content() -> None:
    types = UnsupportedTypes(Limits())
    first = answered(types, "a")
    types.receive_delta(ask("a"))
    same = types.take()
    types.receive_delta(ask("b"))
    other = types.take()

    assert same is not None
    assert other is not None
    assert len({first.nonce, same.nonce, other.nonce}) == 3
    assert first.version == same.version != other.version


def test_types__as_many_as_allowed__and_one_more_ends_the_stream() -> None:
    types = UnsupportedTypes(Limits())
    for number in range(MAX_TYPES):
        types.receive_sotw(ask("a", type_url=f"{TYPE}{number}"))

    with pytest.raises(TooManyTypesError):
        types.receive_sotw(ask("a", type_url="type.googleapis.com/one.More"))


def test_delta__pending_names__are_bounded() -> None:
    types = UnsupportedTypes(Limits(names_per_request=2, names_per_type=2))
    types.receive_delta(ask("a", "b"))

    with pytest.raises(TooManyTypesError, match="More than 2 names"):
        types.receive_delta(ask("c"))


def test_text__of_hostile_names__is_one_short_line_with_its_code() -> None:
    types = UnsupportedTypes(Limits())
    types.receive_sotw(ask("x" * 900 + "\r\n\x1b[31m", type_url="t" * 900))
    answer = types.take()

    assert answer is not None
    (error,) = answer.errors
    assert error.code is StatusCode.NOT_FOUND
    assert error.text.startswith("NOT_FOUND [XDS2107] ")
    assert len(error.text) <= MAX_TEXT_CHARS
    assert error.text.isprintable()
