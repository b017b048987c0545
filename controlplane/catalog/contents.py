"""Reads of whole contents by what a snapshot knows of them: the address of a resource's bytes."""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from django.db import models
from django.utils import timezone
from google.protobuf.message import DecodeError

from controlplane.catalog.choices import BlobKind
from controlplane.catalog.expiry import findings_at
from controlplane.catalog.models import Blob, Change, Resource, Revision
from controlplane.catalog.selectors import blob_plaintext
from controlplane.catalog.values import ResourceContent
from xdscore.redaction import Secrets, secrets_of
from xdscore.resource_types import ResourceType, by_word
from xdscore.schema import secret_values
from xdscore.snapshot import EntryKey

_BATCH = 300
# Of one name. What a client says now, it says of what it was sent lately.
_MOST_SEALED = 10


def addresses_now(*, environment_key: str) -> Mapping[EntryKey, str]:
    """The address (hash) of the newest content of each resource that exists, by type and name, whether or not that
    content is served.
    """
    rows = Resource.objects.filter(environment__key=environment_key, deleted=False)
    return {(word, name): address for word, name, address in rows.values_list("type", "name", "head__blob_id")}


def contents_now() -> Iterator[tuple[str, str, str, bytes]]:
    """The newest content of each resource that exists, in every environment, as (environment, type, name, serialized
    Any), secrets included: read in batches.
    """
    rows = Resource.objects.filter(deleted=False).select_related("environment", "head__blob")
    for row in rows.order_by("environment__key", "type", "name").iterator(chunk_size=_BATCH):
        if row.head is not None and row.head.blob is not None:
            yield row.environment.key, row.type, row.name, blob_plaintext(row.head.blob)


def contents_at(
    *, environment_key: str, addresses: Mapping[EntryKey, str]
) -> Iterator[tuple[EntryKey, ResourceContent]]:
    """For each type and name, the newest revision whose content has the address given for the name; names that never
    had such content are left out. Ordered by type and name, read in batches.
    """
    wanted = sorted(addresses)
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        rows = (
            Revision.objects.filter(
                resource__environment__key=environment_key,
                resource__name__in={name for _, name in batch},
                blob__in={addresses[key] for key in batch},
            )
            .select_related("resource", "blob")
            .order_by("number")
        )
        newest = {(row.resource.type, row.resource.name, row.blob_id): row for row in rows}
        for key in batch:
            row = newest.get((*key, addresses[key]))
            if row is not None:
                yield key, _content(row, environment_key)


def sealed_lately(*, environment_key: str, keys: Collection[EntryKey]) -> Mapping[EntryKey, tuple[str, ...]]:
    """The addresses of the newest contents that hold secrets, for each of these resources, by type and name: at most
    ten for each, newest first.
    """
    found: dict[EntryKey, dict[str, None]] = {}
    wanted = sorted(keys)
    for start in range(0, len(wanted), _BATCH):
        rows = Revision.objects.filter(
            resource__environment__key=environment_key,
            resource__name__in={name for _, name in wanted[start : start + _BATCH]},
            blob__kind=BlobKind.SECRET.value,
        ).order_by("-number")
        for word, name, address in rows.values_list("resource__type", "resource__name", "blob_id"):
            if (word, name) in keys:
                found.setdefault((word, name), {})[address] = None
    return {key: tuple(islice(addresses, _MOST_SEALED)) for key, addresses in found.items()}


def secrets_sealed(*, addresses: Collection[str]) -> Secrets | None:
    """The plaintext secrets in the contents at these addresses, by which a client's report is freed of secrets: tens of
    megabytes at worst. None where a content cannot be decrypted: nothing of the report may be stored then.
    """
    try:
        blobs = Blob.objects.filter(pk__in=addresses)
        return secrets_of(value for blob in blobs for value in secret_values(blob_plaintext(blob)))
    except (DecodeError, TypeError, ValueError, RecursionError):  # SealError is a ValueError
        return None


def contents_of_revisions(
    *, environment_key: str, kind: ResourceType, name: str, numbers: Collection[int]
) -> Mapping[int, ResourceContent]:
    """The contents of the revisions of a resource that have these numbers, by number; deletions are left out."""
    rows = Revision.objects.filter(
        resource__environment__key=environment_key,
        resource__type=kind.word,
        resource__name=name,
        number__in=list(numbers),
        blob__isnull=False,
    ).select_related("resource", "blob")
    return {row.number: _content(row, environment_key) for row in rows}


def contents_of_pairs(
    *, environment_key: str, revisions: Mapping[EntryKey, tuple[int | None, int | None]]
) -> Mapping[EntryKey, tuple[ResourceContent | None, ResourceContent | None]]:
    """For each type and name, the contents of two of its revisions, which are given by their numbers. A content is None
    where there is no such revision, and where it is a deletion. One query.
    """
    numbers = {number for pair in revisions.values() for number in pair if number is not None}
    rows = Revision.objects.filter(
        resource__environment__key=environment_key,
        resource__name__in={name for _, name in revisions},
        number__in=numbers,
        blob__isnull=False,
    ).select_related("resource", "blob")
    found = {
        (row.resource.type, row.resource.name, row.number): row
        for row in rows
        if row.number in revisions.get((row.resource.type, row.resource.name), ())
    }

    def content(key: EntryKey, number: int | None) -> ResourceContent | None:
        row = found.get((*key, number)) if number is not None else None
        return _content(row, environment_key) if row is not None else None

    return {key: (content(key, before), content(key, after)) for key, (before, after) in revisions.items()}


def contents_of_change(
    *, change: Change, limit: int
) -> tuple[tuple[EntryKey, ResourceContent | None, ResourceContent | None], ...]:
    """For each of the first `limit` edits of a change: the type and name, the content before and the content after. A
    content is None where the resource did not exist.
    """
    environment_key = change.environment.key
    written = Revision.objects.filter(change=change).order_by("resource__type", "resource__name")
    next_of = Revision.objects.filter(
        change=change, resource=models.OuterRef("resource"), number=models.OuterRef("number") + 1
    )
    rows = list(
        Revision.objects.filter(
            models.Q(change=change) | models.Exists(next_of), resource__in=written.values("resource")[:limit]
        )
        .order_by("resource__type", "resource__name")
        .select_related("resource", "blob")
    )
    before = {row.resource_id: row for row in rows if row.change_id != change.pk}

    def content(row: Revision | None) -> ResourceContent | None:
        return _content(row, environment_key) if row is not None and row.blob is not None else None

    return tuple(
        ((row.resource.type, row.resource.name), content(before.get(row.resource_id)), content(row))
        for row in rows
        if row.change_id == change.pk
    )


def plaintexts_at(*, addresses: Collection[str]) -> Iterator[tuple[str, bytes, bool]]:
    """The serialised Any at each of these addresses, and whether it is encrypted where it is stored; addresses without
    content are left out. Whoever asks is to know them from a decision, not from a caller.
    """
    wanted = sorted(addresses)
    for start in range(0, len(wanted), _BATCH):
        for blob in Blob.objects.filter(hash__in=wanted[start : start + _BATCH]):
            yield blob.hash, blob_plaintext(blob), blob.kind == BlobKind.SECRET.value


def addresses_of_versions(
    *, environment_key: str, versions: Mapping[EntryKey, str]
) -> Mapping[EntryKey, tuple[str, int]]:
    """For each type and name with the version of its content on the wire: the address of that content, and its ttl in
    milliseconds; what no revision of the name has is left out.
    """
    wanted, found = sorted(versions), {}
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        rows = Revision.objects.filter(
            resource__environment__key=environment_key,
            resource__name__in={name for _, name in batch},
            version__in={versions[key] for key in batch},
            blob__isnull=False,
        )
        columns = ("resource__type", "resource__name", "version", "blob_id", "ttl_ms")
        for word, name, version, address, ttl_ms in rows.values_list(*columns):
            if versions.get((word, name)) == version:
                found[word, name] = (address, ttl_ms)
    return found


def _content(row: Revision, environment_key: str) -> ResourceContent:
    if row.blob is None:  # found by its blob
        raise RuntimeError(f"revision {row.pk} has lost its content")
    return ResourceContent(
        environment=environment_key,
        kind=by_word[row.resource.type],
        name=row.resource.name,
        revision=row.number,
        owner=row.resource.owner,
        address=row.blob.hash,
        any_bytes=blob_plaintext(row.blob),
        ttl_ms=row.ttl_ms,
        findings=findings_at(row, (row.resource.type, row.resource.name), timezone.now()),
        updated_at=row.at,
    )
