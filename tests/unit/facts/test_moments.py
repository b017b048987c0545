"""When something was, as it is stored."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from controlplane.clients.services.writing import _Moments

NOW = datetime(2026, 11, 22, 15, 30, tzinfo=UTC)
ROUNDING = timedelta(microseconds=1)


@given(age_s=st.floats(0, 1e6))
def test_moments__of_any_age__are_not_before_it_and_at_most_2_ms_after(age_s: float) -> None:
    made = _Moments(NOW).ago(age_s)

    moment = made if isinstance(made, datetime) else datetime.fromisoformat(str(made)).replace(tzinfo=UTC)
    late = moment - (NOW - timedelta(seconds=age_s))
    assert -ROUNDING <= late <= timedelta(milliseconds=2) + ROUNDING
