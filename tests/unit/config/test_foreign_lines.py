"""What a process prints past its log becomes one JSON line for each event, whatever it is."""

import json
import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.logs.foreign_lines import ForeignLines, carry

ORIGIN = {"role": "ads", "process": 7, "version": "1.2.3"}
TRACEBACK = b"""Traceback (most recent call last):
  File "a.py", line 1, in <module>
    f()

ValueError: no good"""
CRASH = b"""Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "a.py", line 1 in <module>"""


def carried(said: bytes) -> list[dict[str, Any]]:
    """The lines that come out for these bytes."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        source.write(said)
        source.seek(0)
        carry(source.fileno(), target.fileno(), ForeignLines(ORIGIN))
        target.seek(0)
        return [json.loads(line) for line in target.read().decode("ascii").splitlines()]


def test_line__of_grpc_core__has_its_level_place_and_words() -> None:
    line = b"E0000 00:00:1732372000.123456   12345 chttp2_transport.cc:1171] ipv4:127.0.0.1:9: Got goaway [2]\n"

    [event] = carried(line)

    assert (event["level"], event["logger"], event["place"]) == ("error", "absl", "chttp2_transport.cc:1171")
    assert event["event"] == "ipv4:127.0.0.1:9: Got goaway [2]"
    assert event.items() >= ORIGIN.items()
    assert event["timestamp"].endswith("Z")


@pytest.mark.parametrize(
    ("said", "level", "event"),
    [(TRACEBACK, "error", "ValueError: no good"), (CRASH, "critical", "Fatal Python error: Segmentation fault")],
)
def test_lines__of_a_traceback_or_a_crash__are_one_event(said: bytes, level: str, event: str) -> None:
    before, found, after = carried(b"before\n" + said + b"\nI0000 00:00:1.2 3 a.cc:4] after\n")

    assert (found["level"], found["event"]) == (level, event)
    assert found["exception"] == said.decode()
    assert (before["event"], before["logger"], after["event"]) == ("before", "output", "after")


def test_line__that_is_an_event_of_ours__stays_as_it_is() -> None:
    ours = {"timestamp": "2026-01-01T00:00:00Z", "role": "ads", "event": "x", "process": 8}

    assert carried(json.dumps(ours).encode() + b"\n") == [ours]


@pytest.mark.parametrize("said", [b'{"a": 1}', b"{", b"[1]", b'{"timestamp": 1, "event": 2}'])
def test_line__that_only_looks_like_one__is_a_text(said: bytes) -> None:
    [event] = carried(said + b"\n")

    assert event["event"] == said.decode()
    assert event["role"] == "ads"


def test_line__without_an_end_and_very_long__is_cut() -> None:
    events = carried(b"x" * 200_000 + b"\nshort")

    assert events[-1]["event"] == "short"
    assert all(len(event["event"]) <= 1_024 for event in events)


def test_traceback__very_long__is_bounded_and_keeps_its_end() -> None:
    frames = b"\n".join(b"  File %d" % number for number in range(300))

    events = carried(b"Traceback (most recent call last):\n" + frames + b"\n" + b"y" * 20_000 + b"\nEnd: now\n")

    assert events[0]["exception"].endswith("End: now")
    assert all(len(event["exception"]) <= 16_384 for event in events)


@given(st.binary(max_size=300))
def test_bytes__of_any_kind__are_lines_that_parse_and_say_whose_they_are(said: bytes) -> None:
    for event in carried(said):
        assert event.items() >= ORIGIN.items()
        assert "\x1b" not in event["event"]
