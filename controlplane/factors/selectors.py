"""Reads which second factors people have, and who needs one."""

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from controlplane.accounts.vouching import provider
from controlplane.config.oidc import LocalSignIn
from controlplane.config.values import SecondFactor
from controlplane.factors.models import AuthenticatorApp, RecoveryCode, SecurityKey
from controlplane.factors.values import App, Factors, Key


def factors_of(user_id: int) -> Factors:
    """The second factors of a user. Three queries."""
    app = AuthenticatorApp.objects.filter(user_id=user_id).values_list("created_at", "last_used_at").first()
    keys = SecurityKey.objects.filter(user_id=user_id).order_by("name")
    return Factors(
        App(*app) if app is not None else None,
        tuple(Key(*row) for row in keys.values_list("pk", "name", "created_at", "last_used_at")),
        RecoveryCode.objects.filter(user_id=user_id).count(),
    )


def required() -> bool:
    """Whether everybody who signs in by a password of Parley's own has to have a second factor."""
    found: SecondFactor = settings.PARLEY.second_factor
    return found is SecondFactor.REQUIRED


def people_without() -> tuple[int, int]:
    """How many people may sign in by a password of Parley's own and have no second factor, and how many may at all."""
    local = _local()
    with_factor = Q(authenticator_app__isnull=False) | Q(security_keys__isnull=False)
    return local.exclude(with_factor).count(), local.count()


def _local() -> QuerySet[User]:
    """Everybody who has a password and may sign in by it, as `accounts.logins.local_sign_in_allowed` says of one."""
    active = User.objects.filter(is_active=True).exclude(password__startswith=UNUSABLE_PASSWORD_PREFIX)
    oidc = provider()
    if oidc is None:
        return active
    own = active.filter(identity__isnull=True)
    return own if oidc.local_sign_in is LocalSignIn.EVERYBODY else own.filter(is_superuser=True)
