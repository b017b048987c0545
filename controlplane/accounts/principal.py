"""Who is acting, and what that allows: pure values."""

from collections.abc import Iterable
from dataclasses import dataclass

from controlplane.common.principal_ids import PrincipalId, PrincipalKind
from controlplane.common.roles import Role

__all__ = [
    "ADMIN_SCOPES",
    "INSTALLATION",
    "SYSTEM",
    "Principal",
    "Role",
    "Scope",
    "roles_with",
    "scopes_within",
]


# What holding a role lets one act as. Every role may read; an administrator may do everything.
_IMPLIES: dict[Role, frozenset[Role]] = {
    Role.VIEWER: frozenset({Role.VIEWER}),
    Role.REPORTER: frozenset({Role.VIEWER, Role.REPORTER}),
    Role.REHEARSER: frozenset({Role.VIEWER, Role.REHEARSER}),
    Role.EDITOR: frozenset({Role.VIEWER, Role.EDITOR}),
    Role.ACCESS_EDITOR: frozenset({Role.VIEWER, Role.ACCESS_EDITOR}),
    Role.OPERATOR: frozenset({Role.VIEWER, Role.REPORTER, Role.REHEARSER, Role.OPERATOR}),
    Role.ADMIN: frozenset(Role),
}


def roles_with(role: Role) -> frozenset[Role]:
    """The roles that include all rights of this role; the role itself is among them."""
    return frozenset(held for held, implied in _IMPLIES.items() if role in implied)


@dataclass(frozen=True, slots=True)
class Scope:
    """A role in one environment; where `environment` is None (null in interfaces.md section 7), in all environments."""

    role: Role
    environment: str | None


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody or something that acts, such as a user or a token: a name for people to read, the roles that it has and
    where, and an id that never changes. Without scopes it may do nothing.
    """

    name: str
    scopes: tuple[Scope, ...]
    id: PrincipalId

    def may(self, role: Role, environment: str | None) -> bool:
        """Whether this principal may act in `role` in this environment; with None, in all environments."""
        return any(
            role in _IMPLIES[scope.role] and (scope.environment is None or scope.environment == environment)
            for scope in self.scopes
        )

    def sees(self, environments: Iterable[str]) -> tuple[str, ...]:
        """The keys among `environments` that this principal may read."""
        return tuple(key for key in environments if self.may(Role.VIEWER, key))


def scopes_within(wanted: Iterable[Scope], bound: Principal) -> tuple[Scope, ...]:
    """The rights in `wanted` that `bound` has too: a token may do no more than the person it belongs to.

    A role in all environments becomes that role in the environments where `bound` has it. A role that `bound` lacks
    becomes the roles that both include.
    """
    kept: dict[Scope, None] = {}
    for scope in wanted:
        if bound.may(scope.role, scope.environment):
            kept[scope] = None
            continue
        for held in bound.scopes:
            if None in (scope.environment, held.environment) or scope.environment == held.environment:
                where = held.environment if scope.environment is None else scope.environment
                both = _IMPLIES[scope.role] & _IMPLIES[held.role]
                kept.update(dict.fromkeys(Scope(role, where) for role in Role if role in both))
    return tuple(kept)


ADMIN_SCOPES = tuple(Scope(role, None) for role in Role)
SYSTEM = Principal("parley", ADMIN_SCOPES, PrincipalId(PrincipalKind.SYSTEM))
INSTALLATION = Principal("token:admin.token", ADMIN_SCOPES, PrincipalId(PrincipalKind.INSTALLATION))
"""The principal of whoever can read `admin.token` in the home: the machine's own operator, who sets the rates and has
none.
"""
