"""What is known of a resource's newest revision, and what is said of it (interfaces.md section 8). Pure values."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Status(StrEnum):
    """The status of the newest revision of a resource, in one word (interfaces.md section 8)."""

    PUBLISHED = "published"  # served as written
    WAITING = "waiting"  # saved; no build has covered it yet, or a rollout has not brought it to everybody
    STALLED = "stalled"  # a reference, a conflict or a check keeps it from being served
    REFUSED = "refused"  # clients refuse it: an incident is open, whoever is connected
    QUARANTINED = "quarantined"  # out of service; an earlier revision that clients acknowledged is served
    WITHHELD = "withheld"  # out of service, and nothing is served, or only to some kinds of clients


class ConditionType(StrEnum):
    """The subject of a condition: `Accepted` is what clients say, `Published` whether Parley serves the revision."""

    ACCEPTED = "Accepted"
    PUBLISHED = "Published"


class Truth(StrEnum):
    """Whether a condition holds, in the words of Kubernetes."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a condition has its status, in one word for programs."""

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
    """An open incident about a resource: of the `sent` clients that were sent revision `revision`, `clients` refuse
    it.
    """

    incident: str
    clients: int
    sent: int
    revision: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A quarantine of the newest revision of a resource.

    `reason`: why it is quarantined.
    `withheld_from`: the only kinds of clients from which it is withheld, such as `grpc-core 1.85`; empty: all.
    """

    reason: str
    since: datetime
    withheld_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The newest revision of a resource, where the newest build does not serve it. `served`: whether an older revision
    is served instead; `rejected`: whether a quarantine is the reason.
    """

    reason: str
    served: bool
    rejected: bool
    since: datetime


@dataclass(frozen=True, slots=True)
class OnItsWay:
    """The newest revision of a resource, while the stable side does not have it (rollouts.md, "Words"). `rolling`:
    whether the open rollout has it; else it waits for the next one. `stable`: the number of the revision that the
    stable side has instead, 0 where that is nothing.
    """

    rolling: bool
    stable: int


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about the newest revision of a resource from which its status is derived.

    `revision`: its number.
    `covered_at`: when the first build that covered it ended; None where none did.
    `acknowledged_at`: when a client first acknowledged it; None where none did.
    `fallback`: the number of the newest earlier revision that a client acknowledged; 0 where there is none.
    `quarantine`: set while it is quarantined; `released_at`: when its quarantine ended.
    `refusal`: the open incident about this content; `earlier`: that about the content of an earlier revision.
    `suspicion`: the open incident about a response in which it was one of several suspects.
    `staged`: set while it waits for a rollout, or only a rollout's cohort has it.
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
    staged: OnItsWay | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """The few facts about a newest revision on which its status in one word depends.

    `unbuilt`: no build has covered it.
    `quarantined`: it is quarantined.
    `held`: the newest build does not serve it as written.
    `rejected`: it is held back for its quarantine.
    `served`: it is held back for its quarantine from all clients, and an older revision is served instead.
    `refused`: an open incident is about its content.
    `on_its_way`: it waits for a rollout, or only a rollout's cohort has it.
    """

    unbuilt: bool = False
    quarantined: bool = False
    held: bool = False
    rejected: bool = False
    served: bool = False
    refused: bool = False
    on_its_way: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a revision, in the form of Kubernetes' conditions. `message`: a sentence or two for people;
    `since`: from when the condition has had this status, or the earliest time that is still known.
    """

    type: ConditionType
    status: Truth
    reason: Reason
    message: str
    since: datetime
    revision: int


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """The status of a resource in one word. `reason`: a sentence that says why, empty where it is published; `refusal`:
    the open incident, None where there is none.
    """

    status: Status
    reason: str
    refusal: Refusal | None
    conditions: tuple[Condition, ...]

    def condition(self, kind: ConditionType) -> Condition:
        """The resource's condition of this type. There is always one."""
        return next(each for each in self.conditions if each.type is kind)
