"""Gives people the roles of their groups at the identity provider, and takes those of groups that they left."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.people import person_lock
from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.services.environments import environments_locked
from controlplane.common.limits import limit_read
from controlplane.common.roles import Role
from controlplane.config.oidc import GroupRole
from controlplane.journal.services import audit_record


def roles_follow(user: User, wanted: frozenset[GroupRole], *, request_id: str = "") -> None:
    """Make the roles that a person has by groups exactly these; those that somebody gave them in Parley stay. Roles in
    an environment that does not exist wait until it does. Each change is in the audit log. One query where nothing
    changes.
    """
    if _held(user).keys() == wanted:
        return
    with transaction.atomic():
        person_lock(user_id=user.pk)
        there = environments_locked(keys={each.environment for each in wanted if each.environment})
        held = _held(user)
        for each in sorted(held.keys() - wanted, key=_order):
            held[each].delete()
            _record("role.taken", user, each, request_id)
        for each in sorted(wanted - held.keys(), key=_order):
            if each.environment and each.environment not in there:
                continue
            RoleGrant.objects.create(
                user=user,
                role=each.role.value,
                environment=each.environment,
                within=each.limit.text if each.limit is not None else "",
                provider_group=each.group,
            )
            _record("role.granted", user, each, request_id)


def _held(user: User) -> dict[GroupRole, RoleGrant]:
    grants: Iterable[RoleGrant] = RoleGrant.objects.filter(user=user).exclude(provider_group="")
    return {
        GroupRole(grant.provider_group, Role(grant.role), grant.environment, limit_read(grant.within)): grant
        for grant in grants
    }


def _order(each: GroupRole) -> tuple[str, str, str, str]:
    return each.environment, each.role.value, each.group, each.limit.text if each.limit is not None else ""


def _record(verb: str, user: User, each: GroupRole, request_id: str) -> None:
    audit_record(
        actor=SYSTEM,
        verb=verb,
        subject=user.get_username(),
        environment=each.environment,
        request_id=request_id,
        detail={
            "reason": f"by the group {each.group} at the identity provider",
            "role": each.role.value,
            **(each.limit.as_json() if each.limit is not None else {}),
        },
    )
