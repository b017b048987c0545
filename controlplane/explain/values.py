"""What an explanation is made of: the question, the facts, and the answer with its rungs. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from controlplane.catalog.choices import StagedState
from controlplane.clients.asks import names_covered
from controlplane.explain.answers import Answer
from xdscore.access import Effect
from xdscore.after_nack import NowRuns
from xdscore.decision import Decision
from xdscore.holdings import HoldingState
from xdscore.names import canonical
from xdscore.resource_types import ResourceType


class Has(StrEnum):
    """Whether the client has the resource that is asked about."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"  # cannot be known, or not yet


class RungState(StrEnum):
    """How one question (rung) of the explanation was answered."""

    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"  # the question does not need it


@dataclass(frozen=True, slots=True)
class Question:
    """A question to Explain: why a client has, or does not have, a name. `at`: the epoch of an earlier snapshot; None:
    now. `time`: a time in the past, at which `at` was the epoch (truth.md H6); None where none was asked about.
    """

    environment: str
    kind: ResourceType
    name: str
    at: int | None = None
    time: datetime | None = None


def clock(moment: datetime) -> str:
    """The time in UTC, to the second, as it is written in sentences."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class Origin:
    """A revision: its number, who wrote it, in which change (short id), and when."""

    number: int
    author: str
    change: str
    at: datetime

    def __str__(self) -> str:
        """The revision as words in a sentence: `r2, written by dana at … in change …`."""
        return f"r{self.number}, written by {self.author} at {clock(self.at)} in change {self.change}"


@dataclass(frozen=True, slots=True)
class Staged:
    """A name whose newest revision, number `newest`, is not what the stable side has: revision `stable`, or nothing
    (None). `deletion`: the newest revision is one.
    """

    state: StagedState
    stable: int | None
    newest: int
    deletion: bool = False


@dataclass(frozen=True, slots=True)
class OnSide:
    """On which side of the open rollout with the id `rollout` a client is, and why, as a sentence (rollouts.md R14)."""

    candidate: bool
    rollout: str
    because: str


@dataclass(frozen=True, slots=True)
class NameFacts:
    """The facts about a name from which the explanation follows.

    `decision`, `answer`: what the access rules and the snapshot say; `existence`: the decision without any access rule.
    `written`: the newest revision; `deletion`: whether it is one; `waiting`: whether no build has covered it.
    `served`: the revision that clients are sent; `fallback`: that for a client which refused the served one.
    `findings`: what a build found against the newest revision. `incidents`: those not resolved.
    `elsewhere`: other environments that have the name.
    `told`: the error text that clients are sent in place of the resource.
    `staged`: set where the newest revision is not what the stable side has.
    `rollout`: the id of the environment's open rollout; empty where none is.
    `rehearsal`: the id of its open rehearsal; empty where none is. `rehearses`: the client is one of those that
        rehearse.
    """

    decision: Decision
    existence: Decision
    answer: Answer
    default: Effect | None = None
    epoch: int | None = None
    served: Origin | None = None
    fallback: Origin | None = None
    written: Origin | None = None
    deletion: bool = False
    quarantined: bool = False
    waiting: bool = False
    findings: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    told: str = ""
    staged: Staged | None = None
    rollout: str = ""
    rehearsal: str = ""
    rehearses: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The names of one type that an open stream asks for, and whether it asks for all of the type."""

    names: tuple[str, ...]
    wildcard: bool

    def covers(self, name: str) -> bool:
        """Whether the subscription asks for this name, be it by name, by wildcard or by a collection."""
        return bool(names_covered(self.names, wildcard=self.wildcard, wanted=(canonical(name),)))


@dataclass(frozen=True, slots=True)
class Held:
    """What a client has of a name: its state, the version and revision that it was sent, refused or acknowledged, and
    what it goes on with (`acked…`; empty and None where it has nothing). Revisions are None where the catalogue does
    not know the content.

    `code`: of the error that it was told. `message`: that error, a sentence about the state, or the client's own words.
    `since`: since when it is so. `others`: whether it was sent others of the type, which it asks for as a whole.
    `unused`: a sentence that says that it does not use it yet, and why; empty where nothing speaks against it.
    """

    state: HoldingState
    version: str = ""
    revision: int | None = None
    acked_version: str = ""
    acked_revision: int | None = None
    message: str = ""
    since: datetime | None = None
    code: str = ""
    others: bool = False
    unused: str = ""

    @property
    def acked(self) -> str:
        """What the client goes on with, in words; empty where that is nothing."""
        return f"r{self.acked_revision}" if self.acked_revision else self.acked_version and "what it had before"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A NACK of the content that the client refused, on an open stream.

    `now`: what the client has instead; None where an ADS process of the version before this one reported the NACK.
    """

    text: str
    at: datetime
    now: NowRuns | None = None


@dataclass(frozen=True, slots=True)
class ClientSide:
    """The facts about the client from which the explanation follows; where the question is about a time, what was so
    then.

    `groups`: the client groups to which it belongs; `doubtful`: those to which it may belong by its metadata, which is
        not stored.
    `near`: names that it asks for and that are similar to the name in the question.
    `held`: what it has of the name in the question; None where its streams did not say yet.
    `unknown`: the reason, as a sentence, why nobody knows what it had at the time in question; empty where it is known.
    `side`: on which side of the open rollout it is; None where none is open.
    """

    id: str
    environment: str
    identity: str
    node_id: str
    family: str
    connected: bool
    last_seen: datetime
    groups: tuple[str, ...] = ()
    doubtful: frozenset[str] = frozenset()
    asked: tuple[Asked, ...] = ()
    near: tuple[str, ...] = ()
    refusal: Refusal | None = None
    held: Held | None = None
    unknown: str = ""
    side: OnSide | None = None


@dataclass(frozen=True, slots=True)
class Rung:
    """One question of the explanation, by its number and title, how it came out, and the sentence that answers it."""

    number: int
    title: str
    state: RungState
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a path of the API where there is more to read; `parts` are the parts of the path."""

    title: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ladder:
    """The explanation of why a client has, or does not have, a name.

    `sentence`: that of the question (rung) that decided.
    `code`: the code of the error that clients are told; empty where they are told none.
    `next`: what to do. `told`: the error text that clients are sent.
    `refused`: whether the client refused what is served.
    `headline`: says more than `has` where the client does have an earlier revision; else empty.
    `node_id`: of the client that the question names; empty where it names none.
    """

    has: Has
    code: str
    sentence: str
    rungs: tuple[Rung, ...]
    next: tuple[str, ...]
    links: tuple[Link, ...]
    told: str
    headline: str = ""
    refused: bool = False
    node_id: str = ""


def skipped(number: int, title: str, text: str) -> Rung:
    """A rung that the question does not need; `text` says why."""
    return Rung(number, title, RungState.SKIPPED, text)


def listed(names: Iterable[str]) -> str:
    """The names in quotation marks, as they are listed in sentences."""
    return ", ".join(f"'{name}'" for name in names)
