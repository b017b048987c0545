"""Answers who is behind a token or a signed-in user."""

import hashlib
from datetime import timedelta

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Q, QuerySet
from django.utils import timezone

from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import ADMIN_SCOPES, Principal, Role, Scope

_LAST_USED_RESOLUTION = timedelta(days=1)


def token_principal(plaintext: str) -> Principal | None:
    """Whoever this token speaks for; None when it is unknown, expired or revoked. One indexed read, by hash."""
    digest = hashlib.sha256(plaintext.encode()).hexdigest()
    now = timezone.now()
    token = (
        ApiToken.objects.filter(digest=digest, revoked_at=None)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .first()
    )
    if token is None:
        return None
    # A day's resolution keeps reads from writing.
    if token.last_used_on is None or now.date() - token.last_used_on >= _LAST_USED_RESOLUTION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_on=now.date())
    scopes = tuple(Scope(Role(scope["role"]), scope["environment"]) for scope in token.scopes)
    return Principal(f"token:{token.name}", scopes)


def user_principal(user: AbstractBaseUser | AnonymousUser) -> Principal | None:
    """What a signed-in user may do: a superuser everything, anybody else nothing until granted."""
    if not user.is_authenticated or not user.is_active:
        return None
    return Principal(user.get_username(), ADMIN_SCOPES if getattr(user, "is_superuser", False) else ())


def api_token_list() -> QuerySet[ApiToken]:
    """Every token, newest first."""
    return ApiToken.objects.order_by("-id")
