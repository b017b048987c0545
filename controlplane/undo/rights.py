"""Who may take a change back: whoever may write what it wrote."""

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.limiting import change_allowed
from controlplane.catalog.models import Change
from controlplane.catalog.rights import column_role, lacking
from controlplane.catalog.undoing import columns_of, wrote_both
from controlplane.common.errors import Forbidden

_ACCESS = (Role.ACCESS_EDITOR,)
_BY_KIND = {
    # Editors write resources; operators lead them back, as a rollback does.
    ChangeKind.RESOURCES.value: (Role.EDITOR, Role.OPERATOR),
    ChangeKind.LABELS.value: (Role.EDITOR, Role.OPERATOR),
    ChangeKind.ACCESS.value: _ACCESS,
    ChangeKind.QUARANTINE.value: (Role.OPERATOR,),
    ChangeKind.ROLLBACK.value: (Role.OPERATOR,),
}

OF_RESOURCES = (ChangeKind.RESOURCES.value, ChangeKind.LABELS.value)


def undo_roles(change: Change) -> tuple[tuple[Role, ...], ...]:
    """The roles that undoing the change needs: the principal needs at least one role out of each of the returned
    tuples.
    """
    columns = columns_of(change.undo)
    settings = tuple(dict.fromkeys((column_role(column),) for column in columns.before)) if columns is not None else ()
    kind = _BY_KIND.get(change.kind)
    if kind is None:
        return settings or ((Role.ADMIN,),)
    return (kind, *((_ACCESS,) if wrote_both(change.undo) else ()), *settings)


def may_undo(principal: Principal, change: Change) -> bool:
    """Whether the principal's roles allow undoing the change. Says nothing about whether the change can be undone."""
    return _lacking(principal, change) is None


def undo_require(principal: Principal, change: Change) -> None:
    """Raise Forbidden unless the principal's roles allow undoing the change."""
    lacks = _lacking(principal, change)
    if lacks is not None:
        raise Forbidden(f"{lacking(principal, lacks, change.environment.key)}.")


def _lacking(principal: Principal, change: Change) -> tuple[Role, ...] | None:
    for any_of in undo_roles(change):
        if not any(_has(principal, role, change) for role in any_of):
            return any_of
    return None


def _has(principal: Principal, role: Role, change: Change) -> bool:
    """Whether the principal may act in the role on what the change wrote: a role with limits reaches changes of
    resources alone, which are within them.
    """
    allowed = principal.allowed(role, change.environment.key)
    if allowed.everything or allowed.nothing:
        return allowed.everything
    return change.kind in OF_RESOURCES and change_allowed(allowed, change)
