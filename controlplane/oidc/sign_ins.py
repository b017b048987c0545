"""Sign-ins by the identity provider: begun when somebody comes back from it, asked about again while they last, ended.

What the provider said is acted on for `oidc_recheck_s`; then whoever acts next waits until it was asked again. While it
cannot be asked, what it said last holds for `oidc_outage_s`. What it refuses ends at once. Whoever asks gives back
their turn to write before that, and goes on without one: one request in 45 s for each sign-in.
"""

import secrets
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models.functions import Lower
from django.utils import timezone

from controlplane.accounts.logins import Caller, login_record
from controlplane.accounts.models import Identity, ProviderSignIn
from controlplane.accounts.principal import SYSTEM
from controlplane.accounts.selectors import person_behind, token_owner
from controlplane.accounts.vouching import outage, provider, sign_in_lasts
from controlplane.catalog.sealing import SealError
from controlplane.common.errors import Busy, Forbidden
from controlplane.common.principal_ids import PrincipalId
from controlplane.config.oidc import Oidc
from controlplane.journal.services import audit_record
from controlplane.oidc.claims import roles_of, user_name
from controlplane.oidc.provider import ProviderAway, ProviderRefuses, Tokens, Told, provider_of
from controlplane.oidc.roles import roles_follow
from controlplane.oidc.sealing import tokens_open, tokens_seal

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_KEY_BYTES: Final = 32
_MAX_OF_ONE_PERSON: Final = 20  # browsers; the oldest sign-in ends for one more
_NAMES_TRIED: Final = 9
_TRIES: Final = 3


def sign_in_begin(told: Told, *, caller: Caller) -> tuple[User, str]:
    """Sign in somebody for whom the provider vouched a moment ago: their account, made now for who is new, and the key
    of the sign-in, which belongs into their session. Their roles by groups become those of now. Raises Forbidden where
    the account was turned off.
    """
    oidc = _oidc()
    identity, new = _account(oidc, told)
    user = identity.user
    if not user.is_active:
        login_record(username=user.get_username(), outcome="failed", caller=caller, detail={"by": oidc.issuer})
        raise Forbidden(f"The account of {user.get_username()} is turned off in Parley. An administrator turns it on.")
    roles_follow(user, roles_of(told.groups, oidc.roles), request_id=caller.request_id)
    key = secrets.token_urlsafe(_KEY_BYTES)
    now = timezone.now()
    with transaction.atomic():
        ProviderSignIn.objects.filter(began_at__lte=now - sign_in_lasts()).delete()
        own = ProviderSignIn.objects.filter(identity=identity).order_by("-began_at")
        kept = own.values_list("pk", flat=True)[: _MAX_OF_ONE_PERSON - 1]
        ProviderSignIn.objects.filter(identity=identity).exclude(pk__in=list(kept)).delete()
        ProviderSignIn.objects.create(
            key=key,
            identity=identity,
            sealed=tokens_seal(key, told.tokens),
            began_at=now,
            checked_at=now,
            verified_at=now,
        )
    detail = {"by": oidc.issuer, **({"new": "yes"} if new else {})}
    login_record(username=user.get_username(), outcome="succeeded", caller=caller, detail=detail)
    return user, key


def sign_in_stands(key: str, *, request_id: str = "") -> bool:
    """Whether the sign-in with this key still holds; asks the provider, where its word is older than `oidc_recheck_s`,
    and lets the person's roles follow. False ends it for good. Not within a transaction.
    """
    row = ProviderSignIn.objects.select_related("identity__user").filter(key=key).first()
    return row is not None and _stands(row, request_id)


def person_recheck(user_id: int, *, request_id: str = "") -> None:
    """Make sure that what is known of a person by the identity provider is no older than `oidc_recheck_s`, whichever of
    their sign-ins tells. Somebody who came by no provider is not asked about. Not within a transaction.
    """
    rows = ProviderSignIn.objects.select_related("identity__user").filter(identity__user_id=user_id)
    for row in rows.order_by("-verified_at")[:_MAX_OF_ONE_PERSON]:
        if _stands(row, request_id):
            return


def principal_recheck(principal: PrincipalId) -> None:
    """Do what `person_recheck` does for the person who acts as this principal, for what is done without them. Nothing,
    and no query, where there is no identity provider.
    """
    if provider() is not None and (person := person_behind(principal)) is not None:
        person_recheck(person)


def token_recheck(plaintext: str, *, request_id: str = "") -> None:
    """Do what `person_recheck` does for the person to whom this API token belongs. Nothing, and no query, where there
    is no identity provider.
    """
    if provider() is not None and (owner := token_owner(plaintext)) is not None:
        person_recheck(owner, request_id=request_id)


def sign_in_end(key: str) -> Tokens | None:
    """End the sign-in with this key, because the person signs out. Returns its tokens, by which the provider's own
    session can be ended; None where there are none.
    """
    row = ProviderSignIn.objects.filter(key=key).first()
    if row is None:
        return None
    row.delete()
    try:
        return tokens_open(row)
    except SealError:
        return None


def _stands(row: ProviderSignIn, request_id: str) -> bool:
    oidc, now = _oidc(), timezone.now()
    if row.identity.issuer != oidc.issuer or row.began_at <= now - sign_in_lasts():
        row.delete()
        return False
    due_before = now - timedelta(seconds=settings.PARLEY.limits.oidc_recheck_s)
    # Whoever notes that they ask is alone in asking: a refresh token is good once.
    ours = ProviderSignIn.objects.filter(pk=row.pk, checked_at=row.checked_at)
    # One that lies ahead was written before a clock was set back.
    due = not due_before < row.checked_at <= now
    if due and ours.update(checked_at=now):
        return _ask_again(row, oidc, now, request_id)
    return row.verified_at > now - outage()


def _ask_again(row: ProviderSignIn, oidc: Oidc, now: datetime, request_id: str) -> bool:
    user = row.identity.user
    try:
        told = provider_of(oidc).again(tokens_open(row), subject=row.identity.subject, keep=partial(_keep, row))
    except ProviderAway:
        return row.verified_at > now - outage() or _ended(row, "the provider cannot be asked for too long", request_id)
    except ProviderRefuses as error:
        return _ended(row, str(error), request_id)
    except SealError:
        return _ended(row, "its tokens are under a key that is not configured", request_id)
    if not ProviderSignIn.objects.filter(pk=row.pk).update(verified_at=now):  # they signed out meanwhile
        return False
    roles_follow(user, roles_of(told.groups, oidc.roles), request_id=request_id)
    return True


def _keep(row: ProviderSignIn, tokens: Tokens) -> None:
    """Store what the provider gave in place of tokens that are good no longer, before anything else can fail."""
    ProviderSignIn.objects.filter(pk=row.pk).update(sealed=tokens_seal(row.key, tokens))


def _ended(row: ProviderSignIn, reason: str, request_id: str) -> bool:
    """End a sign-in that the provider does not stand by. Returns False."""
    username = row.identity.user.get_username()
    log.warning("oidc.sign_in_ended", user=username, reason=reason)
    with transaction.atomic():
        if ProviderSignIn.objects.filter(pk=row.pk).delete()[0]:
            audit_record(
                actor=SYSTEM, verb="login.ended", subject=username, request_id=request_id, detail={"reason": reason}
            )
    return False


def _account(oidc: Oidc, told: Told) -> tuple[Identity, bool]:
    """Whose account this person has, and whether it was made now. It is found by issuer and subject alone; a name that
    somebody has already is never taken over.
    """
    known = Identity.objects.select_related("user").filter(issuer=oidc.issuer, subject=told.subject)
    for _ in range(_TRIES):
        if (identity := known.first()) is not None:
            return identity, False
        try:
            return _account_make(oidc, told), True
        except IntegrityError:  # another browser was faster: of the same person, or of one with the same name
            continue
    raise Busy("Many people sign in for the first time at this moment. Try again.", retry_after_s=1)


@transaction.atomic
def _account_make(oidc: Oidc, told: Told) -> Identity:
    wished = user_name(told.claims, told.subject)
    names = [wished, *(f"{wished}-{number}" for number in range(2, 2 + _NAMES_TRIED))]
    known = User.objects.annotate(lower=Lower("username")).filter(lower__in=[each.lower() for each in names])
    taken = set(known.values_list("lower", flat=True))
    name = next((each for each in names if each.lower() not in taken), f"{wished}-{secrets.token_hex(6)}")
    user = User.objects.create_user(username=name)  # without a password: none is right
    identity = Identity.objects.create(user=user, issuer=oidc.issuer, subject=told.subject)
    audit_record(
        actor=SYSTEM,
        verb="user.created",
        subject=user.get_username(),
        detail={"reason": "first sign-in by the identity provider", "issuer": oidc.issuer, "subject": told.subject},
    )
    return identity


def _oidc() -> Oidc:
    oidc = provider()
    if oidc is None:
        raise RuntimeError("there is no identity provider: nobody signs in by one")
    return oidc
