"""Creates and revokes what operators authenticate with."""

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from controlplane.accounts.models import ApiToken, ClientToken, RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, INSTALLATION, SYSTEM, Principal, Scope
from controlplane.accounts.selectors import client_token_is_valid, token_principal
from controlplane.accounts.token_text import api_token_text, client_token_text, token_digest
from controlplane.hints import hint_published
from controlplane.journal.services import audit_record

ADMINISTRATOR = "admin"
_PREFIX_CHARS = 15
_HINT_CHARS = 6


@transaction.atomic
def api_token_create(
    *, name: str, scopes: Sequence[Scope], actor: Principal, expires_at: datetime | None = None, request_id: str = ""
) -> tuple[ApiToken, str]:
    """A new token and its plaintext, which is stored nowhere."""
    plaintext = api_token_text()
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
def api_token_revoke(*, token: ApiToken, actor: Principal, reason: str = "", request_id: str = "") -> None:
    """End a token now; a second call changes nothing."""
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
        audit_record(
            actor=actor.name,
            verb="token.revoked",
            subject=token.prefix,
            request_id=request_id,
            detail={"name": token.name, "reason": reason},
        )


@transaction.atomic
def client_token_create(
    *, subject: str, environment: str, actor: Principal, expires_at: datetime | None = None, request_id: str = ""
) -> tuple[ClientToken, str]:
    """A new token of a data plane and its plaintext, which is stored nowhere. `environment`: the only one it is good
    for; empty: any.
    """
    plaintext = client_token_text(expires_at=expires_at)
    token = ClientToken.objects.create(
        subject=subject,
        environment=environment,
        hint=plaintext[-_HINT_CHARS:],
        digest=token_digest(plaintext),
        created_by=actor.name,
        expires_at=expires_at,
    )
    _client_token_changed("client-token.created", token, actor, request_id)
    return token, plaintext


@transaction.atomic
def client_token_revoke(*, token: ClientToken, actor: Principal, reason: str = "", request_id: str = "") -> None:
    """End a data plane's token now, and with it its open streams; a second call changes nothing."""
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
        _client_token_changed("client-token.revoked", token, actor, request_id, reason)


def environment_forget(*, environment: str, actor: Principal, request_id: str = "") -> None:
    """End what was granted in an environment that is being deleted: one that is later made under the same key is
    another one. Called inside the transaction that deletes it.
    """
    for token in ClientToken.objects.filter(environment=environment, revoked_at=None):
        client_token_revoke(token=token, actor=actor, request_id=request_id)
    RoleGrant.objects.filter(environment=environment).delete()
    for api_token in ApiToken.objects.filter(revoked_at=None):
        kept = [scope for scope in api_token.scopes if scope["environment"] != environment]
        if len(kept) == len(api_token.scopes):
            continue
        if kept:
            api_token.scopes = kept
            api_token.save(update_fields=["scopes"])
        else:
            api_token_revoke(token=api_token, actor=actor, request_id=request_id)


def _client_token_changed(verb: str, token: ClientToken, actor: Principal, request_id: str, reason: str = "") -> None:
    audit_record(
        actor=actor.name,
        verb=verb,
        subject=str(token.pk),
        environment=token.environment,
        request_id=request_id,
        detail={"subject": token.subject, "hint": token.hint, "reason": reason},
    )
    # ADS looks for new tokens when it looks for new snapshots; the hint only makes that soon (law 4).
    transaction.on_commit(lambda: hint_published(token.environment))


def administrator_ensure(*, password: str) -> bool:
    """Make the first administrator, once; whether it was made now. Never changes one that exists."""
    users = get_user_model()
    if users.objects.filter(is_superuser=True).exists():
        return False
    users.objects.create_superuser(username=ADMINISTRATOR, password=password)
    return True


def admin_token_ensure(*, known: str) -> str:
    """A valid token with every scope, `INSTALLATION`'s: `known` while it still is one, else a new one."""
    principal = token_principal(known)
    if principal is not None and set(ADMIN_SCOPES) <= set(principal.scopes):
        return known
    name = INSTALLATION.name.removeprefix("token:")
    return api_token_create(name=name, scopes=ADMIN_SCOPES, actor=SYSTEM)[1]


def client_token_ensure(*, known: str, subject: str) -> str:
    """A valid data-plane token for any environment: `known` while it still is one, else a new one."""
    if client_token_is_valid(known):
        return known
    return client_token_create(subject=subject, environment="", actor=SYSTEM)[1]
