"""Which resources a bulk act means: by a filter, as they are now."""

from django.db.models import QuerySet

from controlplane.accounts.principal import EVERYTHING, Allowed
from controlplane.bulk.values import BulkAct, Chosen, Filter, most_of, too_many
from controlplane.catalog.models import Resource
from controlplane.catalog.selectors import resource_list
from controlplane.status.selectors import with_status
from controlplane.status.values import Status
from xdscore.resource_types import by_word


def filtered(
    *, environment_key: str, wanted: Filter, contents: bool = False, allowed: Allowed = EVERYTHING
) -> QuerySet[Resource]:
    """The resources of an environment that fit a filter, by type and name. `contents` and `allowed` as of
    `resource_list`.
    """
    rows = resource_list(
        environment_key=environment_key,
        kind=wanted.kind,
        owner=wanted.owner,
        name_part=wanted.name_part,
        labels=wanted.labels,
        contents=contents,
        allowed=allowed,
    )
    return with_status(rows, environment_key=environment_key, status=Status(wanted.status)) if wanted.status else rows


def chosen_by(
    *, environment_key: str, wanted: Filter, act: BulkAct, allowed: Allowed = EVERYTHING
) -> tuple[Chosen, ...]:
    """The resources that fit a filter, at the revision that each is at. Raises InputTooLarge, which says how many there
    are, where that is too many for the act.
    """
    return chosen_of(filtered(environment_key=environment_key, wanted=wanted, allowed=allowed), act)


def chosen_of(rows: QuerySet[Resource], act: BulkAct) -> tuple[Chosen, ...]:
    """The resources of `rows`, at the revision that each is at. Raises InputTooLarge as `chosen_by` does."""
    found = list(rows.values_list("type", "name", "counter")[: most_of(act) + 1])
    if len(found) > most_of(act):
        raise too_many(rows.count(), act)
    return tuple(Chosen(by_word[word], name, revision) for word, name, revision in found)
