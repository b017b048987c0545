"""Reads everything a build needs at one moment (resolutions D6): heads and policies never come from different
generations.
"""

from collections.abc import Iterator

from django.db import models, transaction

from controlplane.catalog.heads import CatalogState, Head
from controlplane.catalog.models import Environment, Quarantine, Resource
from controlplane.databases import READER
from xdscore.access import Effect
from xdscore.snapshot import Content

# How many deletions are remembered as "was removed" (XDS2102), newest first; older ones read "is not published".
MAX_REMOVED = 10_000


def catalog_state_read(*, environment_id: int) -> CatalogState | None:
    """Heads and policies at one moment, read in one transaction; None when the environment is gone (resolutions D6)."""
    with transaction.atomic(using=READER):
        environment = Environment.objects.using(READER).filter(pk=environment_id).first()
        if environment is None:
            return None
        return CatalogState(
            environment=environment.key,
            generation=environment.generation,
            built_generation=environment.built_generation,
            heads=(*_present(environment_id), *_removed(environment_id)),
            default_effect=Effect(environment.default_effect),
        )


_COLUMNS = ("blob_id", "version", "blob__size", "eds_name")


def _present(environment_id: int) -> Iterator[Head]:
    quarantines = Quarantine.objects.filter(released_at=None)
    rows = (
        Resource.objects.using(READER)
        .filter(environment_id=environment_id, deleted=False)
        .annotate(
            quarantined=models.Exists(quarantines.filter(revision=models.OuterRef("head"))),
            proven_quarantined=models.Exists(quarantines.filter(revision=models.OuterRef("proven"))),
        )
        .order_by("type", "name")
        .values_list(
            "type",
            "name",
            "quarantined",
            "proven_quarantined",
            *(f"head__{column}" for column in _COLUMNS),
            *(f"proven__{column}" for column in _COLUMNS),
        )
    )
    for word, name, quarantined, proven_quarantined, *contents in rows.iterator(chunk_size=5_000):
        head, proven = contents[: len(_COLUMNS)], contents[len(_COLUMNS) :]
        yield Head((word, name), _content(*head), quarantined, _content(*proven), proven_quarantined)


def _removed(environment_id: int) -> Iterator[Head]:
    gone = Resource.objects.using(READER).filter(environment_id=environment_id, deleted=True).order_by("-head_id")
    for word, name in gone.values_list("type", "name")[:MAX_REMOVED]:
        yield Head((word, name), None, quarantined=False, proven=None, proven_quarantined=False)


def _content(address: str | None, version: str | None, size: int | None, eds_name: str | None) -> Content | None:
    if address is None:
        return None
    return Content(bytes.fromhex(address), version or "", size or 0, eds_name or "")
