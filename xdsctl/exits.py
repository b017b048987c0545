"""What a command's exit status means, and the errors that lead to it (texts.md section 5).

The status never depends on the output format. Nothing else says what one means: `--help` and the page of xdsctl have
these texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Self

JsonObject = dict[str, Any]


class Exit(IntEnum):
    """The exit status of a command, which says why it ended; `meaning` says it to people."""

    meaning: str

    def __new__(cls, status: int, meaning: str) -> Self:
        member = int.__new__(cls, status)
        member._value_ = status
        member.meaning = meaning
        return member

    DONE = 0, "done; yes; no difference"
    NO = 1, "the answer is no: differences, findings, a refused change, a rollout that clients refuse"
    USAGE = 2, "wrong usage"
    NO_ANSWER = 3, "no answer: the network, a fault of the server. Worth trying again"
    CONFLICT = (
        4,
        "conflict: a moved base, a hold, a freeze, no review, a lost If-Match, broken route cases. Look again first",
    )
    UNDECIDED = 5, "undecided: time ran out, or nobody can know"
    LOSS = (
        6,
        "connected clients would lose something, and nobody said that it is meant (--accept-loss). Nothing was changed",
    )
    NOT_THERE = 7, "what the command line names is not there, or this token may not see it"
    NOT_ACCEPTED = (
        8,
        (
            "not accepted: a wrong or expired token, a role that is lacking, a certificate that is not trusted. "
            "Trying again does not help"
        ),
    )


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
        asked: str = "",
    ) -> None:
        super().__init__(text)
        self.exit_status = exit_status
        self.text = text
        self.more = tuple(more)
        self.remarks = tuple(remarks)
        # What a program may read of it, where the server sent something.
        self.document = document
        # The URL of the request that was refused; empty where none was.
        self.asked = asked


class UsageError(CommandError):
    """The command line, or a file that it names, cannot be used."""

    def __init__(self, text: str, *, remarks: Sequence[Remark] = ()) -> None:
        super().__init__(Exit.USAGE, text, remarks=remarks)


class NoAnswerError(CommandError):
    """No server answered, or what answered is not one."""

    def __init__(self, text: str, *, document: JsonObject | None = None) -> None:
        super().__init__(Exit.NO_ANSWER, text, document=document)


class NotThereError(CommandError):
    """What the command line names is not there; `text` may end in the names that come closest."""

    def __init__(self, text: str, *, document: JsonObject | None = None, asked: str = "") -> None:
        super().__init__(Exit.NOT_THERE, text, document=document, asked=asked)


class DistrustError(CommandError):
    """The server's certificate is not accepted; nothing was sent to the server."""

    def __init__(self, text: str) -> None:
        super().__init__(Exit.NOT_ACCEPTED, text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command that was carried out ended: its exit status, and for standard error a sentence, `more` lines after
    it, and findings.
    """

    exit_status: Exit = Exit.DONE
    text: str = ""
    remarks: tuple[Remark, ...] = field(default=())
    more: tuple[str, ...] = ()
