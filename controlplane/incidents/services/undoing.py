"""Takes back a change that took a revision out of service, or put it back."""

from controlplane.accounts.principal import Principal
from controlplane.catalog.choices import QuarantineCause
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.selectors import quarantine_last
from controlplane.catalog.services import quarantine_open, quarantine_release
from controlplane.catalog.undoing import QuarantineMoved, Undoes, Way, obstacle
from controlplane.catalog.values import ChangeMade
from controlplane.catalog.withholding import marks_of
from controlplane.incidents.models import Incident
from controlplane.incidents.selectors import public_key


def quarantine_undo_way(*, environment_key: str, moved: QuarantineMoved) -> Way:
    """What undoing a change that moved this quarantine would do now, and what stands in the way."""
    last = quarantine_last(environment_key=environment_key, word=moved.type, name=moved.name, revision=moved.revision)
    head = last.revision.resource.head
    if moved.opened:
        steps = (f"{moved.subject} is served again.",)
        if last.released_at is None:
            return Way(steps)
        return Way(steps, (obstacle(f"{moved.subject} was released since: by {last.released_by}."),))
    steps = (f"{moved.subject} is taken out of service again.",)
    if last.released_at is None:
        return Way(steps, (obstacle(f"{moved.subject} was quarantined again since: by {last.opened_by}."),))
    if head is not None and head.pk != last.revision_id:
        newer = str(head.change.public_id)
        by = f"r{head.number} by {head.change.author} in change {newer[:8]}"
        hint = "Take that change back, or quarantine what is current in its incident."
        said = obstacle(f"{moved.subject} is not current any more: {by} took its place.", hint=hint)
        return Way(steps, (said,), (newer,))
    return Way(steps)


def quarantine_undo(
    *,
    environment_key: str,
    moved: QuarantineMoved,
    undoes: Undoes,
    actor: Principal,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade:
    """Undo a change that moved a quarantine: release what it opened, or quarantine again what it released. Raises
    NotFound, and Conflict where that was done since, or a newer revision took its place.
    """
    quarantine_undo_way(environment_key=environment_key, moved=moved).go(undoes.change)
    last = quarantine_last(environment_key=environment_key, word=moved.type, name=moved.name, revision=moved.revision)
    incidents = Incident.objects.filter(public_id=public_key(last.incident)) if last.incident else None
    if moved.opened:
        if incidents is not None:
            # First, so that no digest can come between the release and the mark (U21).
            incidents.update(forced_revision=moved.revision)
        return quarantine_release(
            environment_key=environment_key,
            word=moved.type,
            name=moved.name,
            revision=moved.revision,
            reason=undoes.reason,
            undoes=undoes,
            actor=actor,
            request_id=request_id,
        )
    made = quarantine_open(
        environment_key=environment_key,
        word=moved.type,
        name=moved.name,
        revision=moved.revision,
        cause=QuarantineCause.OPERATOR,
        reason=undoes.reason,
        incident=last.incident,
        refused_by=marks_of(last.refused_by),
        undoes=undoes,
        actor=actor,
        request_id=request_id,
        consent=consent,
    )
    if incidents is not None:
        incidents.update(quarantined_revision=moved.revision)
    return made
