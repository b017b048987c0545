"""Answers who is behind a token or a signed-in user."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone

from controlplane.accounts.models import ApiToken, ClientToken
from controlplane.accounts.principal import (
    ADMIN_SCOPES,
    INSTALLATION,
    SYSTEM,
    Principal,
    Role,
    Scope,
    scopes_within,
)
from controlplane.accounts.token_rules import TokenKind
from controlplane.accounts.token_text import token_digest
from controlplane.accounts.vouching import comes_from_provider, grants_in_force, vouched
from controlplane.common.limits import limit_read, limit_stored
from controlplane.common.principal_ids import Named, PrincipalId, PrincipalKind

_LAST_USED_RESOLUTION = timedelta(days=1)


def token_principal(plaintext: str, *, asks_provider: bool = True) -> Principal | None:
    """The principal that this token speaks for; None when the token is unknown, expired or revoked, or its owner may
    not sign in. A person's token never has rights that the person does not have now. `asks_provider`: whether this
    process asks the identity provider again; where it does not, tokens of people who come from one speak for nobody.

    One indexed read, by hash; for a person's token one more.
    """
    now = timezone.now()
    token = _tokens_at(now).filter(digest=token_digest(plaintext)).first()
    if token is None or (not asks_provider and token.owner_id is not None and comes_from_provider(token.owner_id)):
        return None
    principal = _of_token(token)
    # A day's resolution keeps reads from writing.
    is_noted = token.last_used_on is not None and now.date() - token.last_used_on < _LAST_USED_RESOLUTION
    if principal is not None and not is_noted:
        ApiToken.objects.filter(pk=token.pk).update(last_used_on=now.date())
    return principal


def principal_by_id(principal: PrincipalId) -> Principal | None:
    """Whoever has this id, with the rights that they have now; None where they may not act any more: a token that is
    gone, expired or revoked, an account that is turned off.
    """
    match principal.kind:
        case PrincipalKind.SYSTEM:
            return SYSTEM
        case PrincipalKind.INSTALLATION:
            return INSTALLATION
        case PrincipalKind.USER:
            user = get_user_model().objects.filter(pk=principal.number).first()
            return user_principal(user) if user is not None else None
        case PrincipalKind.TOKEN:
            token = _tokens_at(timezone.now()).filter(pk=principal.number).first()
            return _of_token(token) if token is not None else None


def _tokens_at(now: datetime) -> QuerySet[ApiToken]:
    """The API tokens that are neither revoked nor expired at `now`, with their owners."""
    good = Q(expires_at=None) | Q(expires_at__gt=now)
    return ApiToken.objects.select_related("owner").filter(good, revoked_at=None)


def _of_token(token: ApiToken) -> Principal | None:
    scopes = scopes_stored(token)
    if token.owner is not None:
        owner = user_principal(token.owner)
        if owner is None:
            return None
        scopes = scopes_within(scopes, owner)
    if token.kind == TokenKind.INSTALLATION:
        return INSTALLATION
    return Principal(f"token:{token.name}", scopes, PrincipalId(PrincipalKind.TOKEN, token.pk))


def scopes_stored(token: ApiToken) -> tuple[Scope, ...]:
    """The scopes that an API token was given. Whoever it belongs to may have fewer rights by now."""
    return tuple(
        Scope(Role(scope["role"]), scope["environment"], (limit,) if (limit := limit_stored(scope)) else ())
        for scope in token.scopes
    )


def token_owner(plaintext: str) -> int | None:
    """The id of the person to whom this API token belongs; None where it is nobody's, unknown or revoked."""
    found = ApiToken.objects.filter(digest=token_digest(plaintext), revoked_at=None)
    return found.values_list("owner_id", flat=True).first()


def person_behind(principal: PrincipalId) -> int | None:
    """The id of the person who acts as this principal: the user, or whose the API token is; None for nobody's."""
    if principal.kind is PrincipalKind.USER:
        return principal.number
    if principal.kind is PrincipalKind.TOKEN:
        return ApiToken.objects.filter(pk=principal.number).values_list("owner_id", flat=True).first()
    return None


def person_or_token(principal: Principal) -> PrincipalId:
    """The id under which is kept what somebody said or looks after: the person's, whether they act by a page or by a
    token of theirs; else the principal's own.
    """
    person = person_behind(principal.id)
    return PrincipalId(PrincipalKind.USER, person) if person is not None else principal.id


def user_named(login: str) -> PrincipalId | None:
    """The id of the person who signs in with this login; None where there is none, or the account is turned off."""
    number = get_user_model().objects.filter(username=login, is_active=True).values_list("pk", flat=True).first()
    return PrincipalId(PrincipalKind.USER, number) if number is not None else None


def rights_granted(principal: PrincipalId) -> Principal | None:
    """Whoever has this id, with the rights that were given to them, whether or not the identity provider vouches for
    them at this moment: also while they sleep. Only for what is shown of them, never for what they may do. None where
    they may not act any more.
    """
    if principal.kind is not PrincipalKind.USER:
        return principal_by_id(principal)
    user = get_user_model().objects.filter(pk=principal.number, is_active=True).first()
    return _granted(user) if user is not None else None


def user_principal(user: AbstractBaseUser | AnonymousUser) -> Principal | None:
    """The principal of a signed-in user: a superuser may do everything, others what was granted to them or their
    groups; somebody for whom the identity provider does not vouch, nothing. None for somebody who is not signed in or
    whose account is turned off.
    """
    if not user.is_authenticated or not user.is_active:
        return None
    if not vouched(user.pk):
        return Principal(user.get_username(), (), id_of_user(user))
    return _granted(user)


def _granted(user: AbstractBaseUser) -> Principal:
    if getattr(user, "is_superuser", False):
        return Principal(user.get_username(), ADMIN_SCOPES, id_of_user(user))
    grants = grants_in_force().filter(Q(user_id=user.pk) | Q(group__user=user.pk)).distinct()
    scopes = {
        Scope(Role(role), environment or None, (limit,) if (limit := limit_read(within)) else ())
        for role, environment, within in grants.values_list("role", "environment", "within")
    }
    return Principal(user.get_username(), tuple(sorted(scopes, key=_scope_order)), id_of_user(user))


def id_of_user(user: AbstractBaseUser) -> PrincipalId:
    """The id of a user as a principal, which stays when the user is renamed."""
    return PrincipalId(PrincipalKind.USER, user.pk)


def user_actor(user: AbstractBaseUser) -> Named:
    """The name and id under which the audit log records what a user does."""
    return Named(user.get_username(), id_of_user(user))


def _scope_order(scope: Scope) -> tuple[str, str, tuple[str, ...]]:
    return scope.environment or "", scope.role.value, tuple(limit.text for limit in scope.limits)


def api_token_list() -> QuerySet[ApiToken]:
    """Every API token, newest first; the owner of each is read with it."""
    return ApiToken.objects.select_related("owner").order_by("-id")


def person_token_list(*, user_id: int) -> QuerySet[ApiToken]:
    """Every API token that belongs to this person, newest first."""
    return api_token_list().filter(owner=user_id)


@dataclass(frozen=True, slots=True)
class ClientTokenRow:
    """A data plane's token as ADS checks it: its hash, the identity that it proves (`subject`), the only environment in
    which it is good (empty: any), and when it expires (None: never).
    """

    digest: str
    subject: str
    environment: str
    expires_at: datetime | None


def client_token_list() -> QuerySet[ClientToken]:
    """Every token of a data plane, newest first."""
    return ClientToken.objects.order_by("-id")


def client_tokens_version() -> tuple[int, int]:
    """Two numbers that differ from those of an earlier call if tokens were made or revoked since, so that
    `client_tokens_valid` has to be asked again. Expiring does not change them. One cheap read.
    """
    return _version(ClientToken.objects.filter(revoked_at=None))


def client_tokens_valid() -> tuple[ClientTokenRow, ...]:
    """Every token of a data plane that is neither revoked nor expired."""
    rows = ClientToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), revoked_at=None)
    return tuple(ClientTokenRow(*row) for row in rows.values_list("digest", "subject", "environment", "expires_at"))


def api_tokens_version() -> tuple[int, int]:
    """Two numbers that differ from those of an earlier call if tokens were made, revoked or deleted since, so that
    `api_tokens_valid` has to be asked again. Expiring does not change them. One cheap read.
    """
    return _version(ApiToken.objects.filter(revoked_at=None))


def _version(valid: QuerySet[ClientToken] | QuerySet[ApiToken]) -> tuple[int, int]:
    found = valid.aggregate(count=Count("id"), last=Max("id"))
    return found["count"], found["last"] or 0


def api_tokens_valid() -> dict[str, datetime | None]:
    """When each valid API token expires (None: never), by the token's hash; revoked and expired tokens are left out."""
    rows = ApiToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), revoked_at=None)
    return dict(rows.values_list("digest", "expires_at"))


@dataclass(frozen=True, slots=True)
class EndingToken:
    """A token that is good until `expires_at`.

    `key`: a text that no other token has.
    `plane`: a data plane uses it, rather than a person or a pipeline.
    `name`: its name or, for a data plane's, the identity that it proves.
    `environment`: the only one in which it is good; empty where it is not bound to one.
    """

    key: str
    plane: bool
    name: str
    environment: str
    expires_at: datetime


def tokens_ending(*, before: datetime) -> tuple[EndingToken, ...]:
    """The tokens of people, pipelines and data planes that are good now and expire before the time `before`."""
    during = Q(revoked_at=None, expires_at__gt=timezone.now(), expires_at__lt=before)
    people = ApiToken.objects.filter(during).values_list("pk", "name", "expires_at")
    planes = ClientToken.objects.filter(during).values_list("pk", "subject", "environment", "expires_at")
    return (
        *(EndingToken(f"token/{pk}", False, name, "", expires_at) for pk, name, expires_at in people if expires_at),
        *(
            EndingToken(f"client-token/{pk}", True, subject, environment, expires_at)
            for pk, subject, environment, expires_at in planes
            if expires_at
        ),
    )


def client_token_is_valid(plaintext: str) -> bool:
    """Whether this is the plaintext of a data plane's token that is neither revoked nor expired."""
    rows = ClientToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), revoked_at=None)
    return rows.filter(digest=token_digest(plaintext)).exists()
