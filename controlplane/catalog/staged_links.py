"""Answers what the staged names of an environment need of each other, by their newest revisions and by those that the
stable side has; and what became of names that are not staged any more.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db import models

from controlplane.catalog.choices import StagedState
from controlplane.catalog.models import Change, Reference, Resource, Revision, StagedName

Key = tuple[str, str]
"""The word of a type, and a resource's name."""
_BATCH = 500


@dataclass(frozen=True, slots=True)
class StagedLinks:
    """What candidates refer to, by type and name: `then` by their newest revisions, `now` by those that the stable side
    has.
    """

    then: Mapping[Key, frozenset[Key]]
    now: Mapping[Key, frozenset[Key]]


@dataclass(frozen=True, slots=True)
class Author:
    """Who made a change: a name, as it was then, and the id of the principal; empty of changes older than ids."""

    name: str
    principal: str


def authors_of(environment_key: str) -> frozenset[Author]:
    """Who wrote what the open rollout of an environment has: all revisions since those that the stable side serves,
    also those that others wrote over. One query.
    """
    since = models.Q(number__gt=models.F("resource__staged__stable__number")) | models.Q(resource__staged__stable=None)
    rows = Revision.objects.filter(
        since,
        resource__environment__key=environment_key,
        resource__staged__state=StagedState.CANDIDATE.value,
    )
    return frozenset(Author(*each) for each in rows.values_list("change__author", "change__principal").distinct())


def staged_links(environment_key: str) -> StagedLinks:
    """What the candidates of an environment refer to. A query, and one more for each 500 revisions."""
    rows = StagedName.objects.filter(
        resource__environment__key=environment_key, state=StagedState.CANDIDATE.value
    ).values_list("resource__type", "resource__name", "resource__head_id", "stable_id")
    heads: dict[int, Key] = {}
    stable: dict[int, Key] = {}
    for word, name, head_id, stable_id in rows:
        if head_id is not None:
            heads[head_id] = (word, name)
        if stable_id is not None:
            stable[stable_id] = (word, name)
    return StagedLinks(_targets(heads), _targets(stable))


def _targets(revisions: Mapping[int, Key]) -> Mapping[Key, frozenset[Key]]:
    found: defaultdict[Key, set[Key]] = defaultdict(set)
    wanted = sorted(revisions)
    for start in range(0, len(wanted), _BATCH):
        rows = Reference.objects.filter(revision__in=wanted[start : start + _BATCH])
        for revision, word, name in rows.values_list("revision_id", "to_type", "to_name"):
            found[revisions[revision]].add((word, name))
    return {key: frozenset(targets) for key, targets in found.items()}


def newest_numbers(*, environment_key: str, keys: Collection[Key]) -> Mapping[Key, int]:
    """The numbers of the newest revisions of these names, deletions among them."""
    wanted, found = sorted(set(keys)), dict[Key, int]()
    for start in range(0, len(wanted), _BATCH):
        batch = set(wanted[start : start + _BATCH])
        rows = Resource.objects.filter(
            environment__key=environment_key, type__in={word for word, _ in batch}, name__in={name for _, name in batch}
        )
        for word, name, number in rows.values_list("type", "name", "head__number"):
            if (word, name) in batch and number is not None:
                found[word, name] = number
    return found


def rolled_back_after(*, environment_key: str, generation: int) -> bool:
    """Whether an environment was rolled back after this generation."""
    rows = Change.objects.filter(environment__key=environment_key, generation__gt=generation, back_to__isnull=False)
    return rows.exists()
