"""What is made of the answers of webhooks: foreign text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.rollouts.values import Outcome
from controlplane.rollouts.webhooks import MAX_REASON_CHARS, Said, said_of

PASS = b'{"verdict": "pass"}'


@pytest.mark.parametrize("outcome", list(Outcome))
def test_said_of__the_one_form__is_an_answer_with_its_reason(outcome: Outcome) -> None:
    body = f'{{"verdict": "{outcome.value}", "reason": "error rates\\nas before", "more": 1}}'.encode()

    assert said_of(200, body, whole=True) == Said(outcome, "error rates as before")


@pytest.mark.parametrize(
    ("status", "body", "whole", "reason"),
    [
        (200, b"", True, "something else than"),
        (200, b"ok", True, "something else than"),
        (200, b'"pass"', True, "something else than"),
        (200, b'[{"verdict": "pass"}]', True, "something else than"),
        (200, b'{"verdict": "PASS"}', True, "something else than"),
        (200, b'{"verdict": ["pass"]}', True, "something else than"),
        (200, b'{"verdict": null}', True, "something else than"),
        (200, b'{"reason": "pass"}', True, "something else than"),
        (200, b"[" * 4_000, True, "something else than"),
        (200, b"\xff\xfe", True, "something else than"),
        (200, PASS, False, "did not end, or has more than"),
        (500, PASS, True, "status 500"),
        (199, PASS, True, "status 199"),
        (302, PASS, True, "status 302, and redirects are not followed"),
    ],
)
def test_said_of__anything_else__is_no_answer_and_says_why(status: int, body: bytes, whole: bool, reason: str) -> None:
    said = said_of(status, body, whole=whole)

    assert said.outcome is None
    assert reason in said.reason


def test_said_of__reason_that_acts_on_a_reader__is_escaped_and_bounded() -> None:
    body = b'{"verdict": "fail", "reason": "a\\u001b[2J\\u202eb' + b"x" * 2_000 + b'"}'

    said = said_of(200, body, whole=True)

    assert said.reason.startswith(r"a\x1b[2J\u202ebxx")
    assert len(said.reason) == MAX_REASON_CHARS
    assert said_of(200, b'{"verdict": "fail", "reason": {"a": 1}}', whole=True) == Said(Outcome.FAIL, "")


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode), st.integers(100, 599), st.booleans())
def test_said_of__any_bytes__is_never_an_exception_and_never_a_pass_by_chance(
    body: bytes, status: int, whole: bool
) -> None:
    said = said_of(status, body, whole=whole)

    assert said.outcome is not Outcome.PASS
    assert len(said.reason) <= MAX_REASON_CHARS
