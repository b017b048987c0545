"""Who may do what with the change sets of an environment: the rule that the API and the console share."""

from collections.abc import Collection, Mapping
from typing import Final

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.limiting import Key, write_check
from controlplane.catalog.rights import lacking
from controlplane.changesets.machine import Act
from controlplane.common.errors import Forbidden

# Who may write resources may propose and publish them; to look over what others propose, operating is enough.
_PROPOSE: Final = (Role.EDITOR,)
_REVIEW: Final = (Role.EDITOR, Role.OPERATOR)
_ROLES: Final[Mapping[Act, tuple[Role, ...]]] = {
    Act.EDIT: _PROPOSE,
    Act.SUBMIT: _PROPOSE,
    Act.APPROVE: _REVIEW,
    Act.REJECT: _REVIEW,
    Act.SCHEDULE: _PROPOSE,
    Act.PUBLISH: _PROPOSE,
    Act.CANCEL: _PROPOSE,
    Act.DELETE: _PROPOSE,
    Act.COMMENT: _REVIEW,
}


def may(principal: Principal, act: Act, environment: str) -> bool:
    """Whether the principal may do this with change sets of the environment, as far as roles decide it: with those at
    least that are within the limits of a role. Who does any of this reads the environment as a whole, because what a
    change set says of itself is about all of it.
    """
    some = any(not principal.allowed(role, environment).nothing for role in _ROLES[act])
    return some and principal.may(Role.VIEWER, environment)


def require(principal: Principal, act: Act, environment: str) -> None:
    """Raise Forbidden unless the principal may do this with change sets of the environment, as `may` says."""
    if may(principal, act, environment):
        return
    roles = _ROLES[act] if principal.may(Role.VIEWER, environment) else (Role.VIEWER,)
    raise Forbidden(f"{lacking(principal, roles, environment)}. Nothing was changed.")


def entries_check(principal: Principal, act: Act, environment: str, keys: Collection[Key]) -> None:
    """Raise Forbidden unless the roles of the principal reach every resource that the change set writes or deletes.
    Everybody who may comment may comment on any.
    """
    if act is not Act.COMMENT:
        write_check(principal, environment, _ROLES[act], writes=dict.fromkeys(keys))


def may_with(principal: Principal, act: Act, environment: str, keys: Collection[Key]) -> bool:
    """Whether the principal may do this with a change set that writes or deletes these resources."""
    try:
        entries_check(principal, act, environment, keys)
    except Forbidden:
        return False
    return may(principal, act, environment)
