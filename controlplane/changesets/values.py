"""What goes into and comes out of the services of change sets: values, never rows. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from controlplane.access.choices import EditAction, EditSubject
from controlplane.access.steps import State, action_of
from controlplane.access.values import Wish

ACCESS_WORDS: Final = frozenset(each.value for each in EditSubject)
"""What stands for the type of a rule or group where others name a resource; no type has these words."""
MAX_TITLE_CHARS: Final = 200
MAX_MESSAGE_CHARS: Final = 1_000
MAX_REASON_CHARS: Final = 1_000
MAX_OPEN: Final = 500
"""As many change sets that were not published may an environment have."""
MAX_WISHES: Final = 500
"""As many rules and groups may a change set write or delete."""
MAX_REMARKS: Final = 1_000
"""As many approvals, rejections and comments may a change set have."""


class SetState(StrEnum):
    """How a change set stands.

    STALE and EXPIRED are never stored: they follow from what was written to the environment, and from the time.
    """

    DRAFT = "draft"
    REVIEW = "review"
    APPROVED = "approved"
    SCHEDULED = "scheduled"
    PUBLISHED = "published"
    REJECTED = "rejected"
    EXPIRED = "expired"
    STALE = "stale"


STORED_STATES: Final = tuple(each for each in SetState if each not in (SetState.EXPIRED, SetState.STALE))
OPEN_STATES: Final = (SetState.DRAFT, SetState.REVIEW, SetState.APPROVED, SetState.SCHEDULED)
"""The stored states in which a change set may still be published without being edited first."""


class Verdict(StrEnum):
    """What somebody said of a change set."""

    APPROVED = "approved"
    REJECTED = "rejected"
    COMMENT = "comment"


class Take(StrEnum):
    """Which content a change set has of a name that was written since: its own, or what is stored, so that the name
    leaves the set.
    """

    OURS = "ours"
    THEIRS = "theirs"


@dataclass(frozen=True, slots=True)
class Merge:
    """What a change set does about one name that moved."""

    type: str
    name: str
    take: Take


@dataclass(frozen=True, slots=True)
class Remark:
    """What somebody said of a change set, at one version of it.

    `counts`: it is an approval that counts now. `type`, `name`, `line`: what a comment is about: the line of the
    resource's manifest in YAML; empty and None where it is about the whole.
    """

    author: str
    verdict: Verdict
    text: str
    version: int
    at: datetime
    counts: bool
    type: str = ""
    name: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class SetEntry:
    """A resource that a change set writes or, where `deletes`, deletes. `base`: the revision that it was made from; 0:
    there was none.
    """

    type: str
    name: str
    deletes: bool
    base: int


@dataclass(frozen=True, slots=True)
class SetWish:
    """An access rule or client group that a change set writes or deletes. `base`: how many edits of it there were when
    the set was made from it, 0: there was none; `before`: its JSON then.
    """

    wish: Wish
    base: int
    before: State | None

    @property
    def key(self) -> tuple[str, str]:
        """What others call it by: `rule` or `group`, and its name."""
        return self.wish.subject.value, self.wish.name

    @property
    def after(self) -> State | None:
        """The JSON of the rule or group as the set has it; None where the set deletes it."""
        return self.wish.draft.as_json() if self.wish.draft is not None else None

    @property
    def action(self) -> EditAction:
        """What becomes of it."""
        return EditAction.DELETED if self.wish.draft is None else action_of(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Holds:
    """What a change set writes or deletes: resources, by type and name, and whether there are rules or groups."""

    keys: tuple[tuple[str, str], ...]
    access: bool


@dataclass(frozen=True, slots=True)
class SetBrief:
    """A change set that writes a resource or, where `deletes`, deletes it."""

    id: str
    title: str
    deletes: bool


@dataclass(frozen=True, slots=True)
class SetPublished:
    """A change set that is a change now, and who published it."""

    id: str
    title: str
    published_by: str


@dataclass(frozen=True, slots=True)
class Moved:
    """A resource, rule or group of a change set that was written since the set was made: from which revision to which
    (0: there is none), by whom and by which change. Of a rule or group, its edits are counted as its revisions.
    """

    type: str
    name: str
    base: int
    now: int
    author: str
    change: str

    @property
    def is_access(self) -> bool:
        """Whether a rule or group moved, and no resource."""
        return self.type in ACCESS_WORDS


@dataclass(frozen=True, slots=True)
class SetView:
    """How a change set stands.

    `version`: the number of its edits and submissions; an approval is of one version.
    `authors`: the names of who made or edited it, the maker first.
    `resources`, `access`: how many resources, and how many rules and groups, it writes or deletes; `moved`: how many of
    all these were written since it was made.
    `approvals`: how many approvals count now; `needed`: how many the environment asks for; `required`: without them it
    cannot be published.
    `waits_for`: what it waits for, or why it was not published at its time, as a sentence; empty for nothing.
    `changes`: the public ids of the changes that it was published as; none where everything was so already.
    """

    id: str
    environment: str
    title: str
    message: str
    state: SetState
    version: int
    authors: tuple[str, ...]
    resources: int
    access: int
    moved: int
    base_generation: int
    approvals: int
    needed: int
    required: bool
    not_before: datetime | None
    expires: datetime | None
    waits_for: str
    scheduled_by: str
    published_by: str
    changes: tuple[str, ...]
    created_at: datetime
    edited_at: datetime
    ended_at: datetime | None

    @property
    def contents(self) -> int:
        """How many resources, rules and groups it writes or deletes."""
        return self.resources + self.access
