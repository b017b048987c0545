"""How xdsctl reads what people name on the command line: resources, and times to come."""

from datetime import UTC, datetime, timedelta

import pytest

from xdsctl.exits import UsageError
from xdsctl.kinds import resource_named
from xdsctl.times import time_to_come


def test_resource__text__is_type_and_name_or_refused() -> None:
    assert resource_named("cluster/a/b", "--delete") == {"type": "cluster", "name": "a/b"}
    for text in ("cluster", "cluster/", "/pay", ""):
        with pytest.raises(UsageError, match="--delete takes TYPE/NAME"):
            resource_named(text, "--delete")


def test_time__from_now__is_counted_from_now_and_anything_else_is_for_the_server() -> None:
    before = datetime.now(UTC).replace(microsecond=0)

    told = time_to_come("90m")

    assert told is not None
    assert before <= datetime.fromisoformat(told) - timedelta(minutes=90) <= datetime.now(UTC)
    assert time_to_come("2027-01-01T00:00:00Z") == "2027-01-01T00:00:00Z"
    assert time_to_come("soon") == "soon"
    assert time_to_come("") is None
