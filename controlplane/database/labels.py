"""Rows by the labels that a column of theirs holds (`xdscore.labels.packed`)."""

from collections.abc import Sequence

from django.db.models import F, Q, Value
from django.db.models.functions import StrIndex
from django.db.models.lookups import Exact, GreaterThan

from xdscore.labels import Requirement


def labelled(requirements: Sequence[Requirement], column: str = "labels") -> Q:
    """The condition that rows fulfil whose labels fulfil all of these. Not by `contains`: SQLite's LIKE would take
    `team=Pay` for `team=pay`.
    """
    found = Q()
    for each in requirements:
        place = StrIndex(F(column), Value(each.part))
        found &= Q(GreaterThan(place, 0)) if each.wanted else Q(Exact(place, 0))
    return found
