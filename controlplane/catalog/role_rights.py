"""Roles of people in environments: one is given only where its environment is there to stay."""

from django.db import transaction

from controlplane.accounts.groups import people_group_role_give
from controlplane.accounts.people import Person, person_lock, role_give
from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.services.environments import environments_stay
from controlplane.common.limits import Limit


@transaction.atomic
def role_grant(
    *,
    user_id: int,
    role: Role,
    environment: str,
    limit: Limit | None = None,
    actor: Principal,
    by_superuser: bool,
    reason: str,
    request_id: str = "",
) -> Person:
    """Give somebody a role in an environment (empty: in all), which cannot be deleted meanwhile; only on the resources
    that `limit` takes (None: as a whole). `by_superuser`: the actor is one. Raises InputInvalid for an environment that
    does not exist, and what `role_give` raises.
    """
    person_lock(user_id=user_id)
    environments_stay(keys=[environment] if environment else [])
    return role_give(
        user_id=user_id,
        role=role,
        environment=environment,
        limit=limit,
        actor=actor,
        by_superuser=by_superuser,
        reason=reason,
        request_id=request_id,
    )


@transaction.atomic
def people_group_role_grant(
    *,
    group_id: int,
    role: Role,
    environment: str,
    limit: Limit | None = None,
    actor: Principal,
    reason: str,
    request_id: str = "",
) -> None:
    """Give a group of people a role in an environment (empty: in all), which cannot be deleted meanwhile; only on the
    resources that `limit` takes (None: as a whole). Raises InputInvalid for an environment that does not exist, and
    what `people_group_role_give` raises.
    """
    environments_stay(keys=[environment] if environment else [])
    people_group_role_give(
        group_id=group_id,
        role=role,
        environment=environment,
        limit=limit,
        actor=actor,
        reason=reason,
        request_id=request_id,
    )
