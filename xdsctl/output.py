"""What is written where: data to standard output in the format asked for, everything else to standard error.

Texts from the server may hold what others wrote: nothing that a terminal would obey passes (reliability threat 15).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from xdscore.lazily import Lazily
from xdsctl.exits import CommandError, Exit, JsonObject, Outcome, Remark, UsageError

if TYPE_CHECKING:
    import yaml
    from rich import console as screen
    from rich import text as styled
else:
    screen, styled, yaml = Lazily("rich.console"), Lazily("rich.text"), Lazily("yaml")

_MAX_CELL_CHARS: Final = 80
_STYLES: Final = {
    "error": "red",
    "warning": "yellow",
    "note": "dim",
    "FAIL": "red",
    "nacked": "red",
    "open": "red",
    "failed": "red",
    "refused": "red",
    "quarantined": "red",
    "withheld": "red",
    "lost": "red",
    "refusing": "red",
    "denied": "red",
    "silent": "yellow",
    "asks in vain": "yellow",
    "held": "yellow",
    "stalled": "yellow",
    "created": "green",
    "updated": "yellow",
    "deleted": "red",
    "acked": "green",
    "ok": "green",
}
_GITHUB: Final = {"error": "error", "warning": "warning", "note": "notice"}


class Format(Enum):
    """The formats of a command's output."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    GITHUB = "github"  # workflow annotations


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `read` returns its value in a row; a `wide` column is shown only with `-o wide`."""

    title: str
    read: Callable[[JsonObject], object]
    wide: bool = False


class Printer:
    """Writes the output of one command in the chosen format."""

    def __init__(self, form: Format = Format.TABLE, *, color: bool = True, quiet: bool = False) -> None:
        self.form = form
        self._quiet = quiet
        self._plain = not color or "NO_COLOR" in os.environ

    @cached_property
    def _out(self) -> screen.Console:
        return self._console(stderr=False)

    @cached_property
    def _err(self) -> screen.Console:
        return self._console(stderr=True)

    def _console(self, *, stderr: bool) -> screen.Console:
        class Console(screen.Console):
            def on_broken_pipe(self) -> None:
                raise  # noqa: PLE0704 - the error that it is called for; rich would end the program with status 1

        return Console(no_color=self._plain, highlight=False, soft_wrap=True, emoji=False, stderr=stderr)

    def rows(self, items: Iterable[JsonObject], columns: Sequence[Column], name: Callable[[JsonObject], str]) -> None:
        """Print a list: as a table, as data, or as names only. `name` returns an item's name."""
        found = list(items)
        match self.form:
            case Format.JSON | Format.YAML:
                self.data(found)
            case Format.NAME:
                for each in found:
                    self._write(self._out, name(each))
            case _:
                shown = [column for column in columns if not column.wide or self.form is Format.WIDE]
                self._table(
                    [column.title for column in shown], [[column.read(each) for column in shown] for each in found]
                )
                if not found:
                    self.say("Nothing found.")

    def document(self, content: object, text: Callable[[], str], *, name: str = "") -> None:
        """Print one object: in formats for programs as data, or as its `name`; otherwise the text that `text`
        returns.
        """
        match self.form:
            case Format.JSON | Format.YAML:
                self.data(content)
            case Format.NAME if name:
                self._write(self._out, name)
            case _:
                self.text(text())

    def data(self, content: object) -> None:
        """Print `content` as JSON or YAML, with the server's own member names."""
        if self.form is Format.YAML:
            sys.stdout.write(f"{as_yaml(content)}\n")
        else:
            json.dump(content, sys.stdout, indent=2, ensure_ascii=False)
            sys.stdout.write("\n")

    def text(self, text: str) -> None:
        """Print lines to standard output."""
        for line in text.splitlines():
            self._write(self._out, line)

    def say(self, text: str) -> None:
        """Print a sentence about the output to standard error, unless --quiet was given."""
        if not self._quiet and text:
            self._write(self._err, text)

    def outcome(self, outcome: Outcome) -> None:
        """Print the findings and sentences of the outcome with which the command ended."""
        self.remarks(outcome.remarks)
        for line in (outcome.text, *outcome.more):
            self.say(line)

    def error(self, error: CommandError) -> None:
        """Print why the command did not go on, even with --quiet; in formats for programs also as data."""
        if self.form in {Format.JSON, Format.YAML} and error.document is not None:
            self.data(error.document)
        self.remarks(error.remarks)
        label = "usage" if error.exit_status is Exit.USAGE else "error"
        self._write(self._err, f"{label}: {error.text}", word=label)
        for line in error.more:
            self._write(self._err, line)

    def ask(self, told: Iterable[str], question: str) -> str | None:
        """Print the lines `told` and the question, and return the line that the person at the terminal types; None when
        nobody sits at one.
        """
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        for line in told:
            self._write(self._err, line)
        self._err.print(styled.Text(harmless(question)), end=" ")
        return sys.stdin.readline().strip()

    def confirm(self, told: Iterable[str], question: str, *, meant: bool) -> None:
        """Return only if the action is meant: because an option says so (`meant`), or the person at the terminal does
        when asked. Raises CommandError.
        """
        if meant:
            return
        typed = self.ask(told, f"{question} Type yes to go on:")
        if typed is None:
            raise UsageError("Nobody sits at a terminal to be asked; --yes says that it is meant. Nothing was changed.")
        if typed.lower() not in {"y", "yes"}:
            raise CommandError(Exit.NO, "Nothing was changed.")

    def remarks(self, remarks: Iterable[Remark]) -> None:
        """Print findings: each as a line on standard error or, in the format `github`, as an annotation on standard
        output.
        """
        for remark in remarks:
            if self.form is Format.GITHUB:
                print(annotation(remark))
                continue
            about = remark.place or remark.resource
            head = f"{about}: " if about else ""
            tail = f" {remark.hint}" if remark.hint else ""
            self._write(
                self._err, f"{head}{remark.severity} {remark.code}: {remark.detail}{tail}", word=remark.severity
            )

    def progress(self, text: str) -> AbstractContextManager[Any]:
        """A context that shows `text` on a terminal meanwhile: what the command is waiting for."""
        if self._quiet or not sys.stderr.isatty():
            return nullcontext()
        return self._err.status(harmless(text))

    def _table(self, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        if not rows:
            return
        cells = [list(titles)] + [[_cell(value, wide=self.form is Format.WIDE) for value in row] for row in rows]
        widths = [max(len(row[index]) for row in cells) for index in range(len(titles))]
        for row in cells:
            line = styled.Text()
            for cell, width in zip(row, widths, strict=True):
                line.append(cell.ljust(width), style=_STYLES.get(cell, ""))
                line.append("  ")
            line.rstrip()
            self._out.print(line)

    def _write(self, console: screen.Console, line: str, *, word: str = "") -> None:
        text = styled.Text(harmless(line))
        if word:
            text.highlight_words([word], _STYLES.get(word, "red"), case_sensitive=True)
        console.print(text)


def as_yaml(content: object) -> str:
    """`content` as YAML, with its keys in their own order."""
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120).rstrip("\n")


def harmless(text: str) -> str:
    """`text` with escapes in place of characters that a terminal would obey or that would reverse its direction."""
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)


def annotation(remark: Remark) -> str:
    """A finding as a GitHub workflow command, which shows it at its line of the file."""
    place = [f"file={_property(remark.file)}"] if remark.file else []
    if remark.line:
        place += [f"line={remark.line}", f"col={remark.column}"]
    place.append(f"title={_property(remark.code)}")
    message = f"{remark.resource}: {remark.detail}" if remark.resource else remark.detail
    message = f"{message} {remark.hint}".rstrip()
    return f"::{_GITHUB[remark.severity]} {','.join(place)}::{_message(message)}"


def remark_json(remark: Remark) -> JsonObject:
    """A finding as data; members that are empty are left out."""
    return {key: value for key, value in asdict(remark).items() if value}


def ago(moment: str | None) -> str:
    """How long ago an RFC 3339 time was, in words; for None, that it never was."""
    if not moment:
        return "never"
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{max(seconds, 0)}s ago"


def _cell(value: object, *, wide: bool) -> str:
    text = harmless("-" if value in (None, "") else "yes" if value is True else "no" if value is False else str(value))
    return text if wide or len(text) <= _MAX_CELL_CHARS else text[: _MAX_CELL_CHARS - 1] + "…"


def _message(text: str) -> str:
    return harmless(text).replace("%", "%25")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
