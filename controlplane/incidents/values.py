"""What incidents are made of, as values: causes, states and the ways between them."""

from enum import StrEnum


class IncidentCause(StrEnum):
    """Whether an incident is about refusals or about a loss."""

    NACK = "nack"  # clients refuse something
    LOSS = "loss"  # clients lost something by a change


class IncidentState(StrEnum):
    """How far people have come with an incident (interfaces.md section 7)."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"  # somebody looks after it
    # What was refused is not served any more, the change that took something was taken back, or an operator says so.
    RESOLVED = "resolved"
    IGNORED = "ignored"  # counted, never acted upon


# What an incident says of its words whose NACKs are not told apart: there were too many.
CROWDED = "more unresolved incidents than are told apart; the samples have the texts"

UNRESOLVED = (IncidentState.OPEN, IncidentState.ACKNOWLEDGED)

# Which states an operator may choose from which. The digest moves OPEN and ACKNOWLEDGED to RESOLVED, and RESOLVED back
# to OPEN when clients refuse what is current (texts.md 9.8).
TRANSITIONS: dict[IncidentState, frozenset[IncidentState]] = {
    IncidentState.OPEN: frozenset({IncidentState.ACKNOWLEDGED, IncidentState.RESOLVED, IncidentState.IGNORED}),
    IncidentState.ACKNOWLEDGED: frozenset({IncidentState.OPEN, IncidentState.RESOLVED, IncidentState.IGNORED}),
    IncidentState.RESOLVED: frozenset({IncidentState.OPEN, IncidentState.IGNORED}),
    IncidentState.IGNORED: frozenset({IncidentState.OPEN}),
}
