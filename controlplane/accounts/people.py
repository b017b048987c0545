"""People and their roles: who there is, and how that changes. Every change says why and stands in the audit log.

Two rules keep a house from locking itself out or being taken over. Nobody ends their own rights, so that whoever
administers stays; and the account of a superuser is changed by superusers alone, for whoever sets somebody's password
can become them.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, OrderBy, Q, QuerySet

from controlplane.accounts.logins import Caller, password_confirm
from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import Principal, Role, roles_with
from controlplane.accounts.selectors import id_of_user, user_actor
from controlplane.accounts.services import person_tokens_revoke
from controlplane.accounts.vouching import from_provider, grants_in_force, provider
from controlplane.common.errors import Conflict, Forbidden, InputInvalid, NotFound
from controlplane.common.limits import Limit, limit_problem, limit_read
from controlplane.journal.services import audit_record
from xdscore.codes import shown

_PASSWORD_BYTES: Final = 15  # 20 characters that nobody guesses
_MAX_ID: Final = 2**63
_MAX_NAME_CHARS: Final = 150  # the column


@dataclass(frozen=True, slots=True)
class Grant:
    """A role that somebody has. `environment`: its key; empty: all environments. `group`: the name of the group by
    which they have it; empty: it is their own. `provider_group`: the same of a group at the identity provider. `limit`:
    the only resources on which they have it; None: the environment as a whole.
    """

    id: int
    role: str
    environment: str
    group: str
    provider_group: str
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """A person's account, with every role that they have of their own or by a group. `issuer`, `subject`: who they are
    at the identity provider from which the account comes; empty: it is Parley's own. `asked`: this provider is asked
    for them now, so that they have no password here.
    """

    id: int
    username: str
    active: bool
    superuser: bool
    joined: datetime
    last_login: datetime | None
    grants: tuple[Grant, ...]
    issuer: str
    subject: str
    asked: bool


_STATES: Final[Mapping[str, Q]] = {
    "active": Q(is_active=True),
    "disabled": Q(is_active=False),
    "superuser": Q(is_superuser=True),
}
"""In which states people can be asked for, by its word."""
# By the word of an order: the column.
_ORDERS: Final[Mapping[str, str]] = {"name": "username", "joined": "date_joined", "seen": "last_login"}


def people_list(
    *,
    text: str = "",
    state: str = "",
    role: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    order: str = "name",
    falls: bool = False,
) -> QuerySet[User]:
    """Everybody who has an account and fits. The roles of all are read by two more queries.

    `text`: a part of the name or mail address. `state`: a word of _STATES. `role`: one that they have somewhere,
    of their own or by a group.
    `since`, `until`: they signed in last then or later; then or earlier, or never.
    `order`: by name, by when they joined, or by when they signed in last, which who never did did first.
    """
    rows = User.objects.filter(_STATES.get(state, Q()))
    if text:
        rows = rows.filter(Q(username__icontains=text) | Q(email__icontains=text))
    if role:
        granted = RoleGrant.objects.filter(role=role)
        rows = rows.filter(Q(pk__in=granted.values("user")) | Q(groups__in=granted.values("group"))).distinct()
    if since is not None:
        rows = rows.filter(last_login__gte=since)
    if until is not None:
        rows = rows.filter(Q(last_login=None) | Q(last_login__lte=until))
    ordered = rows.order_by(OrderBy(F(_ORDERS[order]), nulls_first=True), "pk")
    people = ordered.reverse() if falls else ordered
    return people.select_related("identity").prefetch_related("role_grants", "groups__role_grants")


def people_who_may(*, role: Role, environment: str, limit: int) -> tuple[str, ...]:
    """The names of the first `limit` people who may sign in and act in this role in this environment as a whole;
    superusers come last.
    """
    people = _who_may(role, environment).order_by("is_superuser", "username")
    return tuple(people.values_list("username", flat=True)[:limit])


def ids_who_may(*, role: Role, environment: str) -> frozenset[int]:
    """The ids of all people who may sign in and act in this role in this environment; empty: in all of them."""
    return frozenset(_who_may(role, environment).values_list("pk", flat=True))


def _who_may(role: Role, environment: str) -> QuerySet[User]:
    roles = [held.value for held in roles_with(role)]
    grants = grants_in_force().filter(role__in=roles, environment__in=[environment, ""], within="")
    wanted = Q(is_superuser=True) | Q(role_grants__in=grants) | Q(groups__role_grants__in=grants)
    return User.objects.filter(wanted, is_active=True).distinct()


def person_get(*, user_id: int) -> Person:
    """The person with this id. Raises NotFound."""
    return person_of(_user(user_id))


def account_get(*, user_id: int) -> User:
    """The account with this id. Raises NotFound."""
    return _user(user_id)


def person_of(user: User) -> Person:
    """The person whose account is stored in this row."""
    asked = provider() is not None
    # What no provider vouches for counts for nothing, and is not shown as if it did.
    own = [(grant, "") for grant in user.role_grants.all() if asked or not grant.provider_group]
    through = [(grant, group.name) for group in user.groups.all() for grant in group.role_grants.all()]
    grants = [
        Grant(grant.pk, grant.role, grant.environment, group, grant.provider_group, limit_read(grant.within))
        for grant, group in (*own, *through)
    ]
    grants.sort(key=lambda grant: (grant.environment, grant.role, grant.group, grant.provider_group))
    identity = getattr(user, "identity", None)  # Django raises an AttributeError where there is none
    return Person(
        user.pk,
        user.get_username(),
        user.is_active,
        user.is_superuser,
        user.date_joined,
        user.last_login,
        tuple(grants),
        identity.issuer if identity is not None else "",
        identity.subject if identity is not None else "",
        asked and identity is not None,
    )


@transaction.atomic
def person_create(
    *, username: str, actor: Principal, reason: str, password: str = "", request_id: str = ""
) -> tuple[Person, str]:
    """Create an account without any role. Returns the person and their password, which is stored only as a hash:
    `password` or, where that is empty, a random one. Raises InputInvalid or Conflict.
    """
    _name_check(username)
    password = password or secrets.token_urlsafe(_PASSWORD_BYTES)
    with _name_is_free(username):
        user = User.objects.create_user(username=username, password=password)
    _record("user.created", user, actor, reason, request_id)
    return person_of(user), password


@transaction.atomic
def person_enable(
    *, user_id: int, enabled: bool, actor: Principal, by_superuser: bool, reason: str, request_id: str = ""
) -> Person:
    """Turn an account on or, with `enabled` False, off: its sessions end with their next request, and its tokens are
    revoked. `by_superuser`: the actor is a superuser. A second call changes nothing. Raises NotFound, Forbidden or
    Conflict.
    """
    user = _user(user_id)
    _check(user, actor, by_superuser)
    if not enabled and id_of_user(user) == actor.id:
        raise Conflict("Nobody turns off themselves: somebody else has to. Nothing was changed.")
    if user.is_active != enabled:
        user.is_active = enabled
        user.save(update_fields=["is_active"])
        _record("user.enabled" if enabled else "user.disabled", user, actor, reason, request_id)
    if not enabled:
        person_tokens_revoke(user=user, actor=actor, reason=reason, request_id=request_id)
    return person_of(user)


@transaction.atomic
def person_rename(
    *, user_id: int, username: str, actor: Principal, by_superuser: bool, reason: str, request_id: str = ""
) -> Person:
    """Give an account another name; what they did before stands in the audit log under the old one, and under the same
    id. `by_superuser`: the actor is a superuser. Raises NotFound, Forbidden, InputInvalid or Conflict.
    """
    user = _user(user_id)
    _check(user, actor, by_superuser)
    _name_check(username)
    before = user.get_username()
    if username != before:
        user.username = username
        with _name_is_free(username):
            user.save(update_fields=["username"])
        _record("user.renamed", user, actor, reason, request_id, before=before)
    return person_of(user)


@transaction.atomic
def person_superuser_set(
    *, user_id: int, superuser: bool, actor: Principal, by_superuser: bool, reason: str, request_id: str = ""
) -> Person:
    """Make somebody a superuser or, with `superuser` False, one no longer. `by_superuser`: the actor is a superuser. A
    second call changes nothing. Raises NotFound, Forbidden or Conflict.
    """
    user = _user(user_id)
    _check(user, actor, by_superuser)
    if not by_superuser:
        raise Forbidden(f"Only superusers say who is one; {actor.name} is none. Nothing was changed.")
    if id_of_user(user) == actor.id:
        raise Conflict("Nobody takes this from themselves: another superuser has to. Nothing was changed.")
    if user.is_superuser != superuser:
        user.is_superuser = superuser
        user.save(update_fields=["is_superuser"])
        _record("superuser.made" if superuser else "superuser.ended", user, actor, reason, request_id)
    return person_of(user)


@transaction.atomic
def person_password_renew(
    *, user_id: int, actor: Principal, by_superuser: bool, reason: str, request_id: str = ""
) -> tuple[Person, str]:
    """Give a person a new password and end their sessions. Returns the person and the password, which is stored only as
    a hash. `by_superuser`: the actor is a superuser. Raises NotFound, Forbidden, or Conflict for an account of the
    identity provider.
    """
    user = _user(user_id)
    _check(user, actor, by_superuser)
    if from_provider(user.pk):
        raise Conflict(
            f"{user.get_username()} signs in by the identity provider and has no password here. Nothing was changed."
        )
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    user.set_password(password)
    user.save(update_fields=["password"])
    _record("user.password-renewed", user, actor, reason, request_id)
    return person_of(user), password


def password_change(*, user_id: int, old: str, new: str, again: str, session: str, caller: Caller) -> User:
    """Change a person's own password; returns their account. `old` must be the password until now, `again` must equal
    `new`. `session`: the id of their session, for which wrong passwords are counted. Raises TooManyAttempts,
    InputInvalid with everything that is wrong, and Conflict for an account of the identity provider.
    """
    user = _user(user_id)
    if from_provider(user.pk):
        raise Conflict("You sign in by the identity provider and have no password here. Nothing was changed.")
    # Before the transaction: a mistake counts, and what is refused below must not take the count back.
    problems = (
        [] if password_confirm(user, old, session=session, caller=caller) else ["The old password is another one."]
    )
    problems += password_problems(user, new, again)
    if problems:
        raise InputInvalid(f"{' '.join(problems)} Nothing was changed.")
    user.set_password(new)
    with transaction.atomic():
        user.save(update_fields=["password"])
        audit_record(
            actor=user_actor(user), verb="user.password-changed", subject=str(user), request_id=caller.request_id
        )
    return user


@transaction.atomic
def role_give(
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
    """Give somebody a role in an environment (empty: in all), only on the resources that `limit` takes (None: as a
    whole). Called after `catalog.role_rights` has checked and locked the environment. `by_superuser`: the actor is a
    superuser. A second call changes nothing. Raises NotFound, Forbidden, and InputInvalid for a role that cannot be
    limited.
    """
    if problem := limit_problem(role, limit):
        raise InputInvalid(f"{problem} Nothing was changed.")
    user = _user(user_id)
    _check(user, actor, by_superuser)
    grant, made = RoleGrant.objects.get_or_create(
        user=user,
        group=None,
        environment=environment,
        role=role.value,
        within=limit.text if limit is not None else "",
        provider_group="",
    )
    if made:
        _record("role.granted", user, actor, reason, request_id, environment=environment, **grant_told(grant))
    return person_get(user_id=user_id)


@transaction.atomic
def role_take(
    *, user_id: int, grant_id: int, actor: Principal, by_superuser: bool, reason: str, request_id: str = ""
) -> Person:
    """Take away a role that was granted to the person; one they have by a group stays. `by_superuser`: the actor is a
    superuser. A second call changes nothing. Raises NotFound, Forbidden or Conflict.
    """
    user = _user(user_id)
    _check(user, actor, by_superuser)
    grant = RoleGrant.objects.filter(pk=grant_id, user=user).first() if grant_id < _MAX_ID else None
    if grant is not None:
        if grant.provider_group:
            raise Conflict(
                f"{user.get_username()} has this role by the group '{shown(grant.provider_group)}' at the identity "
                "provider: take them out of the group there. Nothing was changed."
            )
        if id_of_user(user) == actor.id and grant.role == Role.ADMIN.value:
            raise Conflict("Nobody takes their own right to administer: somebody else has to. Nothing was changed.")
        _record("role.taken", user, actor, reason, request_id, environment=grant.environment, **grant_told(grant))
        grant.delete()
    return person_get(user_id=user_id)


def person_lock(*, user_id: int) -> None:
    """Lock a person's row until the transaction ends; does nothing where there is no such person. Comes before the
    locks of environments and of tokens.
    """
    if user_id < _MAX_ID:
        User.objects.select_for_update().filter(pk=user_id).first()


def account_to_change(*, user_id: int, actor: Principal, by_superuser: bool) -> User:
    """The account with this id, which this actor may change. `by_superuser`: the actor is a superuser. Raises NotFound,
    and Forbidden for a superuser's account.
    """
    user = _user(user_id)
    _check(user, actor, by_superuser)
    return user


def _user(user_id: int) -> User:
    user = people_list().filter(pk=user_id).first() if user_id < _MAX_ID else None
    if user is None:
        raise NotFound(f"There is no user {user_id}.")
    return user


def name_problem(username: str) -> str:
    """Why no account can have this name, as a sentence; empty where one can."""
    try:
        User.username_validator(username)
    except ValidationError:
        username = ""
    if 0 < len(username) <= _MAX_NAME_CHARS:
        return ""
    return f"A user name has 1 to {_MAX_NAME_CHARS} letters, digits and the characters @ . + - _."


def password_problems(user: User, new: str, again: str) -> list[str]:
    """Everything that keeps this from being the user's password, each as a sentence. `again` must equal `new`."""
    problems = [] if new == again else ["The two new passwords differ."]
    try:
        validate_password(new, user)
    except ValidationError as error:
        problems += error.messages
    return problems


def _name_check(username: str) -> None:
    """Raise InputInvalid unless an account may have this name."""
    if problem := name_problem(username):
        raise InputInvalid(f"{problem} Nothing was changed.")


@contextmanager
def _name_is_free(username: str) -> Iterator[None]:
    """Raise Conflict where what is stored in the block fails because somebody has this name."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError:
        raise Conflict(f"There is somebody called '{username}' already. Nothing was changed.") from None


def _check(user: User, actor: Principal, by_superuser: bool) -> None:
    if user.is_superuser and not by_superuser:
        raise Forbidden(
            f"{user.get_username()} is a superuser: only superusers change that account; {actor.name} is none."
        )


def grant_told(grant: RoleGrant) -> dict[str, object]:
    """What the audit log says of a role that is given or taken: it, and its limit."""
    limit = limit_read(grant.within)
    return {"role": grant.role, **(limit.as_json() if limit is not None else {})}


def _record(
    verb: str,
    user: User,
    actor: Principal,
    reason: str,
    request_id: str,
    *,
    environment: str = "",
    **more: object,
) -> None:
    audit_record(
        actor=actor,
        verb=verb,
        subject=user.get_username(),
        environment=environment,
        request_id=request_id,
        detail={"reason": reason, **more},
    )
