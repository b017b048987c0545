"""What a comment is made of, as values. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

MAX_TEXT_CHARS: Final = 4_000
MAX_COMMENTS: Final = 1_000
"""As many comments may a change, an incident or a resource have."""


class About(StrEnum):
    """What a comment is about."""

    CHANGE = "change"
    INCIDENT = "incident"
    RESOURCE = "resource"


@dataclass(frozen=True, slots=True)
class Subject:
    """A change, an incident or a resource. `key`: a public id or, of a resource, `TYPE/NAME`: what the audit log calls
    it; `row`: its primary key.
    """

    about: About
    environment: str
    key: str
    row: int


@dataclass(frozen=True, slots=True)
class CommentView:
    """A comment. `number` orders comments; `principal`: the id (`principal_ids.PrincipalId`) of who wrote it;
    `edited_at`: when its text was changed last, None where it is as it was written.
    """

    number: int
    id: str
    subject: Subject
    author: str
    principal: str
    text: str
    at: datetime
    edited_at: datetime | None


def text_problem(text: str) -> str:
    """The reason why a text cannot be that of a comment, as a sentence; empty for one that can."""
    if not text.strip():
        return "A comment needs a text."
    if len(text) > MAX_TEXT_CHARS:
        return f"The text has {len(text):,} characters; a comment has at most {MAX_TEXT_CHARS:,}."
    if not all(each.isprintable() or each in "\n\t" for each in text):
        return "The text holds a character that cannot be printed."
    return ""
