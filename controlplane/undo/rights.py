"""Who may take a change back: whoever may write what it wrote."""

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.models import Change
from controlplane.catalog.rights import column_role
from controlplane.catalog.undoing import columns_of
from controlplane.common.errors import Forbidden

_BY_KIND = {
    # Editors write resources; operators lead them back, as a rollback does.
    ChangeKind.RESOURCES.value: (Role.EDITOR, Role.OPERATOR),
    ChangeKind.ACCESS.value: (Role.ACCESS_EDITOR,),
    ChangeKind.QUARANTINE.value: (Role.OPERATOR,),
    ChangeKind.ROLLBACK.value: (Role.OPERATOR,),
}


def undo_roles(change: Change) -> tuple[tuple[Role, ...], ...]:
    """The roles that undoing the change needs: the principal needs at least one role out of each of the returned
    tuples.
    """
    columns = columns_of(change.undo)
    settings = tuple(dict.fromkeys((column_role(column),) for column in columns.before)) if columns is not None else ()
    kind = _BY_KIND.get(change.kind)
    if kind is None:
        return settings or ((Role.ADMIN,),)
    return (kind, *settings)


def may_undo(principal: Principal, change: Change) -> bool:
    """Whether the principal's roles allow undoing the change. Says nothing about whether the change can be undone."""
    return _lacking(principal, change) is None


def undo_require(principal: Principal, change: Change) -> None:
    """Raise Forbidden unless the principal's roles allow undoing the change."""
    lacking = _lacking(principal, change)
    if lacking is not None:
        roles = " or ".join(role.value for role in lacking)
        raise Forbidden(
            f"This needs the role {roles} in environment '{change.environment.key}'; {principal.name} does not have it."
        )


def _lacking(principal: Principal, change: Change) -> tuple[Role, ...] | None:
    key = change.environment.key
    return next((any_of for any_of in undo_roles(change) if not any(principal.may(each, key) for each in any_of)), None)
