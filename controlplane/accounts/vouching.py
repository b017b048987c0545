"""Whether the identity provider vouches for a person at this moment: what it gave counts no longer than that.

Who came by an identity provider has rights, also by tokens and also those that somebody gave in Parley, only while one
of their sign-ins was verified lately. `controlplane.oidc` asks the provider and notes when it vouched; here is only
read. Without a provider nobody is asked, no query is made, and roles by its groups count for nothing.
"""

from datetime import timedelta

from django.conf import settings
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from controlplane.accounts.models import Identity, RoleGrant
from controlplane.config.oidc import Oidc


def provider() -> Oidc | None:
    """The identity provider by which people sign in; None where there is none."""
    found: Oidc | None = settings.PARLEY.oidc
    return found


def vouched(user_id: int) -> bool:
    """Whether this person has any rights now as far as the identity provider is concerned: their account is Parley's
    own, or the provider vouched for one of their sign-ins in the last `oidc_outage_s`. One query, where there is a
    provider.
    """
    oidc = provider()
    if oidc is None:
        return True
    now = timezone.now()
    lasting = Q(sign_ins__began_at__gt=now - sign_in_lasts())
    last = Max("sign_ins__verified_at", filter=lasting)
    row = Identity.objects.filter(user_id=user_id).annotate(last=last).values_list("issuer", "last").first()
    if row is None:
        return True
    issuer, verified_at = row
    return issuer == oidc.issuer and verified_at is not None and verified_at > now - outage()


def from_provider(user_id: int) -> bool:
    """Whether this account belongs to somebody at the identity provider, so that no password is theirs. Always False
    without a provider: then an administrator may give such an account a password.
    """
    return provider() is not None and comes_from_provider(user_id)


def comes_from_provider(user_id: int) -> bool:
    """Whether this account was made for somebody at an identity provider, whether or not one is asked now."""
    return Identity.objects.filter(user_id=user_id).exists()


def grants_in_force() -> QuerySet[RoleGrant]:
    """The roles of everybody that can count for something: without an identity provider, none by its groups."""
    return RoleGrant.objects.all() if provider() is not None else RoleGrant.objects.filter(provider_group="")


def outage() -> timedelta:
    """How long the provider's last word holds while it cannot be asked."""
    return timedelta(seconds=settings.PARLEY.limits.oidc_outage_s)


def sign_in_lasts() -> timedelta:
    """How long a sign-in lasts at most, however often the provider vouches for it: as long as a session."""
    return timedelta(seconds=settings.SESSION_COOKIE_AGE)
