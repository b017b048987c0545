"""Creates and revokes what operators authenticate with."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import ADMIN_SCOPES, Principal, Scope
from controlplane.accounts.selectors import token_principal
from controlplane.journal.services import audit_record

ADMINISTRATOR = "admin"
TOKEN_MARK = "parley_"  # noqa: S105  # lets secret scanners recognise a leaked token
_PREFIX_CHARS = 15
_TOKEN_BYTES = 32


def token_digest(plaintext: str) -> str:
    """SHA-256 of a token: enough, for tokens carry 256 random bits and cannot be guessed from their hash."""
    return hashlib.sha256(plaintext.encode()).hexdigest()


@transaction.atomic
def api_token_create(
    *, name: str, scopes: Sequence[Scope], actor: Principal, expires_at: datetime | None = None, request_id: str = ""
) -> tuple[ApiToken, str]:
    """A new token and its plaintext, which is stored nowhere."""
    plaintext = TOKEN_MARK + secrets.token_urlsafe(_TOKEN_BYTES)
    token = ApiToken.objects.create(
        name=name,
        prefix=plaintext[:_PREFIX_CHARS],
        digest=token_digest(plaintext),
        scopes=[{"role": scope.role.value, "environment": scope.environment} for scope in scopes],
        expires_at=expires_at,
    )
    audit_record(
        actor=actor.name,
        verb="token.created",
        subject=token.prefix,
        request_id=request_id,
        detail={"name": name, "scopes": token.scopes},
    )
    return token, plaintext


@transaction.atomic
def api_token_revoke(*, token: ApiToken, actor: Principal, request_id: str = "") -> None:
    """End a token now; a second call changes nothing."""
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
        audit_record(
            actor=actor.name,
            verb="token.revoked",
            subject=token.prefix,
            request_id=request_id,
            detail={"name": token.name},
        )


def administrator_ensure(*, password: str) -> bool:
    """Make the first administrator, once; whether it was made now. Never changes one that exists."""
    users = get_user_model()
    if users.objects.filter(is_superuser=True).exists():
        return False
    users.objects.create_superuser(username=ADMINISTRATOR, password=password)
    return True


def admin_token_ensure(*, known: str, name: str = "admin.token") -> str:
    """A valid token with every scope: `known` while it still is one, else a new one."""
    principal = token_principal(known)
    if principal is not None and set(ADMIN_SCOPES) <= set(principal.scopes):
        return known
    return api_token_create(name=name, scopes=ADMIN_SCOPES, actor=Principal("parley", ADMIN_SCOPES))[1]
