"""Who may do what with the change sets of an environment: the rule that the API and the console share."""

from collections.abc import Mapping
from typing import Final

from controlplane.accounts.principal import Principal, Role
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
    """Whether the principal may do this with change sets of the environment, as far as roles decide it."""
    return any(principal.may(role, environment) for role in _ROLES[act])


def require(principal: Principal, act: Act, environment: str) -> None:
    """Raise Forbidden unless the principal may do this with change sets of the environment."""
    if not may(principal, act, environment):
        roles = " or ".join(role.value for role in _ROLES[act])
        raise Forbidden(
            f"This needs the role {roles} in environment '{environment}'; {principal.name} does not have it. Nothing "
            "was changed."
        )
