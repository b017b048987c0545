"""Answers what changes wrote, and what was written of the same names since."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db import models

from controlplane.catalog.models import Revision


@dataclass(frozen=True, slots=True)
class RevisionWritten:
    """A revision that a change wrote: the word of its type, its name and number, and its version on the wire (empty: it
    is a deletion). `later`: the versions on the wire that were written of the name since.
    """

    type: str
    name: str
    number: int
    version: str
    later: frozenset[str]


def revisions_written(*, changes: Collection[int]) -> Mapping[int, tuple[RevisionWritten, ...]]:
    """What each of these changes, given by row id, wrote; without those that wrote nothing. Two queries at most."""
    mine = Revision.objects.filter(change__in=list(changes))
    columns = ("resource__counter", "change", "resource", "resource__type", "resource__name", "number", "version")
    rows = tuple(mine.values_list(*columns).order_by("pk"))
    before = mine.filter(resource=models.OuterRef("resource"), number__lt=models.OuterRef("number"))
    after = Revision.objects.filter(models.Exists(before), resource__in=mine.values("resource")).exclude(version="")
    since: dict[int, list[tuple[int, str]]] = {}
    if any(counter > number for counter, *_, number, _ in rows):
        for resource, number, version in after.values_list("resource", "number", "version"):
            since.setdefault(resource, []).append((number, version))
    found: dict[int, list[RevisionWritten]] = {}
    for _, change, resource, word, name, number, version in rows:
        later = frozenset(after for at, after in since.get(resource, ()) if at > number)
        found.setdefault(change, []).append(RevisionWritten(word, name, number, version, later))
    return {change: tuple(each) for change, each in found.items()}
