"""Looks for things across environments: for the search box and the front page."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import models

from controlplane.catalog.models import Change, Resource

_ID_BEGINS: Final = re.compile(r"[0-9a-f]{6,32}")


@dataclass(frozen=True, slots=True)
class FoundResource:
    """A resource whose name contains the text that was searched for."""

    environment: str
    type: str
    name: str


def resources_named_like(*, environment_keys: Collection[str], text: str, limit: int) -> tuple[FoundResource, ...]:
    """At most `limit` resources of these environments whose name contains `text`: first those with exactly this name,
    then the others by name.
    """
    rows = Resource.objects.filter(environment__key__in=list(environment_keys), deleted=False, name__icontains=text)
    exact = models.Case(models.When(name=text, then=models.Value(0)), default=models.Value(1))
    found = rows.annotate(place=exact).order_by("place", "name", "type", "environment__position")
    return tuple(FoundResource(*row) for row in found.values_list("environment__key", "type", "name")[:limit])


def changes_found(*, environment_keys: Collection[str], text: str, limit: int) -> tuple[Change, ...]:
    """The newest changes of these environments whose author is exactly `text`, or whose id begins with `text` where
    that has at least six characters.
    """
    wanted = models.Q(author=text)
    digits = text.replace("-", "").lower()
    if _ID_BEGINS.fullmatch(digits):
        # Ids are compared as such, so that the database's index finds those between the first and the last.
        wanted |= models.Q(public_id__range=(UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))))
    rows = Change.objects.filter(wanted, environment__key__in=list(environment_keys)).select_related("environment")
    return tuple(rows.order_by("-at", "-pk")[:limit])


def changes_latest(*, environment_keys: Collection[str], limit: int) -> tuple[Change, ...]:
    """The newest changes of these environments; each has an attribute `edits`, the number of resources that it
    wrote.
    """
    rows = Change.objects.filter(environment__key__in=list(environment_keys)).select_related("environment")
    newest = rows.order_by("-at", "-pk")[:limit]
    return tuple(newest.annotate(edits=models.Count("revisions")))
