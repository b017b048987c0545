"""Roles of groups at the identity provider that are limited to some resources."""

from pytest_django.fixtures import Settings

from controlplane.accounts.principal import Allowed, Role
from controlplane.accounts.selectors import user_principal
from controlplane.common.limits import Limit
from controlplane.config.oidc import Oidc, group_roles
from controlplane.journal.models import AuditEvent
from tests.services.oidc.conftest import configured, rights, sign_in, with_provider
from tests.support.openid_provider import Provider
from tests.web.conftest import USERS


def test_sign_in__group_with_a_limited_role__gives_it_with_its_limit_and_follows_another_one(
    site: Oidc, provider: Provider, settings: Settings
) -> None:
    ana = provider.add("s-1", "ana", "pay")
    for names in ("pay*", "refund*"):
        roles = group_roles(f"pay=viewer@prod, pay=editor@prod/names:{names}")
        with_provider(settings, configured(provider, roles=roles))
        sign_in(provider, ana)

        principal = user_principal(USERS.objects.get(username="ana"))

        assert principal is not None
        assert rights("ana") == {("viewer", "prod"), ("editor", "prod")}
        assert principal.allowed(Role.EDITOR, "prod") == Allowed(((Limit(names=(names,)),),))
        assert not principal.may(Role.EDITOR, "prod")
    assert AuditEvent.objects.filter(verb="role.taken").latest("pk").detail["names"] == ["pay*"]
