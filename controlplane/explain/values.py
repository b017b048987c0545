"""What an explanation is made of: the question, the facts, and the answer with its rungs. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from controlplane.explain.answers import Answer
from xdscore.access import Effect
from xdscore.after_nack import NowRuns
from xdscore.decision import Decision
from xdscore.names import XDSTP, canonical
from xdscore.resource_types import ResourceType
from xdscore.xdstp import glob_of


class Has(StrEnum):
    """Whether the client has the resource."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"  # cannot be known, or not yet


class RungState(StrEnum):
    """How one rung of the explanation came out."""

    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"  # the question does not need it


class Reply(StrEnum):
    """The client's answer to the last response of the type; the words are those of stored subscriptions."""

    REQUESTED = "requested"
    SENT = "sent"
    ACKED = "acked"
    NACKED = "nacked"


@dataclass(frozen=True, slots=True)
class Question:
    """A question to Explain: why a client has, or does not have, this name. `at`: the epoch of an earlier snapshot;
    None: now.
    """

    environment: str
    kind: ResourceType
    name: str
    at: int | None = None


def clock(moment: datetime) -> str:
    """A time in UTC, to the second, as sentences write it."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class Origin:
    """A revision: its number, who wrote it, in which change, when."""

    number: int
    author: str
    change: str
    at: datetime

    def __str__(self) -> str:
        """The revision within a sentence: `r2, written by dana at … in change …`."""
        return f"r{self.number}, written by {self.author} at {clock(self.at)} in change {self.change}"


@dataclass(frozen=True, slots=True)
class NameFacts:
    """The facts about a name from which the explanation is derived.

    `existence` is the decision without any access rule. `written` is the newest revision, whose `deletion` it may be;
    `served` the one that clients get; `fallback` the one that a client gets that refused it; `elsewhere` names other
    environments that hold it; `findings` are what a build held against the newest; `incidents` the unresolved ones;
    `told` is the text clients read.
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


@dataclass(frozen=True, slots=True)
class Asked:
    """The subscription of an open stream to one type: the names, the last response, and the client's answer to it."""

    names: tuple[str, ...]
    wildcard: bool
    reply: Reply
    sent: str = ""
    sent_at: datetime | None = None
    acked: str = ""
    acked_at: datetime | None = None

    def covers(self, name: str) -> bool:
        """Whether the subscription asks for this name."""
        return bool(names_covered(self.names, wildcard=self.wildcard, wanted=(canonical(name),)))


def names_covered(asked: Iterable[str], *, wildcard: bool, wanted: Iterable[str]) -> frozenset[str]:
    """The names among these canonical ones that a subscription asks for: by name, by its wildcard, or by a glob
    collection (protocol.md H3).
    """
    names = set(map(canonical, asked))
    globs = [glob for name in names if (glob := glob_of(name)) is not None]
    return frozenset(
        name
        for name in wanted
        if (wildcard and not name.startswith(XDSTP)) or name in names or any(glob.contains(name) for glob in globs)
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """A NACK of the content that is served, on a stream that is open. `sure`: nothing else could be meant. `now`: what
    the client has instead; None where an ADS process of the version before took the NACK in.
    """

    text: str
    at: datetime
    sure: bool
    now: NowRuns | None = None


@dataclass(frozen=True, slots=True)
class ClientSide:
    """The facts about the client from which the explanation is derived. `doubtful`: groups it may belong to by
    metadata, which is not kept. `near`: names of the type that it asks for and that resemble the one in question.
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


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of the explanation, with its sentence."""

    number: int
    title: str
    state: RungState
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a path of the API, given by its parts, where there is more to read."""

    title: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ladder:
    """The explanation of why a client has, or does not have, a name. `sentence` is that of the rung that decided;
    `code` is what clients are told, if anything.

    `headline` says more than `has`, where a no would hide that the client has an earlier revision.
    """

    has: Has
    code: str
    sentence: str
    rungs: tuple[Rung, ...]
    next: tuple[str, ...]
    links: tuple[Link, ...]
    told: str
    headline: str = ""
