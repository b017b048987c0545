"""Makes, edits and deletes change sets: what they would write, until somebody publishes it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from django.db import transaction
from django.utils import timezone

from controlplane.access.values import Wish
from controlplane.accounts.principal import Principal
from controlplane.catalog.choices import BlobKind
from controlplane.catalog.models import Environment, Resource
from controlplane.catalog.services import (
    Prepared,
    Terms,
    blobs_prune,
    blobs_write,
    environment_lock,
    environments_publish_lock,
    prepare,
)
from controlplane.catalog.values import Edit, Existing
from controlplane.changesets.machine import Act, check
from controlplane.changesets.models import ChangeSet, ChangeSetAuthor, ChangeSetEntry
from controlplane.changesets.reading import Key, has_name, holds_of, row_of
from controlplane.changesets.rights import contents_check
from controlplane.changesets.services.locking import (
    PAST,
    Locked,
    check_rights,
    check_version,
    lock,
    note,
    standing_of,
    state_set,
)
from controlplane.changesets.services.wishing import SetWishes, wishes_change, wishes_merge
from controlplane.changesets.values import ACCESS_WORDS, MAX_OPEN, Merge, SetState, Take
from controlplane.common.errors import Conflict, InputInvalid
from controlplane.common.principal_ids import Actor
from xdscore.findings import Finding, Severity

_BATCH: Final = 200
_NO_TERMS: Final = Terms()


@dataclass(frozen=True, slots=True)
class Times:
    """From when on a change set may be published by itself, and until when it may be at all; None: no such time."""

    not_before: datetime | None = None
    expires: datetime | None = None


_NO_TIMES: Final = Times()


class Stays(Enum):
    """Stands for a time that an edit leaves as it is, since None means that there is none."""

    AS_IT_IS = "as it is"


@dataclass(frozen=True, slots=True)
class SetChanges:
    """What an edit makes of a change set. A title, message or edits that are None stay.

    `edits`: everything that the set does from now on; or else `adds`: what it does about these names, beside what it
    does about others, and `removes`: the names about which it does nothing any more, rules and groups among them.
    `wishes`, or else `wish_adds`: the same of rules and groups. `merges`: what it does about names that moved.
    """

    title: str | None = None
    message: str | None = None
    edits: Sequence[Edit] | None = None
    adds: Sequence[Edit] = ()
    wishes: Sequence[Wish] | None = None
    wish_adds: Sequence[Wish] = ()
    removes: Collection[Key] = ()
    merges: Sequence[Merge] = ()
    not_before: datetime | Stays | None = Stays.AS_IT_IS
    expires: datetime | Stays | None = Stays.AS_IT_IS

    def times(self, before: Times) -> Times:
        """The times after the edit; `before`: those before it."""
        return Times(
            before.not_before if isinstance(self.not_before, Stays) else self.not_before,
            before.expires if isinstance(self.expires, Stays) else self.expires,
        )


def change_set_create(
    *,
    environment_key: str,
    title: str,
    message: str = "",
    edits: Sequence[Edit] = (),
    wishes: Sequence[Wish] = (),
    times: Times = _NO_TIMES,
    actor: Principal,
    request_id: str = "",
) -> str:
    """Make a draft of these edits, and of these `wishes` about rules and groups, and return its public id; publish
    nothing of it. Raises NotFound, Forbidden, InputInvalid (one name edited twice, a rule or group that cannot be,
    times that contradict each other), and Conflict where the environment has too many.
    """
    _check_times(times)
    prepared = prepare(edits, environment_key, _NO_TERMS)
    with transaction.atomic(durable=True):
        environment = environment_lock(key=environment_key)
        _check_room(environment)
        row = ChangeSet.objects.create(
            environment=environment,
            title=title,
            message=message,
            state=SetState.DRAFT.value,
            base_generation=environment.generation,
            not_before=times.not_before,
            expires=times.expires,
        )
        _author_add(row, actor)
        _entries_add(row, prepared, _bases_of(environment, prepared))
        wishes_change(row, SetWishes(wishes))
        contents_check(actor, Act.EDIT, environment_key, holds_of(row))
        note(Locked(environment, row, standing_of(row)), "created", actor=actor, request_id=request_id)
    return str(row.public_id)


def change_set_edit(
    *, public_id: str, changes: SetChanges, actor: Principal, version: int | None = None, request_id: str = ""
) -> bool:
    """Change a change set, which becomes a draft at a new version: every approval is void. Returns False where it is so
    already. `version`: the version that the caller looked at; None: any.

    Raises NotFound, Forbidden, InputInvalid, and Conflict where it is published or was edited since.
    """
    environment_key = row_of(public_id).environment.key
    prepared = prepare(changes.adds if changes.edits is None else changes.edits, environment_key, _NO_TERMS)
    with transaction.atomic(durable=True):
        environments_publish_lock()  # a content may lose its last user
        locked = lock(public_id)
        row = locked.row
        check_rights(locked, Act.EDIT, actor)
        check_version(locked, version)
        check(Act.EDIT, locked.standing, locked.name)
        times = changes.times(Times(row.not_before, row.expires))
        _check_times(times)
        before = _columns(row)
        row.title = row.title if changes.title is None else changes.title
        row.message = row.message if changes.message is None else changes.message
        row.not_before, row.expires = times.not_before, times.expires
        is_changed = _columns(row) != before
        is_changed |= _entries_change(locked, prepared, changes)
        is_changed |= wishes_change(row, SetWishes(changes.wishes, changes.wish_adds, changes.removes))
        if changes.merges:
            is_changed |= _merge(locked, changes.merges)
        if not is_changed:
            return False
        check_rights(locked, Act.EDIT, actor)
        row.version += 1
        row.edited_at = timezone.now()
        row.ended_at = None
        row.base_generation = locked.environment.generation
        _author_add(row, actor)
        state_set(row, SetState.DRAFT)
        note(locked, PAST[Act.EDIT], actor=actor, request_id=request_id)
    return True


def change_set_delete(
    *, public_id: str, actor: Principal, reason: str = "", version: int | None = None, request_id: str = ""
) -> None:
    """Delete a change set that was not published, with what others said of it. `version`: the version that the caller
    looked at; None: any. Raises NotFound, Forbidden, and Conflict where it is published or was edited since.
    """
    with transaction.atomic(durable=True):
        environments_publish_lock()
        locked = lock(public_id)
        check_rights(locked, Act.DELETE, actor)
        check_version(locked, version)
        check(Act.DELETE, locked.standing, locked.name)
        note(locked, PAST[Act.DELETE], actor=actor, reason=reason, request_id=request_id)
        addresses = _addresses(locked.row)
        locked.row.delete()
        blobs_prune(addresses=addresses)


def _columns(row: ChangeSet) -> tuple[object, ...]:
    return row.title, row.message, row.not_before, row.expires


def _check_times(times: Times) -> None:
    if times.not_before is not None and times.expires is not None and times.expires <= times.not_before:
        found = Finding(
            code=InputInvalid.code,
            severity=Severity.ERROR,
            pointer="/expires",
            detail="A change set expires after the time from which on it may be published.",
        )
        raise InputInvalid("The times contradict each other. Nothing was changed.", findings=(found,))


def _check_room(environment: Environment) -> None:
    kept = ChangeSet.objects.filter(environment=environment).exclude(state=SetState.PUBLISHED.value).count()
    if kept >= MAX_OPEN:
        raise Conflict(
            f"Environment '{environment.key}' has {kept} change sets that were not published; at most {MAX_OPEN} are "
            "kept. Delete some that are not needed any more. Nothing was changed."
        )


def _author_add(row: ChangeSet, actor: Actor) -> None:
    ChangeSetAuthor.objects.get_or_create(change_set=row, principal=str(actor.id or ""), defaults={"name": actor.name})


def _entries_change(locked: Locked, prepared: Sequence[Prepared], changes: SetChanges) -> bool:
    """Make what the set does what `changes` says, of which `prepared` has the edits; returns whether that changed
    anything. A name that the set has already keeps the revision that it was made from, whatever it becomes: what others
    wrote since is decided by `merge` alone.
    """
    row = locked.row
    before = {(entry.type, entry.name): entry for entry in row.entries.all()}
    wanted = {each.key: each for each in prepared}
    left = before.keys() if changes.edits is not None else before.keys() & changes.removes
    gone = [
        entry.pk
        for key, entry in before.items()
        if (key in left and key not in wanted) or (key in wanted and not _is_as(entry, wanted[key]))
    ]
    new = [each for key, each in wanted.items() if key not in before or not _is_as(before[key], each)]
    if not gone and not new:
        return False
    bases = _bases_of(locked.environment, new)
    addresses = _addresses(row)
    row.entries.filter(pk__in=gone).delete()
    _entries_add(row, new, bases | {key: entry.base for key, entry in before.items()})
    blobs_prune(addresses=addresses)
    return True


def _merge(locked: Locked, merges: Sequence[Merge]) -> bool:
    """Do what is wanted about each name. Raises InputInvalid for a name that the set does not have."""
    row = locked.row
    entries = {(entry.type, entry.name): entry for entry in row.entries.all()}
    unknown = [each for each in merges if not has_name(row, (each.type, each.name))]
    if unknown:
        findings = tuple(
            Finding(
                code=InputInvalid.code, severity=Severity.ERROR, pointer="/merge", detail="The set does not have it."
            ).about(each.type, each.name)
            for each in unknown
        )
        raise InputInvalid("The change set does not have all of these names. Nothing was changed.", findings=findings)
    now = _revisions_now(locked.environment, list(entries))
    addresses = _addresses(row)
    is_changed = wishes_merge(row, [each for each in merges if each.type in ACCESS_WORDS])
    for each in merges:
        if each.type in ACCESS_WORDS:
            continue
        entry = entries[each.type, each.name]
        if each.take is Take.THEIRS:
            entry.delete()
            is_changed = True
        elif entry.base != now[each.type, each.name]:
            entry.base = now[each.type, each.name]
            entry.save(update_fields=["base"])
            is_changed = True
    blobs_prune(addresses=addresses)
    return is_changed


def _is_as(entry: ChangeSetEntry, edit: Prepared) -> bool:
    if edit.parsed is None:
        return entry.blob_id is None
    wanted = (edit.address.hex(), edit.parsed.ttl_ms, edit.parsed.labels)
    return (entry.blob_id, entry.ttl_ms, entry.labels) == wanted


def _addresses(row: ChangeSet) -> list[str]:
    return list(row.entries.filter(blob__isnull=False).values_list("blob_id", flat=True))


def _entries_add(row: ChangeSet, prepared: Sequence[Prepared], bases: Mapping[Key, int]) -> None:
    for kind in (BlobKind.RESOURCE, BlobKind.SECRET):
        of_kind = [each for each in prepared if each.parsed is not None and each.blob_kind is kind]
        blobs_write(kind=kind, blobs={each.address.hex(): each.stored for each in of_kind})
    ChangeSetEntry.objects.bulk_create(
        (
            ChangeSetEntry(
                change_set=row,
                type=each.key[0],
                name=each.key[1],
                blob_id=each.address.hex() if each.parsed is not None else None,
                ttl_ms=each.parsed.ttl_ms if each.parsed is not None else 0,
                base=bases[each.key],
                labels=each.parsed.labels if each.parsed is not None else None,
            )
            for each in prepared
        ),
        batch_size=_BATCH,
    )


def _bases_of(environment: Environment, prepared: Sequence[Prepared]) -> dict[Key, int]:
    """The revision that each of these edits was made from."""
    now = _revisions_now(environment, [each.key for each in prepared])
    return {each.key: _base_of(each.edit, now[each.key]) for each in prepared}


def _base_of(edit: Edit, now: int) -> int:
    """The revision that an edit was made from: the one that it expects, or the present one (`now`) where it expects
    none. Where the two differ, the set is stale from the beginning, and tells by which change.
    """
    match edit.expect:
        case Existing.ABSENT:
            return 0
        case Existing.ANY | Existing.PRESENT:
            return now
        case revisions:
            return min(revisions, default=now)


def _revisions_now(environment: Environment, keys: Sequence[Key]) -> dict[Key, int]:
    """The present revision of each of these names; 0 where there is none."""
    found = dict.fromkeys(keys, 0)
    names: dict[str, list[str]] = {}
    for word, name in keys:
        names.setdefault(word, []).append(name)
    for word, of_type in names.items():
        for start in range(0, len(of_type), _BATCH):
            rows = Resource.objects.filter(
                environment=environment, type=word, name__in=of_type[start : start + _BATCH], deleted=False
            )
            found.update({(word, name): counter for name, counter in rows.values_list("name", "counter")})
    return found
