"""What somebody may know of and do in an environment: the rule that the API and the pages share."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.accounts.principal import Allowed, Principal, Role
from controlplane.catalog.models import ENVIRONMENT_KEY_PATTERN
from controlplane.catalog.selectors import EnvironmentState, environment_get
from controlplane.common.errors import Forbidden, NotFound
from xdscore.codes import shown

# Who may change what about an environment: which clients it takes, what they may read, what operating it needs.
POLICY_ROLES: Final[Mapping[str, Role]] = {
    "selectors": Role.ADMIN,
    "node_ids": Role.ADMIN,
    "default_effect": Role.ACCESS_EDITOR,
    "quarantine": Role.OPERATOR,
    "hold": Role.OPERATOR,
    "content": Role.ADMIN,
    "deep_validation": Role.ADMIN,
    "require_if_match": Role.ADMIN,
    "loss_threshold": Role.ADMIN,
    "rollout": Role.ADMIN,
    "freezes": Role.ADMIN,
    "review": Role.ADMIN,
}

# What the API calls a column of an environment, where that is another word.
_FIELD_OF_COLUMN: Final[Mapping[str, str]] = {
    "hold_reason": "hold",
    "loss_access_clients": "loss_threshold",
    "loss_other_percent": "loss_threshold",
}


def column_role(column: str) -> Role:
    """The role that somebody needs to write this column of the table of environments."""
    return POLICY_ROLES.get(_FIELD_OF_COLUMN.get(column, column), Role.ADMIN)


@dataclass(frozen=True, slots=True)
class OnSome:
    """What a view needs that knows of limits: the role on some resources of the environment at least. The view shows
    and writes no others.
    """

    role: Role


def require(principal: Principal, role: Role, environment_key: str | None) -> None:
    """Raise Forbidden unless the principal may act in this role in the environment as a whole (None: in all)."""
    if not principal.may(role, environment_key):
        raise Forbidden(f"{lacking(principal, (role,), environment_key)}.")


def require_some(principal: Principal, role: Role, environment_key: str) -> Allowed:
    """The resources of the environment on which the principal may act in this role. Raises Forbidden where there are
    none.
    """
    allowed = principal.allowed(role, environment_key)
    if allowed.nothing:
        raise Forbidden(f"{lacking(principal, (role,), environment_key)}.")
    return allowed


def lacking(principal: Principal, roles: Iterable[Role], environment_key: str | None) -> str:
    """What a principal lacks that needs one of these roles in an environment as a whole (None: in all of them), as a
    sentence without its full stop.
    """
    needed = tuple(roles)
    words = " or ".join(role.value for role in needed)
    where = f"in environment '{environment_key}'" if environment_key is not None else "in all environments"
    limits = [principal.allowed(role, environment_key).words for role in needed] if environment_key is not None else []
    if has := "; or ".join(dict.fromkeys(filter(None, limits))):
        return f"This needs the role {words} {where} as a whole; {principal.name} has it for {has} only"
    return f"This needs the role {words} {where}; {principal.name} does not have it"


def environment_visible(principal: Principal, key: str, *, partly: bool = False) -> EnvironmentState:
    """The environment with this key. `partly`: for whoever may read some of its resources, too. Raises NotFound, with
    one text, where it does not exist and where the principal may see nothing of it; Forbidden where they may read some
    of its resources only and that is not enough.
    """
    if not re.fullmatch(ENVIRONMENT_KEY_PATTERN, key) or principal.allowed(Role.VIEWER, key).nothing:
        raise _absent(key)
    found = environment_get(key=key)
    if not partly:
        require(principal, Role.VIEWER, key)
    return found


def environment_among(
    principal: Principal, key: str, environments: Iterable[EnvironmentState], *, partly: bool = False
) -> EnvironmentState:
    """The environment with this key among `environments`, for whoever has read them all. `partly`, and what it raises,
    are as of `environment_visible`.
    """
    found = next((state for state in environments if state.key == key), None)
    if found is None or principal.allowed(Role.VIEWER, key).nothing:
        raise _absent(key)
    if not partly:
        require(principal, Role.VIEWER, key)
    return found


def _absent(key: str) -> NotFound:
    return NotFound(f"There is no environment '{shown(key)}'.")
