"""The changes of an environment, newest first."""

from collections.abc import Collection

from django.db import models

from controlplane.catalog.filtering import CHANGE_ORDERS, EVERY_CHANGE, ChangeFilter, ordered
from controlplane.catalog.models import Change


def changes_of_generations(*, environment_key: str, after: int, up_to: int, limit: int) -> tuple[Change, ...]:
    """The changes of an environment that were written after the generation `after`, up to and including `up_to`; newest
    first, at most `limit` of them.
    """
    rows = Change.objects.filter(environment__key=environment_key, generation__gt=after, generation__lte=up_to)
    return tuple(rows.order_by("-generation")[:limit])


def change_list(
    *,
    environment_key: str,
    wanted: ChangeFilter = EVERY_CHANGE,
    order: str = "time",
    falls: bool = True,
) -> models.QuerySet[Change]:
    """The changes of an environment that meet the conditions, newest first or in the order with this word in
    CHANGE_ORDERS; each has an attribute `edits`, the number of resources that it wrote.
    """
    rows = wanted.applied(Change.objects.filter(environment__key=environment_key).select_related("environment"))
    return rows.annotate(edits=models.Count("revisions")).order_by(*ordered(CHANGE_ORDERS[order], falls=falls))


def changes_seen(
    *, environment_keys: Collection[str], wanted: ChangeFilter = EVERY_CHANGE, before: int | None = None, limit: int
) -> tuple[Change, ...]:
    """The newest `limit` changes of these environments that meet the conditions, newest first, each with an attribute
    `edits`, as `change_list` has it.

    `before`: only those with a smaller row id.
    """
    rows = wanted.applied(Change.objects.filter(environment__key__in=list(environment_keys)))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = rows.annotate(edits=models.Count("revisions")).select_related("environment")
    return tuple(found.order_by("-pk")[:limit])
