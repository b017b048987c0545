"""Whatever a serving process dies of, and whatever prints: what it said comes out, as JSON lines."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
BEGIN = """
import os, sys
from controlplane.logs.capture import capture_begin, log_stream
capture_begin()
"""
# What the C++ of a library says before it gives up, past everything of Python.
ABORT = 'os.write(2, b"F0000 00:00:1732372000.1 7 call.cc:9] Check failed: n > 0\\n"); os.abort()'


def said_by(folder: Path, program: str, *, command: str = "ads", **environment: str) -> tuple[int, list[str], str]:
    """The end, and the lines of standard error and the text of standard output, of a `manage.py` with this body."""
    file = folder / "manage.py"
    file.write_text(BEGIN + program, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(file), command],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return ended.returncode, ended.stderr.splitlines(), ended.stdout


def events(folder: Path, program: str, **environment: str) -> list[dict[str, Any]]:
    _, lines, out = said_by(folder, program, **environment)
    assert out == ""
    found = [json.loads(line) for line in lines]
    assert all((each["role"], bool(each["process"]), bool(each["version"])) == ("ads", True, True) for each in found)
    return found


@pytest.mark.parametrize(
    ("program", "status", "level", "event"),
    [
        ("import faulthandler; faulthandler._sigsegv()", -11, "critical", "Fatal Python error: Segmentation fault"),
        (ABORT, -6, "critical", "Check failed: n > 0"),
        ('os.write(2, b"gone\\n"); os.kill(os.getpid(), 9)', -9, "warning", "gone"),
        ('print("gone", flush=True); os._exit(3)', 3, "warning", "gone"),
        ('raise ValueError("no good")', 1, "error", "ValueError: no good"),
        ('sys.exit("no configuration")', 1, "warning", "no configuration"),
        ("import threading; t = threading.Thread(target=lambda: 1 // 0); t.start()", 0, "error", "ZeroDivisionError: "),
    ],
    ids=["segmentation fault", "abort", "kill", "exit", "exception", "sentence", "thread"],
)
def test_process__that_ends_somehow__its_last_words_come_out(
    tmp_path: Path, program: str, status: int, level: str, event: str
) -> None:
    ended, lines, _ = said_by(tmp_path, program)

    said = [json.loads(line) for line in lines]
    assert ended == status
    assert [(each["level"], each["role"]) for each in said if each["event"].startswith(event)] == [(level, "ads")]


def test_process__that_cannot_start__says_why_as_its_log_would(tmp_path: Path) -> None:
    program = 'from controlplane.logs.capture import say_last; say_last("PARLEY_HOME cannot be used")'

    (said,) = events(tmp_path, program)

    assert (said["level"], said["logger"]) == ("critical", "controlplane.log_capture")
    assert said["event"] == "PARLEY_HOME cannot be used"
    assert said["timestamp"].endswith("Z")


def test_grpc_core__that_logs__is_json(tmp_path: Path) -> None:
    program = """
import grpc
channel = grpc.insecure_channel("127.0.0.1:1")
try:
    grpc.channel_ready_future(channel).result(0.5)
except grpc.FutureTimeoutError:
    channel.close()
"""

    said = events(tmp_path, program, GRPC_VERBOSITY="DEBUG", GRPC_TRACE="subchannel")

    absl = [each for each in said if each["logger"] == "absl"]
    assert absl
    assert all(".cc:" in each["place"] for each in absl)


def test_child__forked_or_started__its_lines_are_json_too(tmp_path: Path) -> None:
    program = """
import subprocess
if os.fork() == 0:
    os.write(2, b"of the fork\\n")
    os._exit(0)
os.wait()
subprocess.run(["sh", "-c", "echo of the program"], check=True)
"""

    assert [each["event"] for each in events(tmp_path, program)] == ["of the fork", "of the program"]


def test_reader__that_is_gone__costs_our_own_lines_nothing(tmp_path: Path) -> None:
    program = """
import signal, time
from pathlib import Path
[reader] = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
os.kill(int(reader), signal.SIGKILL)
time.sleep(0.2)
log_stream().write('{"role": "ads", "process": 1, "version": "1", "event": "ours"}\\n')
try:
    os.write(2, b"foreign\\n")
except BrokenPipeError:
    log_stream().write('{"role": "ads", "process": 1, "version": "1", "event": "still there"}\\n')
"""

    assert [each["event"] for each in events(tmp_path, program)] == ["ours", "still there"]


def test_reader__told_to_stop_with_everybody__hears_the_last_words(tmp_path: Path) -> None:
    program = """
import signal, time
from pathlib import Path
[reader] = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
time.sleep(0.3)
os.kill(int(reader), signal.SIGTERM)
os.kill(int(reader), signal.SIGINT)
time.sleep(0.1)
print("last")
"""

    assert [each["event"] for each in events(tmp_path, program)] == ["last"]


@pytest.mark.parametrize(
    ("command", "environment"), [("ads", {"PARLEY_LOG_JSON": "0"}), ("prepare", {})], ids=["for people", "a command"]
)
def test_output__of_a_command_or_for_people__stays_as_it_is(
    tmp_path: Path, command: str, environment: dict[str, str]
) -> None:
    _, lines, out = said_by(
        tmp_path, 'print("an answer"); sys.stderr.write("a word\\n")', command=command, **environment
    )

    assert (lines, out) == (["a word"], "an answer\n")
