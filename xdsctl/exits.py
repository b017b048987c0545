"""What a command's exit status means, and the errors that lead to it (texts.md section 5).

The status never depends on the output format.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

JsonObject = dict[str, Any]


class Exit(IntEnum):
    """The exit status of a command, which says why it ended."""

    DONE = 0  # also "yes" and "no difference"
    NO = 1  # the answer is no: differences, findings, a refused change, a failed rollout
    USAGE = 2
    NO_ANSWER = 3  # network, authentication, a fault of the server: worth trying again
    CONFLICT = 4  # a moved base, a hold, a lost If-Match: look again first
    UNDECIDED = 5  # time ran out, or nobody can know
    LOSS = 6  # connected clients would lose something, and nobody said that this is meant


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding and the place in a file that it is about; `file` is empty where there is none."""

    code: str
    severity: str
    detail: str
    hint: str = ""
    resource: str = ""
    file: str = ""
    line: int = 0
    column: int = 0

    @property
    def place(self) -> str:
        """The place as `file:line:column`, without what is not known; empty without a file."""
        known = [self.file] if self.file else []
        if self.line:
            known += [str(self.line), str(self.column)]
        return ":".join(known)


class CommandError(Exception):
    """The reason why a command cannot go on: one sentence, more lines about it, findings, and the exit status."""

    def __init__(
        self,
        exit_status: Exit,
        text: str,
        *,
        more: Sequence[str] = (),
        remarks: Sequence[Remark] = (),
        document: JsonObject | None = None,
    ) -> None:
        super().__init__(text)
        self.exit_status = exit_status
        self.text = text
        self.more = tuple(more)
        self.remarks = tuple(remarks)
        # What a program may read of it, where the server sent something.
        self.document = document


class UsageError(CommandError):
    """The command line, or a file that it names, cannot be used."""

    def __init__(self, text: str, *, remarks: Sequence[Remark] = ()) -> None:
        super().__init__(Exit.USAGE, text, remarks=remarks)


class NoAnswerError(CommandError):
    """No server answered, or the one that answered did not accept the token."""

    def __init__(self, text: str, *, document: JsonObject | None = None) -> None:
        super().__init__(Exit.NO_ANSWER, text, document=document)


class DistrustError(NoAnswerError):
    """The server's certificate is not accepted; nothing was sent to the server."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command that was carried out ended: its exit status, and for standard error a sentence, `more` lines after
    it, and findings.
    """

    exit_status: Exit = Exit.DONE
    text: str = ""
    remarks: tuple[Remark, ...] = field(default=())
    more: tuple[str, ...] = ()
