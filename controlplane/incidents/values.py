"""What incidents are made of, as values: causes, states and the ways between them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class IncidentCause(StrEnum):
    """What an incident is about: refusals, or a loss."""

    NACK = "nack"  # clients refuse something
    LOSS = "loss"  # clients lost something by a change


class IncidentState(StrEnum):
    """How far people have come with an incident (interfaces.md section 7)."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"  # somebody looks after it
    # What was refused is not served any more, the change that took something was taken back, or an operator says so.
    RESOLVED = "resolved"
    IGNORED = "ignored"  # counted, never acted upon


@dataclass(frozen=True, slots=True)
class Assignee:
    """Who is to look after an incident. `team`: it is an owner of resources, not a person; `id`: the id
    (`principal_ids.PrincipalId`) of a person or token, empty for a team and where it is not known; `gone`: they may not
    see the incident any more.
    """

    name: str
    id: str = ""
    team: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Mute:
    """Until when channels are told nothing of an incident, who said so, and why."""

    until: datetime
    by: str
    reason: str


# What an incident says of its words whose NACKs are not told apart: there were too many.
CROWDED = "more unresolved incidents than are told apart; the samples have the texts"

# What an incident says in place of a client's words, where the client that opened it gave none.
WORDLESS = "(refused without words)"

UNRESOLVED = (IncidentState.OPEN, IncidentState.ACKNOWLEDGED)

# Which states an operator may choose from which. The digest moves OPEN and ACKNOWLEDGED to RESOLVED, and RESOLVED back
# to OPEN when clients refuse what is current (texts.md 9.8).
TRANSITIONS: dict[IncidentState, frozenset[IncidentState]] = {
    IncidentState.OPEN: frozenset({IncidentState.ACKNOWLEDGED, IncidentState.RESOLVED, IncidentState.IGNORED}),
    IncidentState.ACKNOWLEDGED: frozenset({IncidentState.OPEN, IncidentState.RESOLVED, IncidentState.IGNORED}),
    IncidentState.RESOLVED: frozenset({IncidentState.OPEN, IncidentState.IGNORED}),
    IncidentState.IGNORED: frozenset({IncidentState.OPEN}),
}
