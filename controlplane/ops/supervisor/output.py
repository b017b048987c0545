"""What the processes say: on the screen with the name of the process in front, and in `logs/NAME.log`. Where the lines
are JSON each says itself which process it is of, and the supervisor's own are JSON, too.

A stopped terminal (Ctrl-S, a pager) or a full disk must never stop a process that serves: the screen has a thread and a
bounded queue of its own, and what does not fit is dropped and counted; a line that cannot be stored is let go.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final, TextIO

from controlplane.logs.foreign_lines import event_line, is_event
from controlplane.logs.origin import origin
from controlplane.logs.text import FIELD_CHARS_MAX, contained

FILE_BYTES_MAX: Final = 10 * 1024 * 1024
FILES_KEPT: Final = 3
_QUEUE_LINES_MAX: Final = 10_000
_LINE_BYTES_MAX: Final = 64 * 1024
_END: Final = ""
_COLOURS: Final = ("36", "33", "35", "32", "34")  # cyan, yellow, magenta, green, blue
_RESET: Final = "\x1b[0m"


class Screen:
    """Writes lines of several processes to one stream, from a thread of its own."""

    def __init__(
        self, stream: TextIO, names: tuple[str, ...], environment: Mapping[str, str], *, as_json: bool = False
    ) -> None:
        width = max(map(len, names), default=0)
        colour = stream.isatty() and not environment.get("NO_COLOR")
        self._prefixes = {
            name: f"\x1b[{code}m{name:<{width}} |{_RESET} " if colour else f"{name:<{width}} | "
            for name, code in zip(names, _repeated(len(names)), strict=True)
        }
        self._stream = stream
        self._as_json = as_json
        self._lines: queue.Queue[str] = queue.Queue(_QUEUE_LINES_MAX)
        self._dropped = 0
        self._thread = threading.Thread(target=self._write, name="screen", daemon=True)
        self._thread.start()

    def line(self, name: str, text: str) -> None:
        """Write a line of the process `name`, with the name in front if it is one of `names` or, where the log is JSON,
        in a field.
        """
        self._put(self.stored(text, program=name) if self._as_json else self._prefixes.get(name, "") + text)

    def plain(self, text: str) -> None:
        """Write a line of the supervisor itself for the person at the terminal, without a name in front."""
        self._put(self.stored(text))

    def stored(self, text: str, **fields: str) -> str:
        """The line as a log file keeps it: without a process name in front; where the log is JSON, with `fields`."""
        if not self._as_json or is_event(text.encode("utf-8", "replace")):
            return text
        event = contained(text.strip(), FIELD_CHARS_MAX)
        return event_line({"level": "info", "logger": __name__, "event": event, **fields}, origin())

    def close(self, wait_s: float = 2.0) -> None:
        """Write the lines that wait and end the thread. Gives up after `wait_s` seconds, in case nobody reads the
        stream.
        """
        with suppress(queue.Full):
            self._lines.put(_END, timeout=wait_s)
            self._thread.join(wait_s)

    def _put(self, text: str) -> None:
        try:
            if self._dropped:
                self._lines.put_nowait(self.stored(f"[{self._dropped} lines were not shown: nobody read them]") + "\n")
                self._dropped = 0
            self._lines.put_nowait(text + "\n")
        except queue.Full:
            self._dropped += 1

    def _write(self) -> None:
        while (text := self._lines.get()) != _END:
            try:
                self._stream.write(text)
                if self._lines.empty():
                    self._stream.flush()
            except (OSError, ValueError):
                continue  # the terminal is gone; the files still have everything


class LogFile:
    """The log file of one process. A file that has become too large is put aside and a new one begun."""

    def __init__(self, file: Path) -> None:
        self._handler = _Quiet(file, maxBytes=FILE_BYTES_MAX, backupCount=FILES_KEPT, encoding="utf-8", delay=True)

    def write(self, text: str) -> None:
        """Append a line to the file."""
        self._handler.emit(logging.LogRecord("", logging.INFO, "", 0, text, (), None))

    def close(self) -> None:
        """Close the file."""
        self._handler.close()


class _Quiet(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's name
        """Ignore an error of writing: when the disk is full only this line is lost (reliability F27)."""


async def pump(pipe: asyncio.StreamReader, *takers: Callable[[str], None]) -> None:
    """Call each of `takers` with every line that a process writes to the pipe, until the process closes it."""
    rest = b""
    while chunk := await pipe.read(_LINE_BYTES_MAX):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LINE_BYTES_MAX:
            lines, rest = [*lines, rest], b""
        for line in lines:
            _carry(line, takers)
    if rest:
        _carry(rest, takers)


def _carry(line: bytes, takers: tuple[Callable[[str], None], ...]) -> None:
    text = line.decode("utf-8", "replace").rstrip("\r")
    for take in takers:
        take(text)


def _repeated(count: int) -> tuple[str, ...]:
    return tuple(_COLOURS[index % len(_COLOURS)] for index in range(count))
