"""Who may do what with the change sets of an environment: the rule that the API and the console share."""

from collections.abc import Mapping
from typing import Final

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.limiting import write_check
from controlplane.catalog.rights import lacking
from controlplane.changesets.machine import Act
from controlplane.changesets.values import Holds
from controlplane.common.errors import Forbidden

# Who may write may propose and publish; to look over what others propose, operating is enough.
_PROPOSE: Final = (Role.EDITOR, Role.ACCESS_EDITOR)
_REVIEW: Final = (Role.EDITOR, Role.ACCESS_EDITOR, Role.OPERATOR)
_OF_RESOURCES: Final = {False: (Role.EDITOR,), True: (Role.EDITOR, Role.OPERATOR)}
"""Of which roles one has to reach each resource, by whether the act is a review."""
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


def may_with(principal: Principal, act: Act, environment: str, holds: Holds) -> bool:
    """Whether the principal may do this with a change set that holds this."""
    try:
        contents_check(principal, act, environment, holds)
    except Forbidden:
        return False
    return may(principal, act, environment)


def require(principal: Principal, act: Act, environment: str) -> None:
    """Raise Forbidden unless the principal may do this with change sets of the environment, as `may` says."""
    if may(principal, act, environment):
        return
    roles = _ROLES[act] if principal.may(Role.VIEWER, environment) else (Role.VIEWER,)
    raise Forbidden(f"{lacking(principal, roles, environment)}. Nothing was changed.")


def contents_check(principal: Principal, act: Act, environment: str, holds: Holds) -> None:
    """Raise Forbidden unless the roles of the principal reach all that a change set holds: each resource that it writes
    or deletes, and its rules and groups. Everybody who may comment may comment on any.
    """
    if act is Act.COMMENT:
        return
    reviews = _ROLES[act] is _REVIEW
    if holds.keys:
        write_check(principal, environment, _OF_RESOURCES[reviews], writes=dict.fromkeys(holds.keys))
    if not holds.access:
        return
    roles = (Role.ACCESS_EDITOR,) if not reviews else _OF_RESOURCES[True] if holds.keys else _REVIEW
    if not any(principal.may(role, environment) for role in roles):
        raise Forbidden(f"{lacking(principal, roles, environment)}. Nothing was changed.")
