"""From the first moment of a serving process: what it prints past Python's logging becomes JSON, too.

gRPC core writes to standard error by itself, as do the interpreter when it crashes and libraries that print. Standard
output and error of the process become a pipe to `foreign_lines`; our own lines go where standard error led, without
that way round, so that they depend on no other process.
"""

import atexit
import faulthandler
import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

from controlplane.logs.foreign_lines import SAID_SO_FAR, event_line
from controlplane.logs.origin import SERVING, origin, role

_ROOT: Final = str(Path(__file__).resolve().parents[2])
# Isolated, and without the packages of the installation: it takes 12 ms to start, and 6 MB.
_READER: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from controlplane.logs.foreign_lines import main; main()"
)
# For what the reader still has when the process ends in order.
_LAST_WORDS_S: Final = 1.0

_stream: TextIO | None = None


def capture_begin(environment: Mapping[str, str] = os.environ) -> None:
    """Turn what this process prints from now on into JSON lines, if it is a serving one and its log is JSON; further
    calls do nothing. A crash says where it was, whatever the form of the lines.
    """
    global _stream  # noqa: PLW0603  there is one standard error
    if _stream is not None or role() not in SERVING:
        return
    # Read before the configuration is, which may be what cannot be read.
    if environment.get("PARLEY_LOG_JSON", "").strip() != "0":
        _stream = _captured()
    faulthandler.enable()


def log_stream() -> TextIO | None:
    """The stream that our own log lines are written to; None: standard error."""
    return _stream


def say_last(reason: str) -> None:
    """Write why this process ends before it has a log: one line, in the form that its log would have."""
    if _stream is None:
        sys.stderr.write(f"{reason}\n")
        return
    # Users filter lines by this name.
    said = {"level": "critical", "logger": "controlplane.log_capture", "event": reason}
    _stream.write(f"{event_line(said, origin())}\n")


def _captured() -> TextIO | None:
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    heard, hears = os.pipe()
    try:
        subprocess.Popen(  # noqa: S603  this interpreter and a program of ours
            [sys.executable, "-I", "-S", "-c", _READER, _ROOT, json.dumps(origin()), str(hears)],
            stdin=reading,
            stdout=2,
            pass_fds=(hears,),
            env={},  # it needs none of the secrets in ours
            start_new_session=True,
        )
    except OSError as error:  # no room for another process: then some lines are no JSON
        os.close(writing)
        os.close(heard)
        sys.stderr.write(f"What is printed past the log stays as it is: {error}\n")
        return None
    finally:
        os.close(reading)
        os.close(hears)
    stream = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.close(writing)
    atexit.register(_await_heard, os.getpid(), heard)
    return stream


def _await_heard(owner: int, heard: int) -> None:
    """Wait until the reader has written what was said so far: in a container it is gone with this process. Does nothing
    in a forked child.
    """
    if os.getpid() != owner:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    with suppress(OSError):
        os.write(2, b"\n" + SAID_SO_FAR + b"\n")
        select.select([heard], [], [], _LAST_WORDS_S)
