"""Makes JSON lines of what a serving process prints past Python's logging: gRPC core's own lines, tracebacks of what
nobody caught, the last words of a crash, prints of libraries.

A process of its own reads them from a pipe. So nothing is lost when the process that wrote them dies, whatever it dies
of, and no thread of that process, and no lock, is needed to carry them. It ends when the last writer has ended.
Started by `capture`, without any package; needs nothing but Python.
"""

import json
import os
import re
import select
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from controlplane.logs.text import FIELD_CHARS_MAX, TRACEBACK_CHARS_MAX, contained

_READ_BYTES: Final = 64 * 1024
# What is longer without an end is cut there: longer than any line of ours.
_LINE_BYTES_MAX: Final = 64 * 1024
# The lines of a traceback come at once; after so long without another one it is over.
_PAUSE_S: Final = 0.2
_BLOCK_LINES_MAX: Final = 400

# absl's prefix: level, month and day, time, thread, place. gRPC core logs by it, and so does RE2.
_ABSL: Final = re.compile(r"([IWEF])\d{4} [0-9:.]+\s+\d+ ([^\s\]]{1,200}:\d+)\] ?(.*)", re.DOTALL)
_ABSL_LEVELS: Final = {"I": "info", "W": "warning", "E": "error", "F": "critical"}
_OPENINGS: Final = ("Traceback (most recent call last):", "Exception in thread ", "Exception ignored ", "  + Exception")
_CRASH: Final = "Fatal Python error:"
SAID_SO_FAR: Final = b"\0parley: said so far"
"""A line by which a process asks to be told once everything before it is written."""

_OURS: Final = ("timestamp", "role", "event")

Fields = Mapping[str, object]


@dataclass(slots=True)
class _Block:
    """Lines that are one event: a traceback, or what Python says as it crashes."""

    lines: list[str] = field(default_factory=list)

    def event(self) -> dict[str, object]:
        first = self.lines[0]
        said = [each for each in self.lines if each.strip() and not each.startswith((" ", "\t"))]
        crash = first.startswith(_CRASH)
        text = "\n".join(self.lines)
        return {
            "level": "critical" if crash else "error",
            "logger": "python",
            "event": contained(first if crash else said[-1] if said else first, FIELD_CHARS_MAX),
            # The frames nearest to a crash come first, those nearest to an exception last.
            "exception": text[:TRACEBACK_CHARS_MAX] if crash else text[-TRACEBACK_CHARS_MAX:],
        }


class ForeignLines:
    """Turns lines that other code prints into JSON lines. `origin`: the fields that say whose they are."""

    def __init__(self, origin: Fields) -> None:
        self._origin = dict(origin)
        self._block: _Block | None = None

    @property
    def open(self) -> bool:
        """Whether an event has begun whose later lines may still come."""
        return self._block is not None

    def take(self, line: bytes) -> Iterator[bytes]:
        """The lines to write now that this line came. A line that is an event of ours already stays as it is."""
        if is_event(line):
            yield from self.flush()
            yield line
            return
        text = line.decode("utf-8", "backslashreplace").rstrip("\r")
        logged = _ABSL.fullmatch(text)
        if logged is not None:
            yield from self.flush()
            event = {"level": _ABSL_LEVELS[logged[1]], "logger": "absl", "event": contained(logged[3], FIELD_CHARS_MAX)}
            yield self._json({**event, "place": logged[2]})
            return
        crash = text.startswith(_CRASH)
        if self._block is None and (crash or text.startswith(_OPENINGS)):
            self._block = _Block()
        if self._block is not None:
            self._block.lines.append(text[:_LINE_BYTES_MAX])
            if len(self._block.lines) >= _BLOCK_LINES_MAX:
                yield from self.flush()
        elif text.strip():
            yield self._json({"level": "warning", "logger": "output", "event": contained(text, FIELD_CHARS_MAX)})

    def flush(self) -> Iterator[bytes]:
        """The line of the event that has begun, for nothing more of it comes; nothing where none has."""
        if self._block is not None:
            block, self._block = self._block, None
            yield self._json(block.event())

    def _json(self, event: Fields) -> bytes:
        return event_line(event, self._origin).encode("ascii")


def event_line(event: Fields, origin: Fields) -> str:
    """The JSON line of an event that happens now, without a line feed."""
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return json.dumps({"timestamp": now, **event, **origin})


def main() -> None:
    """Turn standard input, to its end, into JSON lines on standard output. The arguments: the origin as JSON, and the
    file descriptor into which goes a byte for each `SAID_SO_FAR`.
    """
    # Whoever stops the process that writes sends this to all of them; what it says as it stops is wanted, too.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    carry(0, 1, ForeignLines(json.loads(sys.argv[1])), int(sys.argv[2]))


def carry(source: int, target: int, lines: ForeignLines, heard: int = -1) -> None:
    """Read lines from one file descriptor and write them, as JSON lines, to another, until nobody can write into the
    first any more. `heard`: the descriptor into which goes a byte for each `SAID_SO_FAR`.
    """
    rest = b""
    while True:
        if lines.open and not select.select([source], [], [], _PAUSE_S)[0]:
            _write(target, lines.flush())
            continue
        chunk = os.read(source, _READ_BYTES)
        if not chunk:
            break
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LINE_BYTES_MAX:
            whole, rest = [*whole, rest], b""
        for line in whole:
            if line == SAID_SO_FAR:
                _write(target, lines.flush())
                with suppress(OSError):
                    os.write(heard, b".")
            else:
                _write(target, lines.take(line))
    if rest:
        _write(target, lines.take(rest))
    _write(target, lines.flush())


def _write(target: int, lines: Iterator[bytes]) -> None:
    for line in lines:
        left = line + b"\n"
        try:
            while left:
                left = left[os.write(target, left) :]
        except OSError:
            continue  # nobody reads any more; whoever writes must not stand still because of it


def is_event(line: bytes) -> bool:
    """Whether this line is a JSON event of ours already."""
    if not line.startswith(b"{"):
        return False
    try:
        said = json.loads(line)
    except ValueError:
        return False
    return all(key in said for key in _OURS)
