"""What a set of edits would do: the part of a change that comes before its first write.

`change_apply` plans under the environment's lock and then writes the plan; `change_plan` plans and stops. So a dry run
is the same code up to where something would be left behind (texts.md section 4, "Dry-run guarantee").
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.conf import settings

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.choices import BlobKind
from controlplane.catalog.guarding import Prospect
from controlplane.catalog.key_marks import keys_permit
from controlplane.catalog.lasting import lasting_keys
from controlplane.catalog.limiting import write_check
from controlplane.catalog.marking import Mark, Marked
from controlplane.catalog.models import Environment, Resource, Revision
from controlplane.catalog.references import needs_of
from controlplane.catalog.sealing import key_ring
from controlplane.catalog.services.expecting import expectations_check, is_present
from controlplane.catalog.services.marking import marked_by
from controlplane.catalog.services.orphans import orphans_of
from controlplane.catalog.services.sizes import sizes_after
from controlplane.catalog.services.strictness import refuse_missing
from controlplane.catalog.undoing import OwnerMoved
from controlplane.catalog.values import (
    Delete,
    Edit,
    EditedResource,
    Put,
    edit_key,
)
from controlplane.common.errors import Conflict, Forbidden, InputInvalid
from xdscore.codes import CATALOGUE
from xdscore.findings import Finding, Severity, has_errors
from xdscore.resource_types import by_word
from xdscore.schema.content_policy import ContentPolicy, graded, policy_of
from xdscore.schema.leniency import is_spelling
from xdscore.schema.parse import ParsedResource
from xdscore.schema.sensitive import holds_secrets
from xdscore.snapshot import content_version

# SQLite allows 32,766 variables in one statement, older builds 999; PostgreSQL 65,535.
BATCH = 500
_MAX_MOVED_SHOWN = 200  # as many as a problem document lists

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Prepared:
    """An edit with everything that takes long done before the transaction: the address of its content is computed, a
    secret is encrypted.

    `key`: the type's word and the name.
    `parsed`: the resource to store; None for a deletion.
    `stored`: the bytes to store, encrypted where `is_sealed`.
    """

    edit: Edit
    key: Key
    parsed: ParsedResource | None
    address: bytes
    stored: bytes
    is_sealed: bool = False

    @staticmethod
    def of(edit: Edit, environment_key: str) -> "Prepared":
        """Prepare an edit: compute the address of its content, and encrypt a secret."""
        match edit:
            case Delete():
                return Prepared(edit, edit_key(edit), None, b"", b"")
            case Put(parsed=parsed) if parsed.type.secret or holds_secrets(parsed.any_bytes):
                # A key may stand inline in a cluster or listener, too (D18).
                address = lasting_keys().secret_address(
                    environment=environment_key, word=parsed.type.word, name=parsed.name, plaintext=parsed.any_bytes
                )
                sealed = key_ring().seal(parsed.any_bytes, address)
                return Prepared(edit, edit_key(edit), parsed, address, sealed, is_sealed=True)
            case Put(parsed=parsed):
                return Prepared(edit, edit_key(edit), parsed, parsed.content_hash, parsed.any_bytes)

    @property
    def blob_kind(self) -> BlobKind:
        """The kind of blob in which the edit's bytes are stored."""
        return BlobKind.SECRET if self.is_sealed else BlobKind.RESOURCE

    @property
    def version(self) -> str:
        """The version on the wire of what is written; empty for a deletion."""
        return content_version(self.address, self.parsed.ttl_ms) if self.parsed is not None else ""

    def owner(self, owner: str | None) -> str | None:
        """The owner that the resource has after the edit: the edit's own or, without one, `owner`, that of the whole
        write. None: the owner stays.
        """
        own = self.edit.owner if isinstance(self.edit, Put) else None
        return owner if own is None else own

    def changes(self, resource: Resource | None, owner: str | None) -> bool:
        """Whether this edit makes a difference to the stored resource (None: none is stored). `owner`: that of the
        whole write.
        """
        owner = self.owner(owner)
        present = is_present(resource)
        if self.parsed is None:
            return present
        if resource is None or resource.head is None or not present:
            return True
        # By version: a ttl that an earlier release kept and told nobody of is not in it, and counts once written again.
        same_content = resource.head.blob_id == self.address.hex() and resource.head.version == self.version
        return not same_content or (owner is not None and owner != resource.owner)

    def graded(self, policy: ContentPolicy) -> "Prepared":
        """A copy of the edit in which findings about dangerous content are errors, warnings or notes as `policy`
        says.
        """
        if self.parsed is None:
            return self
        return replace(self, parsed=replace(self.parsed, findings=graded(self.parsed.findings, policy)))

    def outcome(self, resource: Resource | None) -> EditedResource:
        """What the edit does to the stored resource (None: none is stored): created, updated or deleted, with the
        number of the new revision.
        """
        word, name = self.key
        number = (resource.counter if resource is not None else 0) + 1
        if self.parsed is None:
            return EditedResource(word, name, "deleted", number)
        return EditedResource(word, name, "updated" if is_present(resource) else "created", number)


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions of a write of resources.

    `owner`: the owner of what is written; None leaves owners as they are.
    `prune`: also delete what this owner has and no edit names.
    `base_generation`: the generation that the writer looked at; Conflict where resources were written since then.
    `strict`: refuse references to resources that do not exist (`strictness`).
    `overrides_hold`: write although the environment is on hold; only for rollbacks and undos (decisions U5).
    `staged`: where the environment has rollouts, what is written waits for one. False, for rollbacks (rollouts.md R13)
        and `rollout=now`: it reaches both sides at once, and so does what waited of the names that are edited.
    `because`: why `rollout=now` was asked for; empty otherwise. It stands in the audit log.
    `roles`: the writer needs one of these on each resource.
    """

    owner: str | None = None
    prune: bool = False
    base_generation: int | None = None
    strict: bool = False
    overrides_hold: bool = False
    staged: bool = True
    because: str = ""
    roles: tuple[Role, ...] = (Role.EDITOR,)


NO_TERMS: Final = Terms()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a write would do. `effective`: the edits that make a difference; `current`: the stored rows of the resources
    that are edited; `orphans` and `sizes`: findings about deleted names still in use, and about types that grow large;
    `told`: the writer may read the whole environment, and so be told of others' resources and clients; `marked`: which
    owners and labels become others by marks.
    """

    effective: tuple[Prepared, ...]
    current: dict[Key, Resource]
    orphans: tuple[Finding, ...]
    sizes: tuple[Finding, ...]
    told: bool = True
    marked: tuple[Marked, ...] = ()

    @property
    def outcomes(self) -> tuple[EditedResource, ...]:
        """What each edit does to its resource, in order: created, updated or deleted, with the revision's number."""
        return tuple(edit.outcome(self.current.get(edit.key)) for edit in self.effective)

    def owners_moved(self, owner: str | None) -> tuple[OwnerMoved, ...]:
        """The owner before and after the write of each resource whose owner changes or that is deleted. `owner`: that
        of the whole write.
        """
        found = []
        for edit in self.effective:
            resource = self.current.get(edit.key)
            if resource is None or not is_present(resource):
                continue
            becomes = edit.owner(owner)
            after = resource.owner if becomes is None else becomes
            if edit.parsed is None or after != resource.owner:
                found.append((*edit.key, resource.owner, after))
        found += [(*each.key, *each.owner) for each in self.marked if each.owner_moves]
        return tuple(found)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Warnings and notes about the resources that are written, about deleted ones that are still referred to, and
        about types that grow large.
        """
        said = (finding for edit in self.effective if edit.parsed is not None for finding in edit.parsed.findings)
        return (*said, *self.orphans, *self.sizes)

    @property
    def findings_of_write(self) -> tuple[Finding, ...]:
        """The findings about the write itself rather than about what is stored by it: they stay with the change."""
        said = (finding for edit in self.effective if edit.parsed is not None for finding in edit.parsed.findings)
        return (*filter(is_spelling, said), *self.orphans, *self.sizes)

    def prospect(self, environment_key: str) -> Prospect:
        """What clients could lose by the planned edits: the names that are deleted."""
        gone = frozenset(edit.key for edit in self.effective if edit.parsed is None)
        if not gone:
            return Prospect(environment_key)
        put = {edit.key: edit.parsed for edit in self.effective if edit.parsed is not None}
        return Prospect(environment_key, gone, {key: tuple(needs_of(parsed)) for key, parsed in put.items()})


def _marks_of(prepared: Sequence[Prepared]) -> tuple[Mark, ...]:
    """The marks that edits bring along: manifests that say which labels their resources have."""
    puts = (edit.parsed for edit in prepared if edit.parsed is not None)
    return tuple(Mark(each.type, each.name, whole=each.labels) for each in puts if each.labels is not None)


def prepare(edits: Sequence[Edit], environment_key: str, terms: Terms) -> tuple[Prepared, ...]:
    """Prepare edits as far as that needs no look at the database. Raises InputInvalid (a name edited twice, prune
    without owner), and KeysForeign where secrets would be encrypted under keys that no other process has.
    """
    if terms.prune and not terms.owner:
        raise InputInvalid(
            "prune deletes what an owner has and the request does not name, so it needs an owner. Nothing was changed."
        )
    _refuse_repeats(edits)
    prepared = tuple(Prepared.of(edit, environment_key) for edit in edits)
    if any(each.is_sealed for each in prepared):
        keys_permit()
    return prepared


def plan(
    environment: Environment,
    prepared: Sequence[Prepared],
    terms: Terms,
    actor: Principal | None,
    marks: Sequence[Mark] = (),
) -> Plan:
    """The difference that these edits and marks make to the environment as it is now. `actor`: who writes; None: nobody
    writes, and whoever looks may read the whole environment. Raises Forbidden, Conflict, NotFound, PreconditionFailed
    and InputInvalid (content not allowed, too many or too large resources, references to nothing, too many labels).

    Who may not read the whole environment is told nothing of resources that they did not name.
    """
    edits = (*prepared, *_pruned(environment, prepared, terms))
    marks = (*_marks_of(prepared), *marks)
    told = actor is None or _check_rights(environment, prepared, edits, marks, terms, actor)
    if edits or not marks:
        _check_hold(environment, terms, told=told)
    _check_base(environment, terms, told=told)
    current, marked = _stored(environment, edits, marks, terms)
    policy = policy_of(environment.content)
    effective = tuple(edit.graded(policy) for edit in edits if edit.changes(current.get(edit.key), terms.owner))
    _check_content(environment, effective)
    _check_count(environment, effective, current)
    _check_ttls(environment, effective, current)
    if terms.strict:
        # Also of what is put as it is already: whether a reference leads anywhere is no question of what is new.
        refuse_missing(
            environment,
            put={edit.key: edit.parsed for edit in edits if edit.parsed is not None},
            deleted={edit.key for edit in edits if edit.parsed is None},
        )
    put = {edit.key: edit.parsed for edit in effective if edit.parsed is not None}
    sizes = _check_sizes(environment, effective, current)
    if not told:
        return Plan(effective, current, (), (), told=False, marked=marked)
    orphans = orphans_of(
        environment,
        deleted={edit.key for edit in effective if edit.parsed is None},
        put=put,
        created={key for key in put if not is_present(current.get(key))},
    )
    return Plan(effective, current, orphans, sizes, marked=marked)


def _stored(
    environment: Environment, edits: Sequence[Prepared], marks: Sequence[Mark], terms: Terms
) -> tuple[dict[Key, Resource], tuple[Marked, ...]]:
    """The stored rows of the resources that are edited or marked, which are as the write expects them, and what the
    marks change. Raises NotFound, PreconditionFailed and InputInvalid.
    """
    current = _current_resources(environment, {edit.key for edit in edits} | {mark.key for mark in marks})
    expectations_check([*(edit.edit for edit in edits), *marks], current)
    becomes = {edit.key: edit.owner(terms.owner) for edit in edits if edit.parsed is not None}
    return current, marked_by(marks, current, becomes)


def _refuse_repeats(edits: Sequence[Edit]) -> None:
    seen: set[Key] = set()
    findings: list[Finding] = []
    for edit in edits:
        word, name = key = edit_key(edit)
        if key in seen:
            findings.append(CATALOGUE["XDS3006"].finding("", word=word, name=name).about(word, name))
        seen.add(key)
    if findings:
        raise InputInvalid("A resource is edited more than once. Nothing was changed.", findings=tuple(findings))


def _check_rights(
    environment: Environment,
    prepared: Sequence[Prepared],
    edits: Sequence[Prepared],
    marks: Sequence[Mark],
    terms: Terms,
    actor: Principal,
) -> bool:
    """Whether the writer may be told of others' resources: they may read the whole environment. `prepared`: the edits
    that they named, among `edits`, beside `marks`. Raises Forbidden where they may not write each of these, and where
    `strict` would tell what they may not see.
    """
    write_check(
        actor,
        environment.key,
        terms.roles,
        writes={mark.key: mark.owner for mark in marks}
        | {edit.key: edit.owner(terms.owner) if edit.parsed is not None else None for edit in edits},
        named=[*(edit.key for edit in prepared), *(mark.key for mark in marks)],
    )
    told = any(actor.may(role, environment.key) for role in (Role.VIEWER, *terms.roles))
    if terms.strict and not told:
        raise Forbidden(
            "strict asks whether resources of others exist, so it needs the role viewer in environment "
            f"'{environment.key}' as a whole. Nothing was changed."
        )
    return told


def _check_hold(environment: Environment, terms: Terms, *, told: bool) -> None:
    if environment.hold_reason and not terms.overrides_hold:
        because = f": {environment.hold_reason}" if told else ""
        raise Conflict(f"Environment '{environment.key}' is on hold{because}. Release the hold, then try again.")


def _check_base(environment: Environment, terms: Terms, *, told: bool) -> None:
    if terms.base_generation is None:
        return
    moved = (
        Revision.objects.filter(change__environment=environment, change__generation__gt=terms.base_generation)
        .order_by("resource__type", "resource__name")
        .values_list("resource__type", "resource__name", "change__author")
        .distinct()
    )
    findings = tuple(
        Finding(
            code=Conflict.code,
            severity=Severity.ERROR,
            detail=f"The {word} '{name}' was changed by {author} since then.",
            resource_type=word,
            resource_name=name,
        )
        for word, name, author in moved[: _MAX_MOVED_SHOWN + 1]
    )
    if findings:
        raise Conflict(
            f"Environment '{environment.key}' moved on from the epoch this was made against. Look at it again. "
            "Nothing was changed.",
            findings=findings if told else (),
        )


def _pruned(environment: Environment, prepared: Sequence[Prepared], terms: Terms) -> tuple[Prepared, ...]:
    if not terms.prune:
        return ()
    kept = {edit.key for edit in prepared}
    owned = Resource.objects.filter(environment=environment, owner=terms.owner, deleted=False).order_by("type", "name")
    return tuple(
        Prepared.of(Delete(by_word[word], name), environment.key)
        for word, name in owned.values_list("type", "name")
        if (word, name) not in kept
    )


def _current_resources(environment: Environment, keys: Iterable[Key]) -> dict[Key, Resource]:
    names_by_type: dict[str, list[str]] = {}
    for word, name in keys:
        names_by_type.setdefault(word, []).append(name)
    found: dict[Key, Resource] = {}
    for word, names in names_by_type.items():
        for start in range(0, len(names), BATCH):
            rows = Resource.objects.filter(environment=environment, type=word, name__in=names[start : start + BATCH])
            found.update({(word, row.name): row for row in rows.select_related("head")})
    return found


def _check_content(environment: Environment, effective: Sequence[Prepared]) -> None:
    """Raise InputInvalid for content that the environment's policy does not allow (reliability threat 20)."""
    findings = tuple(finding for edit in effective if edit.parsed is not None for finding in edit.parsed.findings)
    if has_errors(findings):
        raise InputInvalid(
            f"Environment '{environment.key}' does not take such content. Nothing was changed.", findings=findings
        )


def _check_sizes(
    environment: Environment, effective: Sequence[Prepared], current: dict[Key, Resource]
) -> tuple[Finding, ...]:
    """Warnings about types that grow large. Raises InputInvalid where a response with all of a type would be too large
    for clients.
    """
    before = {
        edit.key: resource.head.size
        for edit in effective
        if (resource := current.get(edit.key)) is not None and is_present(resource) and resource.head is not None
    }
    after = {edit.key: len(edit.parsed.any_bytes) for edit in effective if edit.parsed is not None}
    found = sizes_after(environment, before=before, after=after)
    if found.errors:
        raise InputInvalid("Clients could not take so large a state. Nothing was changed.", findings=found.errors)
    return found.warnings


def _check_count(environment: Environment, effective: Sequence[Prepared], current: dict[Key, Resource]) -> None:
    """Raise InputInvalid when the edits add resources beyond the limit. Edits that add none pass even where a lowered
    limit is exceeded already.
    """
    outcomes = [edit.outcome(current.get(edit.key)).action for edit in effective]
    added = outcomes.count("created") - outcomes.count("deleted")
    if added <= 0:
        return
    limit: int = settings.PARLEY.limits.resources_per_environment
    count = Resource.objects.filter(environment=environment, deleted=False).count() + added
    if count > limit:
        raise InputInvalid(
            f"Environment '{environment.key}' would hold {count:,} resources; at most {limit:,} are allowed. "
            "Nothing was changed."
        )


def _check_ttls(environment: Environment, effective: Sequence[Prepared], current: dict[Key, Resource]) -> None:
    """Raise InputInvalid when the edits give a ttl to more resources than the limit allows: each is renewed on every
    stream that holds it.
    """
    given = [edit.key for edit in effective if edit.parsed is not None and edit.parsed.ttl_ms]
    added = len(given) - sum(_has_ttl(current.get(edit.key)) for edit in effective)
    if not given or added <= 0:
        return
    limit: int = settings.PARLEY.limits.ttls_per_environment
    count = Resource.objects.filter(environment=environment, deleted=False, head__ttl_ms__gt=0).count() + added
    if count > limit:
        raise InputInvalid(
            f"Environment '{environment.key}' would hold {count:,} resources with a ttl; at most {limit:,} are allowed "
            "(PARLEY_LIMIT_TTLS_PER_ENVIRONMENT). Nothing was changed."
        )


def _has_ttl(resource: Resource | None) -> bool:
    return resource is not None and not resource.deleted and resource.head is not None and resource.head.ttl_ms > 0
