"""A fleet that refuses every response (reliability F19, N3), in small: the scenario of `python -m bench nack-storm`
with fewer clients. What it counts must hold at any size; what it costs is the benchmark's to say.
"""

import sys

import pytest

from bench.__main__ import run_apart
from bench.registry import load_scenarios
from tests.support.figures import measured

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the scenario reads the memory of a process as Linux tells it"),
]

CLIENTS, CHANGES = 50, 4


def test_storm__every_response_refused__each_content_once_all_counted_one_incident_one_message() -> None:
    storm = load_scenarios()["nack-storm"]

    result = run_apart(storm, {"clients": CLIENTS, "changes": CHANGES, "pause_ms": 100})

    assert not result.error, result.error
    found = {each.name: each.median for each in result.measurements}
    assert found["responses a client refused, at most"] == CHANGES
    assert found["responses refused in all"] == CLIENTS * CHANGES
    assert found["refusals that the incidents do not count"] == 0
    assert found["incidents"] == 1
    assert found["messages about incidents"] == 1
    measured(clients=CLIENTS, changes=CHANGES, refused=found["responses refused in all"], incidents=found["incidents"])
