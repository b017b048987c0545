"""Opens an incident for each change by which connected clients lost something, and says when it is over.

What a change took is judged and kept when it is written (`Change.loss`); clients lose it once it is published.
"""

import structlog
from django.db import transaction
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Coalesce

from controlplane.catalog.change_names import ChangeName, named_fields
from controlplane.catalog.guarding import loss_from_json
from controlplane.catalog.models import Change, Environment, Resource, Revision
from controlplane.catalog.rollbacks import undone_by
from controlplane.clients.clock import database_now
from controlplane.clients.foreign_text import one_line
from controlplane.incidents.attribution import Confidence
from controlplane.incidents.loss_words import losing_family, loss_sentence
from controlplane.incidents.models import TYPE_WORDS, Incident, IncidentClient, LossMark
from controlplane.incidents.services.resolution import Resolution
from controlplane.incidents.services.telling import incident_told
from controlplane.incidents.values import IncidentCause

log = structlog.get_logger(__name__)

# One incident per change: its fingerprint is the change's public id.
LOSS_ALGORITHM = "loss1"

# How many changes of an environment one run looks at; the others have their turn in the next.
_AT_ONCE = 100
_MESSAGE_CHARS = 600


def losses_open() -> int:
    """Open an incident for each published change by which connected clients lost something; returns how many were
    opened. None is opened where the loss is over already.

    Each change is looked at once, in the order of writing: its incident and the note that it was looked at are stored
    in one transaction.
    """
    due = _due()
    return sum(_look(environment, change) for environment, mark in due for change in _waiting(environment, mark))


def loss_over(*, change: Change, built_generation: int) -> Resolution | None:
    """The reason why the loss by this change is over, with what is published now; None while it is not. Both opening
    and resolving incidents ask this.
    """
    return _taken_back(change, built_generation) or _there_again(change, built_generation)


def _due() -> tuple[tuple[Environment, int], ...]:
    """The environments with published changes that were not searched for losses, each with the generation up to which
    that was done. One step into an index for each environment, however many changes there are.
    """
    marks = LossMark.objects.filter(environment=OuterRef("pk")).values("generation")
    environments = Environment.objects.annotate(looked_at=Coalesce(Subquery(marks), 0))
    lost = Change.objects.filter(environment=OuterRef("pk"), loss__isnull=False, generation__gt=OuterRef("looked_at"))
    next_lost = lost.order_by("generation").values("generation")[:1]
    due = environments.annotate(next_lost=Subquery(next_lost)).filter(next_lost__lte=F("built_generation"))
    return tuple((each, each.looked_at) for each in due.order_by("pk"))


def _waiting(environment: Environment, looked_at: int) -> tuple[Change, ...]:
    lost = Change.objects.filter(
        environment=environment,
        loss__isnull=False,
        generation__gt=looked_at,
        generation__lte=environment.built_generation,
    )
    return tuple(lost.select_related("environment").order_by("generation")[:_AT_ONCE])


def _look(environment: Environment, change: Change) -> bool:
    """Open an incident for what clients lost by this change, and note that the change was looked at. Returns False, and
    opens none, where the loss is over already.
    """
    over = loss_over(change=change, built_generation=environment.built_generation)
    with transaction.atomic(durable=True):
        LossMark.objects.update_or_create(environment=environment, defaults={"generation": change.generation})
        if over is not None:
            return False
        incident = _open(environment, change)
        incident_told("incident.opened", incident)
    log.warning(
        "incident.opened",
        incident=str(incident.public_id),
        environment=environment.key,
        cause=incident.cause,
        author=incident.author,
        reason=incident.message,
        **named_fields([ChangeName(incident.change, change.request_id)]),
    )
    return True


def _open(environment: Environment, change: Change) -> Incident:
    loss = loss_from_json(change.loss)  # type: ignore[arg-type]  # `_waiting` reads those that have one
    public_id, now = str(change.public_id), database_now()
    first = loss.names[0] if loss.names else None
    said = loss_sentence(loss, change=public_id, author=change.author, message=change.message)
    incident = Incident.objects.create(
        cause=IncidentCause.LOSS.value,
        environment=environment,
        algorithm=LOSS_ALGORITHM,
        fingerprint=change.public_id.hex,
        type=first.type if first is not None else TYPE_WORDS[0],
        name=first.name if first is not None else "",
        family=losing_family(loss).value,
        # It was judged for this change alone.
        confidence=Confidence.ONLY_CHANGE.value,
        message=one_line(said, max_chars=_MESSAGE_CHARS),
        change=public_id,
        author=change.author,
        since=change.at,
        nacked=loss.clients,
        sent=loss.connected,
        told_nacked=loss.clients,
        first_at=now,
        last_at=now,
        opened_epoch=environment.epoch,
        checked_generation=environment.built_generation,
        # Settled from the start: nothing is refused, so nothing of it is ever judged.
        settles_at=now,
        judged_at=now,
        loss=change.loss,
    )
    IncidentClient.objects.bulk_create(
        IncidentClient(incident=incident, client=each.client, node_id=each.node_id, first_at=now, last_at=now)
        for each in loss.who
    )
    return incident


def _taken_back(change: Change, built_generation: int) -> Resolution | None:
    undo = (
        # The second condition says to the database that its index of undos holds the answer.
        Change.objects.filter(environment=change.environment_id, undoes=str(change.public_id), undoes__gt="")
        .filter(generation__lte=built_generation)
        .order_by("generation")
        .first()
    )
    if undo is not None:
        return Resolution("the change was taken back, and that is published", str(undo.public_id), undo.author)
    rollback = undone_by(environment_key=change.environment.key, changes=[change]).get(change.generation)
    if rollback is None or rollback.generation > built_generation:
        return None
    return Resolution("the change was rolled back, and that is published", str(rollback.public_id), rollback.author)


def _there_again(change: Change, built_generation: int) -> Resolution | None:
    """Whether everything that clients lost, which this change deleted, was written again and is served to all."""
    loss = loss_from_json(change.loss)  # type: ignore[arg-type]  # who asks knows that it has one
    lost = {(each.type, each.name) for each in loss.names}
    if not lost or loss.truncated:
        return None
    gone = Revision.objects.filter(change=change, blob=None, resource__name__in=[name for _, name in lost])
    if not lost <= set(gone.values_list("resource__type", "resource__name")):
        return None  # access rules took it, or a quarantine: that the resource is written says nothing
    heads = Revision.objects.filter(
        pk__in=Resource.objects.filter(pk__in=gone.values("resource"), staged=None).values("head"),
        blob__isnull=False,
        change__generation__lte=built_generation,
    ).exclude(quarantines__released_at=None, quarantines__isnull=False)
    back = {(each.resource.type, each.resource.name): each for each in heads.select_related("resource", "change")}
    if not lost <= back.keys():
        return None
    last = max((back[key].change for key in lost), key=lambda each: each.generation)
    return Resolution("what was lost was written again, and that is published", str(last.public_id), last.author)
