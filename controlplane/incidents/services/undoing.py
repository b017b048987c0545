"""Takes back a change that took revisions out of service, or put them back."""

from collections.abc import Sequence

from django.db.models import QuerySet

from controlplane.accounts.principal import Principal
from controlplane.catalog.choices import QuarantineCause
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.models import Quarantine
from controlplane.catalog.selectors import quarantine_last
from controlplane.catalog.services import Opening, quarantines_open, quarantines_release
from controlplane.catalog.undoing import QuarantineMoved, Undoes, Way, obstacle
from controlplane.catalog.values import ChangeMade
from controlplane.catalog.withholding import marks_of
from controlplane.incidents.models import Incident
from controlplane.incidents.selectors import public_key


def quarantine_undo_way(*, environment_key: str, moved: Sequence[QuarantineMoved]) -> Way:
    """What undoing a change that quarantined or released revisions would do now, or what prevents it."""
    way = Way()
    for each in moved:
        way = way.beside(_way(each, _last(environment_key, each)))
    return way


def _last(environment_key: str, moved: QuarantineMoved) -> Quarantine:
    return quarantine_last(environment_key=environment_key, word=moved.type, name=moved.name, revision=moved.revision)


def _way(moved: QuarantineMoved, last: Quarantine) -> Way:
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
    moved: Sequence[QuarantineMoved],
    undoes: Undoes,
    actor: Principal,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade:
    """Undo a change that quarantined revisions, or released them: release the ones, quarantine the others again, by one
    change. Raises NotFound, and Conflict where that was done already or there is a newer revision.
    """
    quarantine_undo_way(environment_key=environment_key, moved=moved).go(undoes.change)
    lasts = [_last(environment_key, each) for each in moved]
    if moved[0].opened:
        # First, so that no digest can come between the release and the mark (U21).
        for each, last in zip(moved, lasts, strict=True):
            _incidents(last).update(forced_revision=each.revision)
        return quarantines_release(
            environment_key=environment_key,
            revisions=[(each.type, each.name, each.revision) for each in moved],
            reason=undoes.reason,
            undoes=undoes,
            actor=actor,
            request_id=request_id,
        )
    made = quarantines_open(
        environment_key=environment_key,
        openings=[
            Opening(each.type, each.name, each.revision, last.incident, marks_of(last.refused_by))
            for each, last in zip(moved, lasts, strict=True)
        ],
        cause=QuarantineCause.OPERATOR,
        reason=undoes.reason,
        undoes=undoes,
        actor=actor,
        request_id=request_id,
        consent=consent,
    )
    for each, last in zip(moved, lasts, strict=True):
        _incidents(last).update(quarantined_revision=each.revision)
    return made


def _incidents(last: Quarantine) -> QuerySet[Incident]:
    """The incident because of which a quarantine was opened; none where there was none."""
    if not last.incident:
        return Incident.objects.none()
    return Incident.objects.filter(public_id=public_key(last.incident))
