"""Creates and revokes what operators authenticate with."""

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from controlplane.accounts.models import ApiToken, ClientToken, RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, INSTALLATION, SYSTEM, Principal, Scope
from controlplane.accounts.selectors import client_token_is_valid, token_principal
from controlplane.accounts.token_rules import TokenKind, end_within, name_space
from controlplane.accounts.token_text import api_token_text, client_token_text, token_digest
from controlplane.broker.hints import hint_published
from controlplane.common.errors import Conflict, Forbidden, InputInvalid
from controlplane.common.principal_ids import Actor, PrincipalKind
from controlplane.journal.services import audit_record
from xdscore.codes import shown

ADMINISTRATOR = "admin"
_PREFIX_CHARS = 15
_HINT_CHARS = 6


@transaction.atomic
def api_token_create(
    *,
    name: str,
    scopes: Sequence[Scope],
    actor: Principal,
    kind: TokenKind | None = None,
    expires_at: datetime | None = None,
    request_id: str = "",
) -> tuple[ApiToken, str]:
    """Create an API token. Returns its row and its plaintext, which is stored nowhere.

    `kind` None: a personal token where a person makes it or owns the token that makes it, else a service's.
    `expires_at` None: never, or when the token expires with which it is made. The caller checks that the scopes are no
    more than the maker's (`catalog.token_rights`). Raises InputInvalid, also for a time after the other token's;
    Conflict for a name that is taken; Forbidden for a service's token made with a person's, and where the maker was
    revoked or turned off meanwhile.
    """
    owner = person_behind_lock(actor)
    maker = _maker(actor)
    kind = kind or (TokenKind.SERVICE if owner is None else TokenKind.PERSONAL)
    if kind is TokenKind.PERSONAL and owner is None:
        raise InputInvalid(f"{actor.name} is no person, so it can make tokens of services only. Nothing was changed.")
    if kind is not TokenKind.PERSONAL:
        if owner is not None and maker is not None:
            # It would keep what its maker loses together with that person's rights.
            raise Forbidden(
                f"{actor.name} belongs to {owner.get_username()}, so it makes tokens of theirs only. A token of a "
                "service is made by an administrator who is signed in, or with a service's token. Nothing was changed."
            )
        owner = None
    installation = kind is TokenKind.INSTALLATION
    owner_id = owner.pk if owner is not None else None
    space = "" if installation else name_space(owner_id=owner_id, environments=[each.environment for each in scopes])
    if space and ApiToken.objects.filter(name_space=space, name=name, revoked_at=None).exists():
        whose = "You have" if owner is not None else "A service has"
        raise Conflict(
            f"{whose} a token '{shown(name)}' for this already. Choose another name, or revoke that one first. "
            "Nothing was changed."
        )
    plaintext = api_token_text()
    token = ApiToken.objects.create(
        name=name,
        name_space=space,
        kind=kind.value,
        owner=owner,
        maker=maker,
        created_by=actor.name,
        creator=str(actor.id),
        prefix=plaintext[:_PREFIX_CHARS],
        digest=token_digest(plaintext),
        scopes=[_scope_json(scope) for scope in scopes],
        expires_at=_end_within(expires_at, maker),
    )
    audit_record(
        actor=actor,
        verb="token.created",
        subject=token.prefix,
        request_id=request_id,
        detail={
            "id": token.pk,
            "name": name,
            "scopes": token.scopes,
            "kind": token.kind,
            "owner": owner.get_username() if owner is not None else "",
        },
    )
    return token, plaintext


def _scope_json(scope: Scope) -> dict[str, object]:
    """A scope with at most one limit as the table of tokens, and answers, have it."""
    limits = {key: value for limit in scope.limits for key, value in limit.as_json().items()}
    return {"role": scope.role.value, "environment": scope.environment, **limits}


def person_behind_lock(actor: Principal) -> User | None:
    """The person who acts, or who owns the token that acts, locked until the transaction ends; None where there is
    none. Comes before the locks of environments (`catalog.token_rights`) and of tokens. Raises Forbidden where the
    account was turned off meanwhile.
    """
    number: int | None = actor.id.number
    if actor.id.kind is PrincipalKind.TOKEN:
        # Read without its lock, for it never changes.
        number = ApiToken.objects.filter(pk=actor.id.number).values_list("owner_id", flat=True).first()
    elif actor.id.kind is not PrincipalKind.USER:
        return None
    if number is None:
        return None
    owner = User.objects.select_for_update().filter(pk=number, is_active=True).first()
    if owner is None:
        raise Forbidden(f"The account behind {actor.name} was turned off meanwhile. Nothing was changed.")
    return owner


@transaction.atomic
def api_token_revoke(*, token: ApiToken, actor: Actor, reason: str = "", request_id: str = "") -> None:
    """Revoke an API token now, and every token that was made with it, so that a thief cannot keep one. A second call
    changes nothing.
    """
    waiting = [(token, reason)]
    while waiting:
        ended, why = waiting.pop()
        # Locked, as `_maker` does: what is being made with it is there already, or is refused.
        now = ApiToken.objects.select_for_update().get(pk=ended.pk)
        if now.revoked_at is None:
            ended.revoked_at = timezone.now()
            ended.save(update_fields=["revoked_at"])
            audit_record(
                actor=actor,
                verb="token.revoked",
                subject=ended.prefix,
                request_id=request_id,
                detail={"id": ended.pk, "name": ended.name, "reason": why},
            )
        said = f"It was made with token {ended.prefix}…, which was revoked. {reason}".strip()
        waiting += [(made, said) for made in ApiToken.objects.filter(maker=ended).order_by("-pk")]


@transaction.atomic
def person_tokens_revoke(*, user: User, actor: Actor, reason: str = "", request_id: str = "") -> None:
    """Revoke every token of a person, whose account was turned off, and every token that was made with one of them."""
    # Before any token, as `person_behind_lock` does: two that took them in another order would wait for each other.
    User.objects.select_for_update().filter(pk=user.pk).first()
    for token in ApiToken.objects.filter(owner=user, revoked_at=None).order_by("pk"):
        why = f"The account of {user.get_username()} was turned off. {reason}".strip()
        api_token_revoke(token=token, actor=actor, reason=why, request_id=request_id)


@transaction.atomic
def client_token_create(
    *, subject: str, environment: str, actor: Principal, expires_at: datetime | None = None, request_id: str = ""
) -> tuple[ClientToken, str]:
    """Create a token of a data plane. Returns its row and its plaintext, which is stored nowhere.

    `subject`: the identity that it proves. `environment`: the only one in which it is good; empty: any. Made with an
    API token that expires, it expires no later. It stays when that token is revoked, or its maker's account goes.
    Raises InputInvalid and Forbidden.
    """
    expires_at = _end_within(expires_at, _maker(actor))
    plaintext = client_token_text(expires_at=expires_at)
    token = ClientToken.objects.create(
        subject=subject,
        environment=environment,
        hint=plaintext[-_HINT_CHARS:],
        digest=token_digest(plaintext),
        created_by=actor.name,
        creator=str(actor.id),
        expires_at=expires_at,
    )
    _client_token_changed("client-token.created", token, actor, request_id)
    return token, plaintext


@transaction.atomic
def client_token_revoke(*, token: ClientToken, actor: Principal, reason: str = "", request_id: str = "") -> None:
    """Revoke a data plane's token now; the streams that were opened with it end. A second call changes nothing."""
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
        _client_token_changed("client-token.revoked", token, actor, request_id, reason)


def environment_forget(*, environment: str, actor: Principal, request_id: str = "") -> None:
    """Delete the grants, and revoke the tokens, of an environment that is being deleted, so that they are not good in a
    later one with the same key. Called inside the transaction that deletes the environment.
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
        actor=actor,
        verb=verb,
        subject=str(token.pk),
        environment=token.environment,
        request_id=request_id,
        detail={"subject": token.subject, "hint": token.hint, "reason": reason},
    )
    # ADS looks for new tokens when it looks for new snapshots; the hint only makes that soon (law 4).
    transaction.on_commit(lambda: hint_published(token.environment))


def administrator_ensure(*, password: str) -> bool:
    """Create the first administrator, unless there is any account. Returns whether it was created now."""
    users = get_user_model()
    if users.objects.filter(is_superuser=True).exists():
        return False
    users.objects.create_superuser(username=ADMINISTRATOR, password=password)
    return True


def admin_token_ensure(*, known: str) -> str:
    """The plaintext of a valid API token of the installation with all rights: `known` if it is one, else that of a new
    token.
    """
    principal = token_principal(known)
    name = INSTALLATION.name.removeprefix("token:")
    if principal == INSTALLATION:
        return known
    if principal is not None and set(ADMIN_SCOPES) <= set(principal.scopes):
        # Made before there were kinds: nobody but whoever has the file can know which token it is.
        found = ApiToken.objects.filter(digest=token_digest(known), kind=TokenKind.SERVICE.value, maker=None)
        if found.update(kind=TokenKind.INSTALLATION.value, name_space="", name=name):
            return known
    return api_token_create(name=name, scopes=ADMIN_SCOPES, actor=SYSTEM, kind=TokenKind.INSTALLATION)[1]


def client_token_ensure(*, known: str, subject: str) -> str:
    """The plaintext of a valid data plane's token for any environment: `known` if it is one, else that of a new token
    for `subject`.
    """
    if client_token_is_valid(known):
        return known
    return client_token_create(subject=subject, environment="", actor=SYSTEM)[1]


def _maker(actor: Principal) -> ApiToken | None:
    """The API token with which the actor makes another one, locked until the transaction ends; None where the actor is
    no token. Called after `person_behind_lock`, because persons are locked before tokens. Raises Forbidden where it was
    revoked meanwhile.
    """
    if actor.id.kind is not PrincipalKind.TOKEN:
        return None
    maker = ApiToken.objects.select_for_update().filter(pk=actor.id.number, revoked_at=None).first()
    if maker is None:
        raise Forbidden("The token that asks was revoked meanwhile. Nothing was changed.")
    return maker


def _end_within(expires_at: datetime | None, maker: ApiToken | None) -> datetime | None:
    try:
        return end_within(expires_at, maker.expires_at if maker is not None else None)
    except ValueError as error:
        raise InputInvalid(f"{error} Nothing was changed.") from None
