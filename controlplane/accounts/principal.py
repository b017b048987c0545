"""Who is acting, and what that allows: pure values."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from controlplane.common.limits import LIMITED_ROLES, Limit
from controlplane.common.principal_ids import PrincipalId, PrincipalKind
from controlplane.common.roles import Role

__all__ = [
    "ADMIN_SCOPES",
    "EVERYTHING",
    "INSTALLATION",
    "SYSTEM",
    "Allowed",
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
    """A role in one environment; where `environment` is None (null in interfaces.md section 7), in all environments.
    `limits`: the role holds only for resources that all of these take; without any it holds for the environment as a
    whole.
    """

    role: Role
    environment: str | None
    limits: tuple[Limit, ...] = ()

    def gives(self, role: Role, environment: str | None) -> bool:
        """Whether this lets one act in `role` in the environment, on some resources at least. A limit of a role that is
        about whole environments leaves of it what is about single resources.
        """
        known = role in _IMPLIES[self.role] and (not self.limits or role in LIMITED_ROLES)
        return known and (self.environment is None or self.environment == environment)

    @property
    def words(self) -> str:
        """The scope for people, such as "editor in prod, only cluster 'pay*'"."""
        where = self.environment if self.environment is not None else "all environments"
        only = " and ".join(limit.words for limit in self.limits)
        return f"{self.role.value} in {where}" + (f", only {only}" if only else "")


@dataclass(frozen=True, slots=True)
class Allowed:
    """On which resources of an environment somebody may act in a role: those that all limits of one of `any_of` take.
    Empty limits take every resource; without any limits, none is taken.
    """

    any_of: tuple[tuple[Limit, ...], ...]

    @property
    def everything(self) -> bool:
        """Whether the right holds for the environment as a whole, and so for what is about more than single resources,
        too.
        """
        return () in self.any_of

    @property
    def nothing(self) -> bool:
        """Whether there is no such right at all."""
        return not self.any_of

    def takes(self, word: str, name: str, owner: str) -> bool:
        """Whether the resource of the type `word` with this name and owner (empty: none) is among them."""
        return any(all(limit.takes(word, name, owner) for limit in limits) for limits in self.any_of)

    @property
    def words(self) -> str:
        """The limits for people: "cluster 'pay*'; or listener 'pay'"; empty for everything and for nothing."""
        if self.everything:
            return ""
        return "; or ".join(" and ".join(limit.words for limit in limits) for limits in self.any_of)

    @property
    def text(self) -> str:
        """A text that is equal for equal limits alone; empty for everything."""
        if self.everything:
            return ""
        return json.dumps([[limit.as_json() for limit in limits] for limits in self.any_of])


EVERYTHING = Allowed(((),))
"""What somebody has whose role holds for the environment as a whole."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody or something that acts, such as a user or a token: a name for people to read, the roles that it has and
    where, and an id that never changes. Without scopes it may do nothing.
    """

    name: str
    scopes: tuple[Scope, ...]
    id: PrincipalId

    def may(self, role: Role, environment: str | None) -> bool:
        """Whether this principal may act in `role` in this environment as a whole; with None, in all environments. A
        role with limits does not count: whatever asks this, and knows nothing of limits, refuses.
        """
        return any(scope.gives(role, environment) and not scope.limits for scope in self.scopes)

    def allowed(self, role: Role, environment: str) -> Allowed:
        """On which resources of this environment this principal may act in `role`."""
        if self.may(role, environment):
            return EVERYTHING
        return Allowed(tuple(dict.fromkeys(each.limits for each in self.scopes if each.gives(role, environment))))

    def sees(self, environments: Iterable[str]) -> tuple[str, ...]:
        """The keys among `environments` that this principal may read as a whole."""
        return tuple(key for key in environments if self.may(Role.VIEWER, key))


def scopes_within(wanted: Iterable[Scope], bound: Principal) -> tuple[Scope, ...]:
    """The rights in `wanted` that `bound` has too: a token may do no more than the person it belongs to.

    A role in all environments becomes that role in the environments where `bound` has it. A role that `bound` lacks
    becomes the roles that both include. Of limits, all hold: those of the wanted role and those of the one that `bound`
    has.
    """
    kept: dict[Scope, None] = {}
    for scope in wanted:
        if bound.may(scope.role, scope.environment):
            kept[scope] = None
            continue
        for held in bound.scopes:
            if None in (scope.environment, held.environment) or scope.environment == held.environment:
                where = held.environment if scope.environment is None else scope.environment
                limits = tuple(dict.fromkeys((*scope.limits, *held.limits)))
                roles = [role for role in Role if scope.gives(role, where) and held.gives(role, where)]
                kept.update(dict.fromkeys(Scope(role, where, limits) for role in roles))
    return tuple(kept)


ADMIN_SCOPES = tuple(Scope(role, None) for role in Role)
SYSTEM = Principal("parley", ADMIN_SCOPES, PrincipalId(PrincipalKind.SYSTEM))
INSTALLATION = Principal("token:admin.token", ADMIN_SCOPES, PrincipalId(PrincipalKind.INSTALLATION))
"""The principal of whoever can read `admin.token` in the home: the machine's own operator, who sets the rates and has
none.
"""
