"""Attempts to sign in: few a minute from one address or for one name, and each in the audit log (threat 22)."""

import hashlib
from datetime import timedelta

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from controlplane.accounts.models import LoginAttempt
from controlplane.accounts.selectors import user_actor
from controlplane.journal.services import audit_record
from controlplane.principal_ids import Named

_WINDOW = timedelta(minutes=1)
# From many addresses at once one name is still tried no more often than this; one address alone locks nobody out.
_NAME_FACTOR = 10
_UNKNOWN = Named("unknown user", None)


def login_attempt(*, address: str, username: str) -> bool:
    """Count an attempt that is about to be made; whether it may be."""
    limit: int = settings.PARLEY.limits.logins_per_min
    now = timezone.now()
    by_address, by_name = _key("address", address), _key("name", username.casefold())
    with transaction.atomic():
        LoginAttempt.objects.filter(at__lte=now - _WINDOW).delete()
        counted = {key: LoginAttempt.objects.filter(key=key).count() for key in (by_address, by_name)}
        if counted[by_address] >= limit or counted[by_name] >= limit * _NAME_FACTOR:
            return False
        LoginAttempt.objects.bulk_create([LoginAttempt(key=key, at=now) for key in (by_address, by_name)])
    return True


def login_record(*, username: str, address: str, outcome: str, request_id: str) -> None:
    """Keep who signed in, was refused, or asked too often. A name nobody has may be a password: it is not kept."""
    user = get_user_model().objects.filter(username=username).first()
    who = user_actor(user) if user is not None else _UNKNOWN
    with transaction.atomic():
        audit_record(
            actor=who,
            verb=f"login.{outcome}",
            subject=who.name,
            request_id=request_id,
            detail={"address": address},
        )


def login_succeeded(*, address: str) -> None:
    """Forget the attempts of an address whose owner turned out to be who they said."""
    LoginAttempt.objects.filter(key=_key("address", address)).delete()


def _key(kind: str, value: str) -> str:
    # A hash: what was typed as a name is not kept.
    return hashlib.sha256(f"{kind}\0{value}".encode()).hexdigest()
