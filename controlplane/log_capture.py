"""From the first moment of a serving process: what it prints past Python's logging becomes JSON, too.

gRPC core writes to standard error by itself, as do the interpreter when it crashes and libraries that print. Standard
output and error of the process become a pipe to `foreign_lines`; our own lines go where standard error led, without
that way round, so that they depend on no other process.
"""

import atexit
import faulthandler
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TextIO

from controlplane.log_origin import SERVING, origin, role_of

_ROOT: Final = str(Path(__file__).resolve().parent.parent)
# Isolated, and without the packages of the installation: it starts in 20 ms and takes 10 MB.
_READER: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from controlplane.foreign_lines import main; main()"
# What the reader still has when the process ends in order; a child that lives on may hold it up.
_LAST_WORDS_S: Final = 1.0

_stream: TextIO | None = None


def capture_begin(environment: Mapping[str, str] = os.environ) -> None:
    """Capture what this process prints, if it serves and its lines are JSON; once, however often it is called. A crash
    says where it was, whatever the form of the lines.
    """
    global _stream  # noqa: PLW0603  there is one standard error
    if _stream is not None or role_of(sys.argv) not in SERVING:
        return
    # Read before the configuration is, which may be what cannot be read.
    if environment.get("PARLEY_LOG_JSON", "").strip() != "0":
        _stream = _captured()
    faulthandler.enable()


def log_stream() -> TextIO | None:
    """Where our own lines go; None: to standard error."""
    return _stream


def _captured() -> TextIO | None:
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    try:
        reader = subprocess.Popen(  # noqa: S603  this interpreter and a program of ours
            [sys.executable, "-I", "-S", "-c", _READER, _ROOT, json.dumps(origin())],
            stdin=reading,
            stdout=2,
            env={},  # it needs none of the secrets in ours
            start_new_session=True,
        )
    except OSError as error:  # no room for another process: then some lines are no JSON
        os.close(writing)
        sys.stderr.write(f"What is printed past the log stays as it is: {error}\n")
        return None
    finally:
        os.close(reading)
    stream = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.close(writing)
    atexit.register(_release, os.getpid(), reader, stream)
    return stream


def _release(owner: int, reader: "subprocess.Popen[bytes]", stream: TextIO) -> None:
    """Let the reader write what it has before this process is gone; nothing of that in a forked child."""
    if os.getpid() != owner:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(stream.fileno(), 1)
    os.dup2(stream.fileno(), 2)
    try:
        reader.wait(_LAST_WORDS_S)
    except subprocess.TimeoutExpired:
        return
