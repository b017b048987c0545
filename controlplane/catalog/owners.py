"""Answers who owns resources of an environment."""

from controlplane.catalog.models import Resource


def owner_list(*, environment_key: str, limit: int = 200) -> tuple[str, ...]:
    """Who owns resources of an environment, by name; the first `limit`."""
    rows = Resource.objects.filter(environment__key=environment_key, deleted=False).exclude(owner="")
    return tuple(rows.order_by("owner").values_list("owner", flat=True).distinct()[:limit])


def owner_exists(*, environment_key: str, owner: str) -> bool:
    """Whether a resource of an environment has this owner."""
    return Resource.objects.filter(environment__key=environment_key, owner=owner, deleted=False).exists()
