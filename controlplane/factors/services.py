"""Second factors: set up, tried, removed. Each of it stands in the audit log, and the person is told."""

import secrets
from typing import Final

import pyotp
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from controlplane.accounts.logins import Caller, code_count, code_uncount, local_sign_in_allowed
from controlplane.accounts.people import account_to_change
from controlplane.accounts.principal import Principal
from controlplane.accounts.selectors import id_of_user, user_actor
from controlplane.accounts.signed_in import browsers_end
from controlplane.catalog.sealing import SealError
from controlplane.common.errors import Conflict, InputInvalid, NotFound
from controlplane.common.principal_ids import Actor
from controlplane.factors.models import AuthenticatorApp, RecoveryCode, SecurityKey
from controlplane.factors.sealing import secret_open, secret_seal
from controlplane.factors.selectors import factors_of, required
from controlplane.factors.telling import person_tell
from controlplane.factors.values import (
    RECOVERY_BYTES,
    RECOVERY_CODES,
    Way,
    recovery_codes,
    recovery_digest,
    step_of,
)
from controlplane.journal.services import audit_record

_NOTHING_STEP: Final = -1
_WRONG: Final = (
    "This is not the code of the app now, or its clock is wrong: phones set it by themselves in their settings. Type "
    "the next code. Nothing was changed."
)


def app_secret_make() -> str:
    """A new secret for an authenticator app: 160 random bits in base32 (RFC 4226 section 4)."""
    return pyotp.random_base32()


def app_add(*, user: User, secret: str, code: str, caller: Caller) -> tuple[str, ...]:
    """Make this secret the user's authenticator app, in place of another one, because a code of it is right. Returns
    the recovery codes, to be shown once, where it is the first second factor; else nothing. Raises InputInvalid.
    """
    step = step_of(secret, code, now_s=timezone.now().timestamp(), after=_NOTHING_STEP)
    if step is None:
        raise InputInvalid(_WRONG)
    factor_permit(user)
    with transaction.atomic():
        codes = first_codes(user)
        sealed = secret_seal(user.pk, secret)
        now = timezone.now()
        AuthenticatorApp.objects.update_or_create(
            user=user, defaults={"sealed": sealed, "last_step": step, "created_at": now, "last_used_at": now}
        )
        factor_record(user, "second-factor.added", Way.APP, caller)
    person_tell(user, "An authenticator app was added to your sign-in.")
    return codes


def code_try(user: User, way: Way, code: str, *, caller: Caller) -> bool:
    """Whether a code of the user's authenticator app or one of their recovery codes is right; it is good once. Counts
    the attempt before. Raises TooManyAttempts. Not within a transaction: the count of a mistake would be lost.
    """
    counted = code_count(user, caller)
    right = _recovery_spend(user, code, caller) if way is Way.RECOVERY else _app_code_spend(user, code)
    if right:
        code_uncount(counted)
    return right


def codes_renew(*, user: User, caller: Caller) -> tuple[str, ...]:
    """Make new recovery codes, to be shown once; the old ones are good no longer. Raises Conflict where there is no
    second factor.
    """
    if not factors_of(user.pk).any:
        raise Conflict("Recovery codes stand in for a second factor: set one up first. Nothing was changed.")
    with transaction.atomic():
        codes = _codes_make(user)
        factor_record(user, "recovery-codes.made", None, caller)
    person_tell(user, "New recovery codes were made for your sign-in; the old ones are good no longer.")
    return codes


def factor_remove(*, user: User, way: Way, key_id: int = 0, caller: Caller) -> None:
    """Remove the user's authenticator app, or the security key with this id. Recovery codes go with the last one.
    Raises NotFound, and Conflict where the last one is required.
    """
    before = factors_of(user.pk)
    name = next((each.name for each in before.keys if each.id == key_id), "") if way is Way.KEY else ""
    if before.app is None if way is Way.APP else not name:
        raise NotFound("There is no such second factor any more. Nothing was changed.")
    if before.count == 1 and required():
        raise Conflict(
            "A second factor is required here, and this is your only one: set up another before you remove it. "
            "Nothing was changed."
        )
    with transaction.atomic():
        if way is Way.APP:
            AuthenticatorApp.objects.filter(user=user).delete()
        else:
            SecurityKey.objects.filter(user=user, pk=key_id).delete()
        if before.count == 1:
            RecoveryCode.objects.filter(user=user).delete()
        factor_record(user, "second-factor.removed", way, caller, name=name)
    what = f"The security key '{name}'" if name else "The authenticator app"
    person_tell(user, f"{what} was removed from your sign-in.")


def factors_forget(*, user_id: int, actor: Principal, by_superuser: bool, reason: str, request_id: str = "") -> int:
    """Remove every second factor of somebody who lost theirs, and end their sessions; returns how many ended.
    `by_superuser`: the actor is a superuser. Raises NotFound, Forbidden, and Conflict for the actor's own and where
    there is none.
    """
    user = account_to_change(user_id=user_id, actor=actor, by_superuser=by_superuser)
    if id_of_user(user) == actor.id:
        raise Conflict("Your own second factors are under Your account. Nothing was changed.")
    return forget(user, actor=actor, reason=reason, request_id=request_id)


def forget(user: User, *, actor: Actor, reason: str, request_id: str = "") -> int:
    """Remove every second factor of a user and end their sessions; returns how many ended. Raises Conflict where there
    is none.
    """
    with transaction.atomic():
        apps, keys = AuthenticatorApp.objects.filter(user=user), SecurityKey.objects.filter(user=user)
        gone = apps.delete()[0] + keys.delete()[0]
        RecoveryCode.objects.filter(user=user).delete()
        if not gone:
            raise Conflict(f"{user.get_username()} has no second factor. Nothing was changed.")
        ended = browsers_end(user=user, actor=actor, reason=reason, request_id=request_id)
        detail = {"reason": reason, "factors": gone, "sessions": ended}
        audit_record(
            actor=actor,
            verb="second-factor.forgotten",
            subject=user.get_username(),
            request_id=request_id,
            detail=detail,
        )
    person_tell(user, f"Every second factor was removed from your sign-in by {actor.name}: {reason}")
    return ended


def factor_permit(user: User) -> None:
    """Check that this user can have a second factor. Raises Conflict for somebody who signs in by no password of
    Parley's own.
    """
    if not local_sign_in_allowed(user):
        raise Conflict("You sign in by the identity provider: a second factor is asked for there. Nothing was changed.")


def first_codes(user: User) -> tuple[str, ...]:
    """Recovery codes for a user who is about to have their first second factor; nothing where there is one. Within a
    transaction.
    """
    return () if factors_of(user.pk).any else _codes_make(user)


def factor_record(user: User, verb: str, way: Way | None, caller: Caller, *, name: str = "") -> None:
    """Write an audit entry about somebody's own second factor, in the transaction of what it is about. `name`: that of
    the security key.
    """
    detail = {"address": caller.address, **({"factor": way.words} if way else {}), **({"name": name} if name else {})}
    audit_record(
        actor=user_actor(user), verb=verb, subject=user.get_username(), request_id=caller.request_id, detail=detail
    )


def _app_code_spend(user: User, code: str) -> bool:
    app = AuthenticatorApp.objects.filter(user=user).first()
    if app is None:
        return False
    try:
        secret = secret_open(user.pk, bytes(app.sealed))
    except SealError:
        return False
    step = step_of(secret, code, now_s=timezone.now().timestamp(), after=app.last_step)
    if step is None:
        return False
    # Of two that show one code at the same moment, one finds the step unused.
    unused = AuthenticatorApp.objects.filter(pk=app.pk, last_step__lt=step)
    return unused.update(last_step=step, last_used_at=timezone.now()) == 1


def _recovery_spend(user: User, code: str, caller: Caller) -> bool:
    with transaction.atomic():
        spent = RecoveryCode.objects.filter(user=user, digest=recovery_digest(user.pk, code)).delete()[0] == 1
        if not spent:
            return False
        factor_record(user, "recovery-code.used", None, caller)
    left = RecoveryCode.objects.filter(user=user).count()
    person_tell(user, f"A recovery code of your sign-in was used; {left} {'is' if left == 1 else 'are'} left.")
    return True


def _codes_make(user: User) -> tuple[str, ...]:
    codes = recovery_codes([secrets.token_bytes(RECOVERY_BYTES) for _ in range(RECOVERY_CODES)])
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, digest=recovery_digest(user.pk, each)) for each in codes)
    return codes
