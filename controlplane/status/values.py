"""What is known of a resource's newest revision, and what is said of it (interfaces.md section 8). Pure values."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Status(StrEnum):
    """The status of the newest revision of a resource, in one word (interfaces.md section 8)."""

    PUBLISHED = "published"  # served as written
    WAITING = "waiting"  # saved; no build has covered it yet
    STALLED = "stalled"  # a reference, a conflict or a check keeps it from being served
    REFUSED = "refused"  # clients refuse it: an incident is open, whoever is connected
    QUARANTINED = "quarantined"  # out of service; an earlier revision that clients acknowledged is served
    WITHHELD = "withheld"  # out of service, and nothing is served, or only to some kinds of clients


class ConditionType(StrEnum):
    """The subject of a condition: what clients say, or what Parley serves."""

    ACCEPTED = "Accepted"
    PUBLISHED = "Published"


class Truth(StrEnum):
    """The status of a condition, as Kubernetes writes it."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """The reason for the status of a condition, as a word for programs."""

    ACKNOWLEDGED = "Acknowledged"
    UNACKNOWLEDGED = "Unacknowledged"
    SUSPECTED = "Suspected"
    REFUSED = "Refused"
    PUBLISHED = "Published"
    WAITING = "Waiting"
    STALLED = "Stalled"
    QUARANTINED = "Quarantined"
    WITHHELD = "Withheld"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An open incident about the resource: `clients` of the `sent` that were sent revision `revision` refuse it."""

    incident: str
    clients: int
    sent: int
    revision: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A quarantine of the newest revision, because of `reason`.

    `withheld_from`: the kinds of clients, such as `grpc-core 1.85`, that it is withheld from while the others are
    served; empty: it is out of service for everybody.
    """

    reason: str
    since: datetime
    withheld_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A newest revision that the newest build does not serve: an older one is (`served`), or nothing.

    `rejected`: because of its quarantine.
    """

    reason: str
    served: bool
    rejected: bool
    since: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about the newest revision, with the number `revision`, from which its status is derived.

    `covered_at` is when the build that first covered it ended, None where none did. `acknowledged_at` is when a client
    first acknowledged it, `fallback` the newest revision before it that one did, 0 where there is none. Of open
    incidents, `refusal` is about this content, `earlier` about that of another revision, and `suspicion` about a
    response in which it was one of several that may be at fault.
    """

    revision: int
    written_at: datetime
    covered_at: datetime | None = None
    acknowledged_at: datetime | None = None
    fallback: int = 0
    quarantine: Quarantine | None = None
    released_at: datetime | None = None
    held: HeldBack | None = None
    refusal: Refusal | None = None
    earlier: Refusal | None = None
    suspicion: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """The facts on which the one word for the status of a newest revision depends, and no others.

    `unbuilt`: no build has covered it; `quarantined`: it is to be out of service; `held`: the newest build does not
    serve it as written, `rejected` because of its quarantine and with an older revision in its place (`served`), for
    all clients; `refused`: an open incident is about this content.
    """

    unbuilt: bool = False
    quarantined: bool = False
    held: bool = False
    rejected: bool = False
    served: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of revision `revision`, in the shape of Kubernetes' conditions.

    `since` is from when on, as far as it is kept; `message` a sentence or two for people.
    """

    type: ConditionType
    status: Truth
    reason: Reason
    message: str
    since: datetime
    revision: int


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """The status of a resource: one word, a sentence that says why (empty where it is published), who refuses it, and
    the conditions.
    """

    status: Status
    reason: str
    refusal: Refusal | None
    conditions: tuple[Condition, ...]

    def condition(self, kind: ConditionType) -> Condition:
        """The condition of this type; each resource has one of every type."""
        return next(each for each in self.conditions if each.type is kind)
