"""Which rollback took a change back, and what a rollback took back: from `Change.back_to`, never from texts.

A rollback makes the resources what they were at an earlier generation, so it takes back every change of resources in
between. A later one may go back to a generation at which a change that was taken back was in force: then it is again.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from django.db import models

from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.models import Change, Revision


def undone_by(*, environment_key: str, changes: Sequence[Change]) -> Mapping[int, Change]:
    """By generation, the rollback that took back each of these changes of one environment. Two queries.

    One of whose revisions any is current is not taken back: a name that had nothing to serve then stays as it is
    (`snapshots.rollback`), and content that was the same then is what it wrote.
    """
    wrote = [each for each in changes if each.kind == ChangeKind.RESOURCES.value]
    if not wrote:
        return {}
    rollbacks = tuple(
        Change.objects.filter(
            environment__key=environment_key,
            generation__gt=min(each.generation for each in wrote),
            back_to__isnull=False,
        ).order_by("generation")
    )
    if not rollbacks:
        return {}
    found = {
        each.generation: rollback for each in wrote if (rollback := in_force(each.generation, rollbacks)) is not None
    }
    current = Revision.objects.filter(
        change__environment__key=environment_key, change__generation__in=list(found), resource__head=models.F("pk")
    )
    for generation in current.values_list("change__generation", flat=True).distinct():
        del found[generation]
    return found


def in_force(generation: int, rollbacks: Sequence[Change]) -> Change | None:
    """The rollback because of which a change is not in force now, None while it is. Oldest first; pure."""
    generations = [each.generation for each in rollbacks]
    end = len(rollbacks)
    while end and (last := rollbacks[end - 1]).generation > generation:
        if (back_to := last.back_to or 0) < generation:
            return last
        # As it was at that generation: only what had been rolled back by then counts.
        end = bisect_right(generations, back_to)
    return None


def undone_of(*, change: Change, limit: int) -> tuple[tuple[Change, ...], int]:
    """What a rollback took back, newest first, the first of them, and how many; nothing for any other change."""
    if change.back_to is None:
        return (), 0
    rows = Change.objects.filter(
        environment=change.environment_id,
        generation__gt=change.back_to,
        generation__lt=change.generation,
        kind=ChangeKind.RESOURCES.value,
    ).order_by("-generation")
    return tuple(rows[:limit]), rows.count()
