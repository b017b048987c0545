"""Looks for changes across environments: for the front page."""

from collections.abc import Collection

from django.db import models

from controlplane.catalog.models import Change


def changes_latest(*, environment_keys: Collection[str], limit: int) -> tuple[Change, ...]:
    """The newest changes of these environments; each has an attribute `edits`, the number of resources that it
    wrote.
    """
    rows = Change.objects.filter(environment__key__in=list(environment_keys)).select_related("environment")
    newest = rows.order_by("-at", "-pk")[:limit]
    return tuple(newest.annotate(edits=models.Count("revisions")))
