"""Codes of authenticator apps and recovery codes, as values."""

from datetime import UTC, datetime

import pyotp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.factors.values import RECOVERY_BYTES, App, Factors, Key, recovery_codes, recovery_digest, step_of

SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # RFC 6238 appendix B, SHA-1
NEVER = -1
TIMES = st.integers(min_value=0, max_value=2**33)


@pytest.mark.parametrize(
    ("now_s", "code"),
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (2000000000, "279037")],
)
def test_step__example_of_the_rfc__is_the_step_of_that_time(now_s: int, code: str) -> None:
    assert step_of(SECRET, code, now_s=now_s, after=NEVER) == now_s // 30


@given(now_s=TIMES, off=st.integers(min_value=-5, max_value=5))
def test_step__code_of_another_time__is_taken_one_step_off_and_no_further(now_s: int, off: int) -> None:
    step = now_s // 30 + off
    code = pyotp.TOTP(SECRET).generate_otp(max(step, 0))

    found = step_of(SECRET, code, now_s=now_s, after=NEVER)

    if step >= 0 and abs(off) <= 1:
        assert found is not None
        assert abs(found - now_s // 30) <= 1
        assert pyotp.TOTP(SECRET).generate_otp(found) == code


@given(now_s=TIMES, waits=st.lists(st.integers(min_value=0, max_value=90), max_size=6))
def test_step__codes_shown_again_and_again__each_step_is_taken_once(now_s: int, waits: list[int]) -> None:
    taken: list[int] = []
    for wait in [0, *waits]:
        now_s += wait
        code = pyotp.TOTP(SECRET).generate_otp(now_s // 30)
        step = step_of(SECRET, code, now_s=now_s, after=taken[-1] if taken else NEVER)
        taken += [step] if step is not None else []

    assert taken == sorted(set(taken))


@given(st.text(max_size=12))
def test_step__anything_typed__is_six_ascii_digits_or_nothing(typed: str) -> None:
    step = step_of(SECRET, typed, now_s=59, after=NEVER)

    plain = typed.replace(" ", "")
    assert step is None or (len(plain) == 6 and plain.isascii() and plain.isdigit())


@pytest.mark.parametrize("typed", ["", "28708", "2870822", "٢٨٧٠٨٢", "28-082", "287082\n", "-87082"])
def test_step__no_code__is_none(typed: str) -> None:
    assert step_of(SECRET, typed, now_s=59, after=NEVER) is None


def test_step__blank_in_the_middle__is_read_over_as_apps_show_it() -> None:
    assert step_of(SECRET, "287 082", now_s=59, after=NEVER) == 1


@given(st.lists(st.binary(min_size=RECOVERY_BYTES, max_size=RECOVERY_BYTES), unique=True, max_size=10))
def test_recovery_codes__of_different_bytes__differ_and_are_read_however_typed(random: list[bytes]) -> None:
    codes = recovery_codes(random)

    digests = {recovery_digest(7, code) for code in codes}
    assert len(digests) == len(random)
    for code in codes:
        assert len(code) == 19
        spellings = (code.upper(), code.replace("-", ""), f" {code.replace('-', ' ')} ", code.replace("o", "0"))
        assert {recovery_digest(7, each) for each in spellings} == {recovery_digest(7, code)}
        assert recovery_digest(8, code) not in digests


@given(st.text(max_size=60))
def test_recovery_digest__of_anything_typed__is_a_hash(typed: str) -> None:
    assert len(recovery_digest(1, typed)) == 64


def test_factors__recovery_codes_alone__are_none() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    assert not Factors(None, (), 10).any
    assert Factors(App(now, now), (), 0).any
    assert Factors(App(now, now), (Key(1, "a", now, None),), 0).count == 2
