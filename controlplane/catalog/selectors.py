"""Reads of the catalogue. Never inside a transaction: on SQLite that would take the writer's lock (decisions D6a)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import models
from django.utils import timezone

from controlplane.accounts.principal import EVERYTHING, Allowed
from controlplane.catalog.choices import BlobKind, QuarantinePolicy
from controlplane.catalog.expiry import findings_at
from controlplane.catalog.freezes import freezes_stored
from controlplane.catalog.guarding import LossThreshold
from controlplane.catalog.limiting import rows_allowed
from controlplane.catalog.models import (
    Blob,
    Change,
    Environment,
    Quarantine,
    Reference,
    Resource,
    Revision,
    SideMove,
    StagedName,
)
from controlplane.catalog.review import review_stored
from controlplane.catalog.rollout_settings import settings_stored
from controlplane.catalog.sealing import key_ring
from controlplane.catalog.values import EnvironmentPolicy, ResourceContent
from controlplane.common.errors import NotFound
from controlplane.database.labels import labelled
from xdscore.access import Effect
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.labels import Labels, Requirement, label_words, unpacked
from xdscore.resource_types import ResourceType, by_word
from xdscore.schema.content_policy import policy_of

_BATCH = 500


@dataclass(frozen=True, slots=True)
class EnvironmentState:
    """A row of the table of environments as a value. `position` is its place among the environments that clients are
    matched with; `lineage`, `generation`, `built_generation` and `epoch` are as in `Environment`.
    """

    id: int
    key: str
    position: int
    policy: EnvironmentPolicy
    lineage: str
    generation: int
    built_generation: int
    epoch: int

    @property
    def choice(self) -> EnvironmentChoice:
        """The part of the environment that decides which clients it takes."""
        return EnvironmentChoice(self.key, self.policy.selectors, self.policy.node_ids)


def environment_state(row: Environment) -> EnvironmentState:
    """The environment that is stored in this row."""
    policy = EnvironmentPolicy(
        selectors=tuple(Selector(**selector) for selector in row.selectors),
        node_ids=tuple(row.node_ids),
        default_effect=Effect(row.default_effect),
        quarantine=QuarantinePolicy(row.quarantine),
        hold=row.hold_reason,
        content=policy_of(row.content),
        deep_validation=row.deep_validation,
        require_if_match=row.require_if_match,
        loss_threshold=LossThreshold(row.loss_access_clients, row.loss_other_percent),
        rollout=settings_stored(row.rollout),
        freezes=freezes_stored(row.freezes),
        review=review_stored(row.review),
    )
    return EnvironmentState(
        row.pk, row.key, row.position, policy, str(row.lineage), row.generation, row.built_generation, row.epoch
    )


def environment_get(*, key: str) -> EnvironmentState:
    """The environment with this key. Raises NotFound."""
    row = Environment.objects.filter(key=key).first()
    if row is None:
        raise NotFound(f"There is no environment '{key}'.")
    return environment_state(row)


def environment_list(*, using: str = "default") -> tuple[EnvironmentState, ...]:
    """Every environment, in the order in which clients are matched with them. `using`: the database alias to read."""
    return tuple(environment_state(row) for row in Environment.objects.using(using).order_by("position"))


def environments_due() -> tuple[int, ...]:
    """The row ids of the environments in which something was written after the last build (decisions C19)."""
    due = Environment.objects.filter(generation__gt=models.F("built_generation"))
    return tuple(due.order_by("id").values_list("id", flat=True))


def oldest_waiting() -> datetime | None:
    """The time of the oldest change that no build has covered yet; None when every change is built."""
    built = models.F("environment__built_generation")
    waiting = Change.objects.filter(environment__generation__gt=built, generation__gt=built)
    oldest: datetime | None = waiting.aggregate(oldest=models.Min("at"))["oldest"]
    return oldest


def change_of_generation(*, environment_id: int, generation: int, using: str = "default") -> UUID | None:
    """The public id of the change that was written at a generation of an environment, or of what a rollout moved at it;
    None where there was neither, as at the first generation after a new lineage.
    """
    for kind in (Change, SideMove):
        made = kind.objects.using(using).filter(environment=environment_id, generation=generation)
        if (found := made.values_list("public_id", flat=True).first()) is not None:
            return found
    return None


def quarantine_count() -> int:
    """The number of revisions in quarantine now, in all environments."""
    return Quarantine.objects.filter(released_at=None).count()


def environment_generations(*, environment_id: int) -> tuple[int, int]:
    """The last generations of an environment that were (written, built); (0, 0) where there is no such environment."""
    row = Environment.objects.filter(pk=environment_id).values_list("generation", "built_generation").first()
    return row if row is not None else (0, 0)


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """One resource in a list, without its content. `proven`: a client acknowledged the newest revision. `findings`: how
    many there are.
    """

    kind: ResourceType
    name: str
    revision: int
    owner: str
    updated_at: datetime
    version: str
    proven: bool
    quarantined: bool
    findings: int
    labels: Labels = field(default_factory=dict)

    @property
    def label_words(self) -> tuple[str, ...]:
        """The labels of the resource as people write them, by key."""
        return label_words(self.labels)


def resource_list(
    *,
    environment_key: str,
    kind: ResourceType | None = None,
    owner: str | None = None,
    name_part: str = "",
    labels: Sequence[Requirement] = (),
    contents: bool = False,
    allowed: Allowed = EVERYTHING,
) -> models.QuerySet[Resource]:
    """The resources of an environment that fit the filters, by type and name; `resource_row` turns each into a value.

    `name_part`: a text that the name contains. `labels`: a selector, all of which holds. `contents`: read the bytes
    too, for `resource_content`. `allowed`: the only ones that there are for whoever asks.
    """
    rows = Resource.objects.filter(environment__key=environment_key, deleted=False).select_related("head")
    if contents:
        rows = rows.select_related("head", "head__blob")
    if not allowed.everything:
        rows = rows.filter(rows_allowed(allowed))
    if kind is not None:
        rows = rows.filter(type=kind.word)
    if owner is not None:
        rows = rows.filter(owner=owner)
    if name_part:
        rows = rows.filter(name__contains=name_part)
    if labels:
        rows = rows.filter(labelled(labels))
    open_here = Quarantine.objects.filter(revision=models.OuterRef("head"), released_at=None)
    acknowledged = Revision.objects.filter(pk=models.OuterRef("head"), proof__isnull=False)
    return rows.annotate(quarantined=models.Exists(open_here), acknowledged=models.Exists(acknowledged)).order_by(
        "type", "name"
    )


def resource_names(
    *, environment_key: str, kind: ResourceType, part: str = "", allowed: Allowed = EVERYTHING, limit: int = 1_000
) -> tuple[str, ...]:
    """The names of an environment's resources of one type, in order; the first `limit`, for suggestions while
    typing.

    `part`: a text that the name contains in either case; names that begin with it come first. `allowed`: the only
    resources that there are for whoever asks.
    """
    rows = Resource.objects.filter(environment__key=environment_key, type=kind.word, deleted=False).order_by("name")
    if not allowed.everything:
        rows = rows.filter(rows_allowed(allowed))
    if part:
        begins = models.Case(models.When(name__istartswith=part, then=0), default=1)
        rows = rows.filter(name__icontains=part).order_by(begins, "name")
    return tuple(rows.values_list("name", flat=True)[:limit])


def environments_holding(*, kind: ResourceType, name: str, keys: Collection[str]) -> tuple[str, ...]:
    """The environments among `keys` in which a resource of this type and name exists, in the order in which clients are
    matched with them.
    """
    rows = Resource.objects.filter(environment__key__in=list(keys), type=kind.word, name=name, deleted=False)
    return tuple(rows.order_by("environment__position").values_list("environment__key", flat=True))


def resource_row(row: Resource) -> ResourceRow:
    """The line of a list for the resource in this row of `resource_list`."""
    head = _head(row)
    return ResourceRow(
        kind=by_word[row.type],
        name=row.name,
        revision=row.counter,
        owner=row.owner,
        updated_at=head.at,
        version=head.version,
        proven=bool(getattr(row, "acknowledged", False)),
        quarantined=bool(getattr(row, "quarantined", False)),
        findings=len(findings_at(head, (row.type, row.name), timezone.now())),
        labels=unpacked(row.labels),
    )


def resource_get(
    *, environment_key: str, kind: ResourceType, name: str, allowed: Allowed = EVERYTHING
) -> ResourceContent:
    """The resource of this type and name, with its bytes. Raises NotFound where there is none, it is deleted, or it is
    not among those `allowed`.
    """
    row = resource_named(environment_key=environment_key, kind=kind, name=name, allowed=allowed)
    return resource_content(row, environment_key=environment_key)


def resource_named(*, environment_key: str, kind: ResourceType, name: str, allowed: Allowed = EVERYTHING) -> Resource:
    """The row of a resource, read with all that `resource_row` and `resource_content` need. Raises NotFound where there
    is none, it is deleted, or it is not among those `allowed`.
    """
    rows = resource_list(environment_key=environment_key, kind=kind, contents=True, allowed=allowed)
    row = rows.filter(name=name).first()
    if row is None:
        raise NotFound(f"There is no {kind.word} '{name}' in '{environment_key}'.")
    return row


def resource_ever(*, environment_key: str, kind: ResourceType, name: str) -> int:
    """The primary key of the resource of this type and name, also of a deleted one. Raises NotFound where there never
    was one.
    """
    rows = Resource.objects.filter(environment__key=environment_key, type=kind.word, name=name)
    number = rows.values_list("pk", flat=True).first()
    if number is None:
        raise NotFound(f"There is no {kind.word} '{name}' in '{environment_key}'.")
    return number


def resources_named(
    *, environment_key: str, keys: Collection[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], ResourceContent]]:
    """For each (type word, name) in `keys` that exists: that pair, and the resource with its bytes. Read in batches."""
    wanted = sorted(keys)
    for start in range(0, len(wanted), _BATCH):
        batch = set(wanted[start : start + _BATCH])
        rows = Resource.objects.filter(
            environment__key=environment_key, deleted=False, name__in={name for _, name in batch}
        ).select_related("head", "head__blob")
        for row in rows:
            if (row.type, row.name) in batch:
                yield (row.type, row.name), resource_content(row, environment_key=environment_key)


def resource_content(row: Resource, *, environment_key: str) -> ResourceContent:
    """The content of a resource whose row was read by `resource_list` with `contents`, or by `resource_named`."""
    head = _head(row)
    if head.blob is None:  # only a deletion has none
        raise RuntimeError(f"resource {row.pk} is present without content")
    return ResourceContent(
        environment=environment_key,
        kind=by_word[row.type],
        name=row.name,
        revision=row.counter,
        owner=row.owner,
        address=head.blob.hash,
        any_bytes=blob_plaintext(head.blob),
        ttl_ms=head.ttl_ms,
        findings=findings_at(head, (row.type, row.name), timezone.now()),
        updated_at=head.at,
        labels=unpacked(row.labels),
    )


def revision_list(
    *, environment_key: str, kind: ResourceType, name: str, allowed: Allowed = EVERYTHING
) -> models.QuerySet[Revision]:
    """The revisions of a resource, newest first, deletions included. With `allowed`, the resource has to be among
    those, and each row says as `is_partly_seen` whether its change wrote others too. Raises NotFound when there never
    was such a resource.
    """
    rows = Revision.objects.filter(
        resource__environment__key=environment_key, resource__type=kind.word, resource__name=name
    ).select_related("change", "resource")
    if not allowed.everything:
        others = Revision.objects.filter(change=models.OuterRef("change")).exclude(rows_allowed(allowed, "resource__"))
        rows = rows.filter(rows_allowed(allowed, "resource__")).annotate(is_partly_seen=models.Exists(others))
    if not rows.exists():
        raise NotFound(f"There never was a {kind.word} '{name}' in '{environment_key}'.")
    open_here = Quarantine.objects.filter(revision=models.OuterRef("pk"), released_at=None)
    proven = models.Exists(Revision.objects.filter(pk=models.OuterRef("pk"), proof__isnull=False))
    return rows.annotate(quarantined=models.Exists(open_here), proven=proven).order_by("-number")


def is_quarantined(*, environment_key: str, kind: ResourceType, name: str, number: int) -> bool:
    """Whether the revision of this number is in quarantine now."""
    return Quarantine.objects.filter(
        revision__resource__environment__key=environment_key,
        revision__resource__type=kind.word,
        revision__resource__name=name,
        revision__number=number,
        released_at=None,
    ).exists()


def quarantine_last(*, environment_key: str, word: str, name: str, revision: int) -> Quarantine:
    """The newest quarantine of a revision, open or released. Its resource's newest revision, and the change that wrote
    that, are read with it. Raises NotFound where the revision never was in quarantine.
    """
    rows = Quarantine.objects.select_related("revision__resource__head__change").filter(
        revision__resource__environment__key=environment_key,
        revision__resource__type=word,
        revision__resource__name=name,
        revision__number=revision,
    )
    row = rows.order_by("-pk").first()
    if row is None:
        raise NotFound(f"r{revision} of the {word} '{name}' in '{environment_key}' never was in quarantine.")
    return row


def change_get(*, public_id: str) -> Change:
    """The change with this public id. Raises NotFound."""
    row = Change.objects.select_related("environment").filter(public_id=public_id).first()
    if row is None:
        raise NotFound(f"There is no change '{public_id}'.")
    return row


@dataclass(frozen=True, slots=True)
class RevisionOrigin:
    """Where a version of a resource comes from: the revision's number, the change that wrote it, that change's author,
    and the id of the HTTP request (empty where none made it). `current`: it is the newest revision, or what the stable
    side has while the newest is staged.
    """

    number: int
    change_id: str
    author: str
    current: bool
    at: datetime
    request_id: str


def revision_origin(*, environment_key: str, word: str, name: str, version: str) -> RevisionOrigin | None:
    """The newest revision of this type (`word`) and name whose `version_info` on the wire is `version`; None when there
    never was one.
    """
    row = (
        Revision.objects.filter(
            resource__environment__key=environment_key, resource__type=word, resource__name=name, version=version
        )
        .select_related("change", "resource")
        .order_by("-number")
        .first()
    )
    if row is None:
        return None
    current = row.resource.head_id == row.pk or StagedName.objects.filter(stable=row).exists()
    change = row.change
    return RevisionOrigin(row.number, str(change.public_id), change.author, current, row.at, change.request_id)


def revision_numbers(*, environment_key: str, versions: Mapping[tuple[str, str], str]) -> Mapping[tuple[str, str], int]:
    """For each (type word, name), the number of the newest revision whose `version_info` is the given one; names that
    never had it are left out.
    """
    contents = [(*key, version) for key, version in versions.items()]
    numbers = revisions_of(environment_key=environment_key, contents=contents)
    return {(word, name): number for (word, name, _), number in numbers.items()}


def revisions_of(
    *, environment_key: str, contents: Collection[tuple[str, str, str]]
) -> Mapping[tuple[str, str, str], int]:
    """For each (type word, name, version), the number of the newest revision that has this content; contents that no
    revision has are left out.
    """
    wanted, found = sorted(set(contents)), {}
    for start in range(0, len(wanted), _BATCH):
        batch = frozenset(wanted[start : start + _BATCH])
        rows = Revision.objects.filter(
            resource__environment__key=environment_key,
            resource__name__in={name for _, name, _ in batch},
            version__in={version for *_, version in batch},
        ).order_by("number")
        for *content, number in rows.values_list("resource__type", "resource__name", "version", "number"):
            if (key := (content[0], content[1], content[2])) in batch:
                found[key] = number
    return found


def written_at(*, environment_key: str, keys: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], datetime]:
    """The time at which each (type word, name) was last written or deleted; names that never existed are left out."""
    names, found = sorted({name for _, name in keys}), {}
    for start in range(0, len(names), _BATCH):
        rows = Resource.objects.filter(environment__key=environment_key, name__in=names[start : start + _BATCH])
        for word, name, at in rows.values_list("type", "name", "head__at"):
            if (word, name) in keys and at is not None:
                found[word, name] = at
    return found


def reference_pointers(
    *, revisions: Iterable[int], using: str = "default"
) -> Mapping[tuple[int, tuple[str, str]], str]:
    """For each of these revisions (by row id) and each (type, name) that it refers to: the pointer of the first field
    that does. `using`: the database alias to read.
    """
    wanted = sorted(set(revisions))
    found: dict[tuple[int, tuple[str, str]], str] = {}
    for start in range(0, len(wanted), _BATCH):
        rows = Reference.objects.using(using).filter(revision__in=wanted[start : start + _BATCH])
        for revision, word, name, pointer in rows.values_list("revision_id", "to_type", "to_name", "pointer"):
            found[revision, (word, name)] = pointer
    return found


def blob_plaintext(blob: Blob) -> bytes:
    """A blob's bytes, decrypted where they are a secret's. Raises SealError."""
    data = bytes(blob.data)
    return key_ring().open(data, bytes.fromhex(blob.hash)) if blob.kind == BlobKind.SECRET.value else data


def blobs_read(*, addresses: Iterable[str]) -> Iterator[tuple[str, BlobKind, bytes]]:
    """The address, kind and bytes of each of these blobs that exists, read in batches; secrets are still encrypted."""
    wanted = sorted(set(addresses))
    for start in range(0, len(wanted), _BATCH):
        rows = Blob.objects.filter(hash__in=wanted[start : start + _BATCH])
        for address, kind, data in rows.values_list("hash", "kind", "data"):
            yield address, BlobKind(kind), bytes(data)


def counts_by_environment() -> Mapping[str, int]:
    """The number of resources in each environment, by its key."""
    rows = Resource.objects.filter(deleted=False).values_list("environment__key").annotate(count=models.Count("id"))
    return dict(rows)


def _head(row: Resource) -> Revision:
    if row.head is None:  # written in the same transaction as the resource
        raise RuntimeError(f"resource {row.pk} has no head")
    return row.head
