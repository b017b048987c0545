"""Derives how a resource stands from what is known of it: facts in, status out. Pure.

The only place that decides it; `selectors.status_filter` asks the same of the database for lists that are filtered.
"""

from datetime import datetime

from controlplane.status.values import (
    Condition,
    ConditionType,
    Facts,
    Marks,
    OnItsWay,
    Reason,
    Refusal,
    ResourceStatus,
    Status,
    Truth,
)


def word_of(marks: Marks) -> Status:
    """The status, in one word, that follows from these facts about a newest revision.

    A revision that is quarantined and out of service has that status whether or not an incident is open. One that
    clients refuse is "refused", even while it is held back for another reason (interfaces.md section 8).
    """
    if marks.quarantined and marks.rejected and not marks.unbuilt:
        return Status.QUARANTINED if marks.served else Status.WITHHELD
    if marks.refused:
        return Status.REFUSED
    if marks.unbuilt or marks.quarantined != marks.rejected:
        return Status.WAITING
    if marks.held:
        return Status.STALLED
    return Status.WAITING if marks.on_its_way else Status.PUBLISHED


def status_of(facts: Facts) -> ResourceStatus:
    """The status that follows from the facts about a newest revision, with its reason and conditions."""
    accepted, published = _accepted(facts), _published(facts)
    status, reason = word_of(_marks(facts)), published.message
    if status is Status.PUBLISHED:
        reason = ""
    elif status is Status.REFUSED and facts.refusal is not None:
        reason = _refused(facts.refusal, facts.revision)
    return ResourceStatus(status, reason, facts.refusal, (accepted, published))


def _marks(facts: Facts) -> Marks:
    held, quarantine = facts.held, facts.quarantine
    everywhere = quarantine is None or not quarantine.withheld_from
    return Marks(
        unbuilt=facts.covered_at is None,
        quarantined=quarantine is not None,
        held=held is not None,
        rejected=held is not None and held.rejected,
        served=held is not None and held.rejected and held.served and everywhere,
        refused=facts.refusal is not None,
        on_its_way=facts.staged is not None,
    )


def _accepted(facts: Facts) -> Condition:
    """The condition `Accepted`: what clients say of the revision. While an incident about it is open the condition is
    not true, however many clients have acknowledged the revision.
    """
    number, written_at = facts.revision, facts.written_at
    kind = ConditionType.ACCEPTED
    if facts.refusal is not None:
        since = max(facts.refusal.since, written_at)
        message = f"{_refused(facts.refusal, number)} {_incident(facts.refusal)}"
        return Condition(kind, Truth.FALSE, Reason.REFUSED, message, since, number)
    if facts.suspicion is not None:
        since = max(facts.suspicion.since, written_at)
        message = f"{_count(facts.suspicion)} refused a response of which r{number} may be the cause."
        message = f"{message} {_incident(facts.suspicion)}"
        return Condition(kind, Truth.UNKNOWN, Reason.SUSPECTED, message, since, number)
    if facts.acknowledged_at is not None:
        message = f"A client has acknowledged r{number}."
        return Condition(kind, Truth.TRUE, Reason.ACKNOWLEDGED, message, facts.acknowledged_at, number)
    message = f"No client has acknowledged r{number} yet."
    if facts.earlier is not None:
        message = f"{message} {_refused(facts.earlier, facts.earlier.revision)} {_incident(facts.earlier)}"
    return Condition(kind, Truth.UNKNOWN, Reason.UNACKNOWLEDGED, message, written_at, number)


def _published(facts: Facts) -> Condition:
    """The condition `Published`: whether the newest build serves the revision as written. While the revision or its
    quarantine waits for a build the condition is false, with the reason that it waits.
    """
    number, written_at = facts.revision, facts.written_at
    quarantine, held = facts.quarantine, facts.held
    kind = ConditionType.PUBLISHED
    if facts.covered_at is None:
        message = f"r{number} is saved and waits for the next build."
        return Condition(kind, Truth.FALSE, Reason.WAITING, message, written_at, number)
    rejected = held is not None and held.rejected
    if quarantine is not None and not rejected:
        message = f"The quarantine of r{number} waits for the next build."
        return Condition(kind, Truth.FALSE, Reason.WAITING, message, quarantine.since, number)
    if rejected and quarantine is None:
        message = f"r{number} is out of quarantine and waits for the next build."
        return Condition(kind, Truth.FALSE, Reason.WAITING, message, facts.released_at or written_at, number)
    if quarantine is not None and held is not None:
        reason, outcome = _out_of_service(facts, served=held.served, kinds=quarantine.withheld_from)
        message = f"{outcome} Why: {quarantine.reason.rstrip('.')}."
        return Condition(kind, Truth.FALSE, reason, message, max(quarantine.since, written_at), number)
    if held is not None:
        instead = "Clients get an older revision." if held.served else "Clients get nothing under this name."
        message = f"{held.reason[:1].upper()}{held.reason[1:]}. {instead}"
        return Condition(kind, Truth.FALSE, Reason.STALLED, message, max(held.since, written_at), number)
    return _served(facts, facts.covered_at)


def _served(facts: Facts, covered_at: datetime) -> Condition:
    """The condition `Published` of a revision with which nothing is wrong: whether all clients may have it already."""
    kind, number = ConditionType.PUBLISHED, facts.revision
    if facts.staged is not None:
        message = _on_its_way(facts.staged, number)
        return Condition(kind, Truth.FALSE, Reason.WAITING, message, facts.written_at, number)
    since = max(covered_at, facts.released_at or covered_at)
    return Condition(kind, Truth.TRUE, Reason.PUBLISHED, f"r{number} is served as written.", since, number)


def _on_its_way(staged: OnItsWay, number: int) -> str:
    before = f"get r{staged.stable}" if staged.stable else "get nothing under this name"
    if staged.rolling:
        return f"r{number} is on its way: the clients that the open rollout asks have it, the others {before}."
    return f"r{number} waits for the next rollout; clients {before}."


def _out_of_service(facts: Facts, *, served: bool, kinds: tuple[str, ...]) -> tuple[Reason, str]:
    number = facts.revision
    if kinds:
        return Reason.WITHHELD, f"r{number} is withheld from {', '.join(kinds)}; other clients get it."
    if not served:
        return Reason.WITHHELD, f"r{number} is withheld, and clients get nothing under this name."
    instead = f"r{facts.fallback}" if facts.fallback else "an older revision"
    return Reason.QUARANTINED, f"r{number} is out of service; clients get {instead}."


def _refused(refusal: Refusal, number: int) -> str:
    return f"{_count(refusal)} refuse{'s' if refusal.clients == 1 else ''} r{number}."


def _count(refusal: Refusal) -> str:
    return f"{refusal.clients} of {refusal.sent} client{'' if refusal.sent == 1 else 's'}"


def _incident(refusal: Refusal) -> str:
    return f"Incident: {refusal.incident}."
