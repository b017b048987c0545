"""What somebody may know of and do in an environment: the rule that the API and the pages share."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from controlplane.accounts.principal import Principal, Role
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


def require(principal: Principal, role: Role, environment_key: str | None) -> None:
    """Raise Forbidden unless the principal may act in this role in the environment (None: in all of them)."""
    if not principal.may(role, environment_key):
        where = f"in environment '{environment_key}'" if environment_key is not None else "in all environments"
        raise Forbidden(f"This needs the role {role.value} {where}; {principal.name} does not have it.")


def environment_visible(principal: Principal, key: str) -> EnvironmentState:
    """The environment with this key. Raises NotFound, with one text, where it does not exist and where the principal
    may not see it.
    """
    if not re.fullmatch(ENVIRONMENT_KEY_PATTERN, key) or not principal.may(Role.VIEWER, key):
        raise _absent(key)
    return environment_get(key=key)


def environment_among(principal: Principal, key: str, environments: Iterable[EnvironmentState]) -> EnvironmentState:
    """The environment with this key among `environments`, for whoever has read them all. Raises NotFound as
    `environment_visible` does.
    """
    found = next((state for state in environments if state.key == key), None)
    if found is None or not principal.may(Role.VIEWER, key):
        raise _absent(key)
    return found


def _absent(key: str) -> NotFound:
    return NotFound(f"There is no environment '{shown(key)}'.")
