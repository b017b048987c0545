"""What rollouts are made of, and what is told of them: values, never rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from xdscore.sides import Side

Key = tuple[str, str]
"""A type's word and a name."""


class RolloutState(StrEnum):
    """How a rollout stands (interfaces.md section 8)."""

    RUNNING = "running"  # it goes on by itself
    WAITING = "waiting"  # it waits for a person
    PAUSED = "paused"  # a person stopped it for now, or the database went back (R12)
    DONE = "done"  # something of it was promoted
    REVERTED = "reverted"  # everything was taken back after a failure
    ABORTED = "aborted"  # a person, a rollback or `on_failure: abort` ended it

    @property
    def ended(self) -> bool:
        """Whether nothing becomes of the rollout any more."""
        return self in {RolloutState.DONE, RolloutState.REVERTED, RolloutState.ABORTED}


OPEN_STATES = tuple(state for state in RolloutState if not state.ended)


class Outcome(StrEnum):
    """What the clients' answers mean. There is none while answers are waited for."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Phase(StrEnum):
    """Why a webhook is asked."""

    BEGIN = "begin"  # whether the first step may go out
    STEP = "step"  # whether it may go on after a step
    END = "end"  # it is told how the rollout ended, and its answer counts nothing


class ResourceOutcome(StrEnum):
    """What became of one resource of a rollout."""

    CANDIDATE = "candidate"  # only the cohort has it
    PROMOTED = "promoted"  # everybody may have it
    REVERTED = "reverted"  # taken back
    RETURNED = "returned"  # this rollout ended before its turn: it waits for the next one, or was written again


class Why(StrEnum):
    """Why a client is on the candidate side."""

    PILOT = "pilot"  # chosen, so that every changed resource is asked of each kind of client
    KIND = "kind"  # one of so many clients of its kind
    SECOND = "second"  # asked because another client of its kind refused, was lost, or said nothing (R8, R9, R10)
    GROUP = "group"  # a member of a group that the step names
    SHARE = "share"  # by chance, one of so many percent
    STEP = "step"  # one of so many clients


class ClientState(StrEnum):
    """What a client of a rollout said of what differs between the sides, as a whole."""

    TAKEN = "taken"  # it acknowledged all of it that it asks for
    REFUSED = "refused"  # it refused something of it
    WAITING = "waiting"  # an answer is still awaited
    SILENT = "silent"  # it did not answer in time (R10)
    LOST = "lost"  # its stream ended before it answered (R9)
    UNEXPOSED = "unexposed"  # it asks for nothing that differs
    GONE = "gone"  # it is not connected


@dataclass(frozen=True, slots=True)
class RolloutResource:
    """One resource of a rollout. `from_revision`: the number of what everybody had before, None where the name is new;
    `to_revision`: of what the cohort gets, None where that is a deletion. `incident`: the id of the incident that tells
    why it was taken back; empty where there is none. `because`: a sentence, where it was taken back.
    """

    type: str
    name: str
    from_revision: int | None
    to_revision: int | None
    outcome: ResourceOutcome
    change: str = ""
    author: str = ""
    incident: str = ""
    because: str = ""


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of a rollout. `who`: in words, such as "one client of each kind" or "10 % of the clients"; `meant`: the
    number of clients that it meant when the rollout opened; `bake_s`: for how many seconds it goes on at least.
    `outcome`, `ended_at`: None where it has not ended. `approvals`: who said that it may go on, in order.
    """

    number: int
    who: str
    meant: int
    bake_s: int
    approve: bool
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    approvals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """How many clients of the cohort there are, how many of them ask for something that differs (`exposed`), and what
    those said. A client that was lost is in `lost` alone; one that may still answer is in none of the last four.
    """

    cohort: int = 0
    exposed: int = 0
    acked: int = 0
    refused: int = 0
    silent: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class KindCounts:
    """The counts of one kind of client (`grpc-go 1.66`, or `other`). `connected`: all of that kind; `covered`: whether
    some client of it in the cohort asks for something that differs, or none of the kind does.
    """

    kind: str
    connected: int
    counts: Counts
    covered: bool


@dataclass(frozen=True, slots=True)
class RolloutView:
    """A rollout, with the members of interfaces.md section 8 and what its page shows.

    `step`: the number of the step, from 1. `begun`: whether the first step went out; false while webhooks are asked
    whether it may. `changes`: the public ids of its changes. `control`: the number of connected
    clients on the stable side. `outcome`, `reasons`: the verdict of the judge, in sentences. `uncovered`: kinds of
    clients of which nobody was asked. `waits_for`, `until`: what the gate waits for, as a sentence, and until when.
    `label`: how messages call it, such as "rollout 1f2e3d4c". `opened_by`: the authors of its changes.
    """

    id: str
    label: str
    environment: str
    mode: str
    state: RolloutState
    step: int
    steps: tuple[StepView, ...]
    changes: tuple[str, ...]
    resources: tuple[RolloutResource, ...]
    counts: Counts
    control: int
    outcome: Outcome | None
    reasons: tuple[str, ...]
    uncovered: tuple[str, ...]
    waits_for: str
    until: datetime | None
    started_at: datetime
    ended_at: datetime | None
    ended_because: str
    opened_by: tuple[str, ...]
    paused_because: str = ""
    kinds: tuple[KindCounts, ...] = ()
    begun: bool = True

    @property
    def reverted(self) -> tuple[RolloutResource, ...]:
        """The resources that were taken back."""
        return tuple(each for each in self.resources if each.outcome is ResourceOutcome.REVERTED)

    @property
    def promoted(self) -> tuple[RolloutResource, ...]:
        """The resources that everybody may have."""
        return tuple(each for each in self.resources if each.outcome is ResourceOutcome.PROMOTED)


@dataclass(frozen=True, slots=True)
class RolloutBrief:
    """A rollout as other pages tell of it: where it is, what clients said in all, and what it waits for."""

    id: str
    state: RolloutState
    step: int
    steps: int
    counts: Counts
    waits_for: str


@dataclass(frozen=True, slots=True)
class RolloutLine:
    """A rollout in a list. `resources`, `reverted`: how many it holds, and how many of them were taken back."""

    id: str
    environment: str
    mode: str
    state: RolloutState
    step: int
    steps: int
    resources: int
    reverted: int
    outcome: Outcome | None
    waits_for: str
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class RolloutPage:
    """A page of rollouts, newest first. `after`: the cursor at which the next page begins; empty on the last."""

    rows: tuple[RolloutLine, ...]
    after: str = ""


@dataclass(frozen=True, slots=True)
class NameAnswer:
    """What a client said of one name that differs. `state`: any but UNEXPOSED; `message`: its own words, where it
    refused.
    """

    type: str
    name: str
    state: ClientState
    message: str = ""


@dataclass(frozen=True, slots=True)
class RolloutClient:
    """A client and its side. `why`: None on the stable side; `because`: a sentence. `step`: with which step it came;
    0 on the stable side. `answers`: at most 50, refusals first.
    """

    client: str
    node_id: str
    identity: str
    kind: str
    side: Side
    why: Why | None
    because: str
    step: int
    state: ClientState
    answers: tuple[NameAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class RolloutClientPage:
    """A page of the clients of a rollout, by node id. `after`: the cursor of the next page; empty on the last."""

    rows: tuple[RolloutClient, ...]
    after: str = ""


@dataclass(frozen=True, slots=True)
class RolloutWatch:
    """What the page of a rollout shows of one moment: the rollout, a page of its clients, and those that refuse
    something (the first of them).
    """

    rollout: RolloutView
    clients: RolloutClientPage
    refusing: tuple[RolloutClient, ...]


@dataclass(frozen=True, slots=True)
class VerdictView:
    """A verdict that was kept, with the counts that it rests on: the points of a rollout's curve (R11). `outcome`: None
    where answers were still awaited.
    """

    at: datetime
    step: int
    outcome: Outcome | None
    reasons: tuple[str, ...]
    counts: Counts


@dataclass(frozen=True, slots=True)
class ClientSide:
    """On which side a client is now, for Explain: `rollout` is the id of the open rollout, `because` a sentence."""

    side: Side
    rollout: str
    step: int
    because: str


@dataclass(frozen=True, slots=True)
class PreviewStep:
    """What one step would mean to the fleet that is connected now: "of 214 clients, step 1 would be these 4, because".

    `meant`: the number of clients in all; `clients`: the first of those that this step adds, at most 20; `by_chance`:
    whether others of the same number may be chosen, because every rollout draws anew.
    """

    number: int
    who: str
    meant: int
    clients: tuple[RolloutClient, ...]
    by_chance: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """What settings would mean to the fleet of now. `kinds`: how many clients of each kind are connected."""

    connected: int
    kinds: Mapping[str, int]
    steps: tuple[PreviewStep, ...]
    uncovered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeStop:
    """What a rollout did to one change: what was taken back of it (empty: nothing yet), the ids of its incidents, and
    the id of the rollout.
    """

    rollout: str
    reverted: tuple[RolloutResource, ...]
    incidents: tuple[str, ...]
