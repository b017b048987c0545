"""Takes back one change of resources or of an environment's settings, as a new one: history only grows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from django.db import models

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.models import Change, Environment, Revision
from controlplane.catalog.selectors import environment_state
from controlplane.catalog.services.changes import ALONE, Beside, change_apply
from controlplane.catalog.services.environments import environment_update
from controlplane.catalog.services.marking import marks_back, marks_steps
from controlplane.catalog.services.planning import Terms
from controlplane.catalog.services.restoring import parsed_again
from controlplane.catalog.undoing import (
    Columns,
    GoesBack,
    Undoes,
    Way,
    WrittenResource,
    columns_of,
    columns_way,
    owners_of,
    resources_way,
)
from controlplane.catalog.values import ChangeMade, Delete, Edit, EnvironmentPolicy, Existing, Put
from controlplane.common.errors import Conflict, InputInvalid, PreconditionFailed
from xdscore.findings import Finding
from xdscore.resource_types import by_word
from xdscore.schema import Refused


@dataclass(frozen=True, slots=True)
class _Written:
    """A revision that a change wrote (`row`), and the revision `before` it; None where there was no resource."""

    row: Revision
    before: Revision | None

    @property
    def value(self) -> WrittenResource:
        resource = self.row.resource
        head = resource.head
        if head is None:  # written in the same transaction as the resource
            raise RuntimeError(f"resource {resource.pk} has no head")
        return WrittenResource(
            word=resource.type,
            name=resource.name,
            before=self.before.number if self.before is not None else 0,
            deleted=self.row.blob_id is None,
            now=head.number,
            # By content: what was taken back and is in force again stands as it was written.
            stands=(head.blob_id, head.ttl_ms) == (self.row.blob_id, self.row.ttl_ms),
            author=head.change.author,
            change=str(head.change.public_id),
        )


def resources_undo_way(*, change: Change) -> Way:
    """What undoing this change of resources would do now, or everything that stands in its way."""
    way = resources_way([each.value for each in _written(change)])
    way = replace(way, steps=(*way.steps, *marks_steps(marks_back(change))))
    columns = columns_of(change.undo)
    if columns is None or Environment.objects.get(pk=change.environment_id).hold_reason != columns.after["hold_reason"]:
        return way
    return replace(way, steps=(*way.steps, *columns_way(columns, columns.after, {}).steps))


def resources_undo(
    *,
    change: Change,
    undoes: Undoes,
    actor: Principal,
    through_hold: bool,
    beside: Beside = ALONE,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade:
    """Undo a change of resources: make each what it was before the change, all or none. An owner, labels or a hold that
    the change set are put back too, unless they were set again since. `through_hold`: undo although the environment is
    on hold; `beside`: what else the undo writes.

    Raises Conflict naming each resource that was written since, by whom and in which change; InputInvalid with every
    finding when the earlier content is not allowed today; and what `change_apply` raises.
    """
    written = _written(change, contents=True)
    resources_way([each.value for each in written]).go(undoes.change)
    try:
        return change_apply(
            environment_key=change.environment.key,
            edits=_edits(change, written),
            actor=actor,
            terms=Terms(overrides_hold=through_hold, roles=(Role.EDITOR, Role.OPERATOR)),
            back=GoesBack(columns=columns_of(change.undo), undoes=undoes),
            beside=beside,
            marks=marks_back(change),
            request_id=request_id,
            consent=consent,
        )
    except PreconditionFailed as error:
        raise Conflict(error.detail) from error  # written between the look and the lock


def settings_undo_way(*, change: Change, columns: Columns) -> Way:
    """What undoing this change of an environment's settings would do now, or everything that stands in its way.
    `columns`: what the change wrote.
    """
    row = Environment.objects.get(pk=change.environment_id)
    now = {column: getattr(row, column) for column in columns.after}
    moved = {column for column, value in columns.after.items() if now[column] != value}
    return columns_way(columns, now, _last_changes(change, moved))


def settings_before(*, change: Change, columns: Columns) -> tuple[EnvironmentPolicy, EnvironmentPolicy]:
    """The environment's policy as it is now, and as it would be with the columns that the change wrote put back."""
    row = Environment.objects.get(pk=change.environment_id)
    now = environment_state(row).policy
    for column, value in columns.before.items():
        setattr(row, column, value)
    return now, environment_state(row).policy


def settings_undo(
    *,
    change: Change,
    columns: Columns,
    undoes: Undoes,
    actor: Principal,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade:
    """Undo a change of an environment's settings: put back the columns that it wrote, and leave the others. Raises
    LossRefused, and Conflict naming each setting that was changed since, by whom and in which change.
    """
    settings_undo_way(change=change, columns=columns).go(undoes.change)
    now, before = settings_before(change=change, columns=columns)
    return environment_update(
        key=change.environment.key,
        policy=before,
        before=now,
        undoes=undoes,
        actor=actor,
        request_id=request_id,
        consent=consent,
    )


def _written(change: Change, *, contents: bool = False) -> tuple[_Written, ...]:
    rows = Revision.objects.filter(change=change).select_related("resource__head__change")
    next_is_of_change = Revision.objects.filter(
        change=change, resource=models.OuterRef("resource"), number=models.OuterRef("number") + 1
    )
    earlier = Revision.objects.filter(models.Exists(next_is_of_change), blob__isnull=False)
    if contents:
        earlier = earlier.select_related("blob")
    before = {row.resource_id: row for row in earlier}
    ordered = rows.order_by("resource__type", "resource__name")
    return tuple(_Written(row, before.get(row.resource_id)) for row in ordered)


def _edits(change: Change, written: Iterable[_Written]) -> list[Edit]:
    owners = {(word, name): (was, became) for word, name, was, became in owners_of(change.undo)}
    edits: list[Edit] = []
    findings: list[Finding] = []
    for each in written:
        resource = each.row.resource
        word, name = resource.type, resource.name
        # What was judged is what is written over: whoever comes in between is told by name when this is tried again.
        expect = Existing.ABSENT if resource.deleted else frozenset({resource.counter})
        if each.before is None or each.before.blob is None:
            if not resource.deleted:
                edits.append(Delete(by_word[word], name, expect))
            continue
        found = parsed_again(each.before.blob, word, name, ttl_ms=each.before.ttl_ms)
        if isinstance(found, Refused):
            findings += [finding.about(word, name) for finding in found.findings]
            continue
        was, became = owners.get((word, name), (None, None))
        edits.append(Put(found, expect, was if resource.deleted or resource.owner == became else None))
    if findings:
        raise InputInvalid(
            f"What change {str(change.public_id)[:8]} found is not valid any more. Nothing was changed.",
            findings=tuple(findings),
        )
    return edits


def _last_changes(change: Change, columns: Iterable[str]) -> Mapping[str, tuple[str, str]]:
    """For each of these columns that was written after this change: the author and id of the last change that did."""
    wanted = set(columns)
    found: dict[str, tuple[str, str]] = {}
    if not wanted:
        return found
    later = Change.objects.filter(environment=change.environment_id, generation__gt=change.generation)
    # A rollback holds, and so writes a column, too.
    deciding = later.filter(kind__in=[ChangeKind.POLICY.value, ChangeKind.RESOURCES.value]).exclude(undo=None)
    for row in deciding.order_by("-generation").iterator(chunk_size=100):
        columns_written = columns_of(row.undo)
        for column in wanted & set(columns_written.after if columns_written is not None else ()):
            found.setdefault(column, (row.author, str(row.public_id)))
        if found.keys() >= wanted:
            break
    return found
