"""Looks for things across environments: for the search box and the front page."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import models

from controlplane.catalog.models import Change, Resource


@dataclass(frozen=True, slots=True)
class FoundResource:
    """A resource whose name holds what was looked for."""

    environment: str
    type: str
    name: str


def resources_named_like(*, environment_keys: Collection[str], text: str, limit: int) -> tuple[FoundResource, ...]:
    """Resources of these environments whose name contains `text`, those that are called so first, by name."""
    rows = Resource.objects.filter(environment__key__in=list(environment_keys), deleted=False, name__icontains=text)
    exact = models.Case(models.When(name=text, then=models.Value(0)), default=models.Value(1))
    found = rows.annotate(place=exact).order_by("place", "name", "type", "environment__position")
    return tuple(FoundResource(*row) for row in found.values_list("environment__key", "type", "name")[:limit])


def changes_latest(*, environment_keys: Collection[str], limit: int) -> tuple[Change, ...]:
    """The newest changes of these environments, each with `edits`, how many resources it wrote."""
    rows = Change.objects.filter(environment__key__in=list(environment_keys)).select_related("environment")
    newest = rows.order_by("-at", "-pk")[:limit]
    return tuple(newest.annotate(edits=models.Count("revisions")))
