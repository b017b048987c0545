"""What is searched for, and what is found. Pure values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

MAX_WORDS: Final = 8
MAX_WORD_CHARS: Final = 200
MAX_CHARS: Final = 2_000

_UNSEEN: Final = re.compile(r"[\x00-\x20\x7f-\xa0]+")


class Kind(StrEnum):
    """The kinds of things that can be found, in the order in which they are shown."""

    ENVIRONMENT = "environment"
    RESOURCE = "resource"
    CLIENT = "client"
    INCIDENT = "incident"
    CHANGE = "change"
    CHANGE_SET = "change-set"
    ROLLOUT = "rollout"
    SNAPSHOT = "snapshot"
    GROUP = "group"
    RULE = "rule"
    COMMENT = "comment"
    CHANNEL = "channel"
    TOKEN = "token"  # noqa: S105 - a kind of thing, not a password
    CLIENT_TOKEN = "client-token"  # noqa: S105 - a kind of thing, not a password
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that was found.

    `id`: by which it is addressed: a public id, a row's number, a key, an epoch; of a resource its name.
    `environment`: empty where it is of none. `type`: of a resource or an incident, the type's word; of a comment what
        `subject` is, "change", "incident" or the type's word; else empty.
    `name`: what it is called; `text`: what else tells it apart. Both may be written by others.
    `found_at`, `excerpt`: for a resource that was found by its content, the pointer to the value that holds a word, and
        the value; else empty.
    `at`: when it was made, or seen last; None where that says nothing.
    `subject`: the id or name of what a comment is about; else empty.
    `state`: of an incident, a change set or a rollout; else empty.
    """

    kind: Kind
    id: str
    name: str
    environment: str = ""
    type: str = ""
    text: str = ""
    found_at: str = ""
    excerpt: str = ""
    at: datetime | None = None
    subject: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The things of one kind, the best first. `more`: there are others."""

    kind: Kind
    hits: tuple[Hit, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Unsearched:
    """How many resources' contents were not looked into: `older` than those that were, and `sealed` because they hold
    secrets.
    """

    older: int = 0
    sealed: int = 0


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that was found, by kind; kinds of which nothing was found are left out. `unsearched`: None where no
    content was to be searched.
    """

    words: tuple[str, ...]
    found: tuple[Found, ...] = ()
    unsearched: Unsearched | None = None

    @property
    def by_kind(self) -> Mapping[Kind, Found]:
        """What was found, by kind."""
        return {each.kind: each for each in self.found}


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, each once, in their order: at most eight, each cut at 200 characters."""
    words = _UNSEEN.sub(" ", text[:MAX_CHARS]).split()
    return tuple(dict.fromkeys(word[:MAX_WORD_CHARS] for word in words))[:MAX_WORDS]
