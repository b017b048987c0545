"""Roles with limits, where resources are read and written: which rows somebody may read, and whether a write stays
within what its writer may write.

A write is within a limit when each of its resources is so before it and after it: nothing is taken over, and nothing is
given away.
"""

from collections.abc import Collection, Mapping
from typing import Final

from django.db.models import F, Q
from django.db.models.functions import Left, Length, Right
from django.db.models.lookups import Exact, GreaterThanOrEqual

from controlplane.accounts.principal import Allowed, Principal, Role
from controlplane.catalog.marking import labels_of
from controlplane.catalog.models import Change, Resource, Revision
from controlplane.catalog.undoing import owners_of
from controlplane.common.errors import Forbidden
from controlplane.common.limits import Limit
from xdscore.findings import Finding, Severity
from xdscore.names import glob_parts

Key = tuple[str, str]
_BATCH: Final = 500
_NOBODYS: Final = Q(pk__in=())
_EACH_ONES: Final = ~_NOBODYS


def rows_allowed(allowed: Allowed, resource: str = "") -> Q:
    """The condition that rows fulfil whose resource is among those allowed. `resource`: the way from a row to its
    resource, such as `resource__`; empty where the rows are resources.
    """
    if allowed.everything:
        return _EACH_ONES
    found = _NOBODYS
    for limits in allowed.any_of:
        each = _EACH_ONES
        for limit in limits:
            each &= _taken(limit, resource)
        found |= each
    return found


def change_allowed(allowed: Allowed, change: Change) -> bool:
    """Whether a change wrote resources, or labels and owners of such, all of which are among those allowed."""
    if allowed.nothing:
        return False
    rows = Revision.objects.filter(change=change.pk)
    marked = {(word, name) for word, name, *_ in owners_of(change.undo)}
    marked |= {moved.key for moved in labels_of(change.undo)}
    owners = _owners(change.environment.key, marked)
    taken = all(allowed.takes(*key, owners.get(key, "")) for key in marked)
    is_any = bool(marked) or rows.exists()
    return is_any and taken and not rows.exclude(rows_allowed(allowed, "resource__")).exists()


def write_check(
    principal: Principal,
    environment_key: str,
    roles: Collection[Role],
    *,
    writes: Mapping[Key, str | None],
    named: Collection[Key] | None = None,
) -> None:
    """Raise Forbidden unless the principal may act in one of `roles` on each resource that is written, as it is now and
    as it will be; with a finding for each on which they may not.

    `writes`: the type and name of each, and the owner that it gets; None: its owner stays.
    `named`: those that the writer named, and so may be told of; None: all of them.
    """
    rights = [principal.allowed(role, environment_key) for role in roles]
    if any(each.everything for each in rights):
        return
    owners = _owners(environment_key, writes)
    outside = {
        key
        for key, becomes in writes.items()
        if not any(_stays(allowed, key, owners.get(key), becomes) for allowed in rights)
    }
    if not outside:
        return
    wanted = " or ".join(role.value for role in roles)
    hint = f"It takes the role {wanted} in '{environment_key}', or on the resource as it is and as it will be."
    findings = [
        _finding(f"{principal.name} may not write the {word} '{name}'.", hint).about(word, name)
        for word, name in sorted(outside if named is None else outside & set(named))
    ]
    if len(findings) < len(outside):
        findings.append(_finding(f"prune would delete resources that {principal.name} may not delete.", hint))
    limits = "; or ".join(dict.fromkeys(filter(None, (each.words for each in rights))))
    has = f"{principal.name} has it for {limits} only" if limits else f"{principal.name} does not have it"
    raise Forbidden(
        f"This needs the role {wanted} in environment '{environment_key}' on everything that it writes; {has}. "
        "Nothing was changed.",
        findings=tuple(findings),
    )


def _finding(detail: str, hint: str) -> Finding:
    return Finding(Forbidden.code, Severity.ERROR, detail, hint)


def may_write(principal: Principal, environment_key: str, key: Key) -> bool:
    """Whether the principal may write the resource of this type and name as it is now, or make it."""
    try:
        write_check(principal, environment_key, (Role.EDITOR,), writes={key: None})
    except Forbidden:
        return False
    return True


def _owners(environment_key: str, keys: Collection[Key]) -> dict[Key, str]:
    """The owner of each of these resources that is there, or was: what is left of a deleted one is still its last
    owner's, for its history can be restored.
    """
    found: dict[Key, str] = {}
    wanted = sorted(keys)
    for start in range(0, len(wanted), _BATCH):
        batch = set(wanted[start : start + _BATCH])
        rows = Resource.objects.filter(environment__key=environment_key, name__in={name for _, name in batch})
        for word, name, owner in rows.values_list("type", "name", "owner"):
            if (word, name) in batch:
                found[word, name] = owner
    return found


def _stays(allowed: Allowed, key: Key, had: str | None, becomes: str | None) -> bool:
    """Whether a resource is among those allowed before and after a write. `had`: its owner before; None: there never
    was such a resource; `becomes`: the owner that it gets; None: its owner stays.
    """
    before = had is None or allowed.takes(*key, had)
    return before and allowed.takes(*key, (had or "") if becomes is None else becomes)


def _taken(limit: Limit, resource: str) -> Q:
    """The condition that `Limit.takes` is, on rows."""
    found = _EACH_ONES
    if limit.owner is not None:
        found &= Q(**{f"{resource}owner": limit.owner})
    if limit.types is not None:
        found &= Q(**{f"{resource}type__in": limit.types})
    if limit.names is not None:
        any_name = _NOBODYS
        for pattern in limit.names:
            any_name |= _named(pattern, f"{resource}name")
        found &= any_name
    return found


def _named(pattern: str, column: str) -> Q:
    """The condition that a name matches a pattern with at most one star. Compared by equality alone: SQLite's LIKE, and
    so Django's `startswith`, would take `Pay` for `pay`.
    """
    head, *tail = glob_parts(pattern)
    if not tail:
        return Q(**{column: head})
    found = Q(GreaterThanOrEqual(Length(F(column)), len(pattern) - 1))
    if head:
        found &= Q(Exact(Left(F(column), len(head)), head))
    if tail[0]:
        found &= Q(Exact(Right(F(column), len(tail[0])), tail[0]))
    return found
