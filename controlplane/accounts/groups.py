"""Groups of people and their roles: what a group may, each of its people may. Every change says why and stands in the
audit log.

As with a person's own roles, nobody ends their own right to administer, so that whoever administers stays.
"""

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.people import Grant, grant_told
from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import id_of_user
from controlplane.common.errors import Conflict, InputInvalid, NotFound
from controlplane.common.limits import Limit, limit_problem, limit_read
from controlplane.journal.services import audit_record
from xdscore.codes import shown

MAX_NAME_CHARS: Final = 150  # the column
_MAX_ID: Final = 2**63


@dataclass(frozen=True, slots=True)
class PeopleGroup:
    """A group of people, with its roles, and how many people are in it."""

    id: int
    name: str
    people: int
    grants: tuple[Grant, ...]


def people_group_list(*, text: str = "", role: str = "") -> QuerySet[Group]:
    """Every group of people, by name; with `text`, whose name contains it; with `role`, that has it somewhere. The
    roles of all are read by one more query.
    """
    rows = Group.objects.filter(name__icontains=text) if text else Group.objects.all()
    if role:
        rows = rows.filter(pk__in=RoleGrant.objects.filter(role=role, group__isnull=False).values("group"))
    return rows.annotate(people=Count("user")).order_by("name").prefetch_related("role_grants")


def people_group_of(row: Group) -> PeopleGroup:
    """The group that is stored in this row of `people_group_list`."""
    grants = [
        Grant(each.pk, each.role, each.environment, row.name, "", limit_read(each.within))
        for each in row.role_grants.all()
    ]
    grants.sort(key=lambda grant: (grant.environment, grant.role, grant.id))
    people: int = row.people  # type: ignore[attr-defined]  # the list counts them
    return PeopleGroup(row.pk, row.name, people, tuple(grants))


def people_group_get(*, group_id: int) -> PeopleGroup:
    """The group with this id. Raises NotFound."""
    return people_group_of(_group(group_id))


def people_in_group(*, group_id: int) -> QuerySet[User]:
    """Everybody who is in this group, by name."""
    return User.objects.filter(groups=group_id).order_by("username")


@transaction.atomic
def people_group_create(*, name: str, actor: Principal, reason: str, request_id: str = "") -> PeopleGroup:
    """Make a group without people and roles. Raises InputInvalid or Conflict."""
    _name_check(name)
    try:
        with transaction.atomic():
            group = Group.objects.create(name=name)
    except IntegrityError:
        raise Conflict(f"There is a group '{shown(name)}' already. Nothing was changed.") from None
    _record("people-group.created", group, actor, reason, request_id)
    return people_group_get(group_id=group.pk)


@transaction.atomic
def people_group_rename(*, group_id: int, name: str, actor: Principal, reason: str, request_id: str = "") -> None:
    """Give a group another name. Raises NotFound, InputInvalid or Conflict."""
    group = _group(group_id)
    _name_check(name)
    before = group.name
    if name == before:
        return
    group.name = name
    try:
        with transaction.atomic():
            group.save(update_fields=["name"])
    except IntegrityError:
        raise Conflict(f"There is a group '{shown(name)}' already. Nothing was changed.") from None
    _record("people-group.renamed", group, actor, reason, request_id, before=before)


@transaction.atomic
def people_group_delete(*, group_id: int, actor: Principal, reason: str, request_id: str = "") -> None:
    """Delete a group with its roles; its people keep their accounts and their own roles. Raises NotFound or
    Conflict.
    """
    group = _group(group_id)
    _keeps_administering(group, actor)
    _record("people-group.deleted", group, actor, reason, request_id)
    group.delete()


@transaction.atomic
def person_join(*, group_id: int, username: str, actor: Principal, reason: str, request_id: str = "") -> None:
    """Put the person with this name into a group. A second call changes nothing. Raises NotFound or InputInvalid."""
    group = _group(group_id)
    user = User.objects.filter(username=username).first()
    if user is None:
        raise InputInvalid(f"There is nobody called '{shown(username)}'. Nothing was changed.")
    if not user.groups.filter(pk=group.pk).exists():
        user.groups.add(group)
        _record("people-group.joined", group, actor, reason, request_id, user=user.get_username())


@transaction.atomic
def person_leave(*, group_id: int, user_id: int, actor: Principal, reason: str, request_id: str = "") -> None:
    """Take a person out of a group. A second call changes nothing. Raises NotFound or Conflict."""
    group = _group(group_id)
    user = people_in_group(group_id=group_id).filter(pk=user_id).first() if user_id < _MAX_ID else None
    if user is None:
        return
    if id_of_user(user) == actor.id:
        _keeps_administering(group, actor)
    user.groups.remove(group)
    _record("people-group.left", group, actor, reason, request_id, user=user.get_username())


@transaction.atomic
def people_group_role_give(
    *,
    group_id: int,
    role: Role,
    environment: str,
    limit: Limit | None = None,
    actor: Principal,
    reason: str,
    request_id: str = "",
) -> None:
    """Give a group a role in an environment (empty: in all), only on the resources that `limit` takes (None: as a
    whole). Called after `catalog.role_rights` has checked and locked the environment. A second call changes nothing.
    Raises NotFound, and InputInvalid for a role that cannot be limited.
    """
    if problem := limit_problem(role, limit):
        raise InputInvalid(f"{problem} Nothing was changed.")
    group = _group(group_id)
    grant, made = RoleGrant.objects.get_or_create(
        user=None,
        group=group,
        environment=environment,
        role=role.value,
        within=limit.text if limit is not None else "",
    )
    if made:
        told = {**grant_told(grant), "to": "people-group"}
        _record("role.granted", group, actor, reason, request_id, environment=environment, **told)


@transaction.atomic
def people_group_role_take(
    *, group_id: int, grant_id: int, actor: Principal, reason: str, request_id: str = ""
) -> None:
    """Take a role from a group. A second call changes nothing. Raises NotFound or Conflict."""
    group = _group(group_id)
    grant = RoleGrant.objects.filter(pk=grant_id, group=group).first() if grant_id < _MAX_ID else None
    if grant is None:
        return
    if grant.role == Role.ADMIN.value:
        _keeps_administering(group, actor)
    told = {**grant_told(grant), "from": "people-group"}
    _record("role.taken", group, actor, reason, request_id, environment=grant.environment, **told)
    grant.delete()


def _group(group_id: int) -> Group:
    group = people_group_list().filter(pk=group_id).first() if group_id < _MAX_ID else None
    if group is None:
        raise NotFound(f"There is no group of users {group_id}.")
    return group


def _keeps_administering(group: Group, actor: Principal) -> None:
    """Raise Conflict where the actor is in the group and has the role admin by it."""
    administers = RoleGrant.objects.filter(group=group, role=Role.ADMIN.value).exists()
    if administers and any(id_of_user(user) == actor.id for user in people_in_group(group_id=group.pk)):
        raise Conflict(
            "You administer by this group, and nobody takes their own right to administer: somebody else has to. "
            "Nothing was changed."
        )


def _name_check(name: str) -> None:
    if not (0 < len(name) <= MAX_NAME_CHARS and name.isprintable()):
        raise InputInvalid(
            f"A group's name is one line of 1 to {MAX_NAME_CHARS} printable characters. Nothing was changed."
        )


def _record(
    verb: str, group: Group, actor: Principal, reason: str, request_id: str, *, environment: str = "", **more: object
) -> None:
    audit_record(
        actor=actor,
        verb=verb,
        subject=group.name,
        environment=environment,
        request_id=request_id,
        detail={"reason": reason, **more},
    )
