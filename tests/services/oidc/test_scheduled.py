"""What somebody of the identity provider scheduled: the provider is asked about them when it is due."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.accounts.selectors import user_principal
from controlplane.catalog.values import Put
from controlplane.changesets.selectors import change_set_get
from controlplane.changesets.services import change_set_create, change_set_schedule, change_sets_tick
from controlplane.config.oidc import Oidc
from tests.services.oidc.conftest import Later, sign_in
from tests.support.manifests import cluster, parsed
from tests.support.openid_provider import Person, Provider
from tests.web.conftest import USERS


@pytest.fixture
def ana(site: Oidc, provider: Provider) -> Person:
    return provider.add("s-1", "ana", "platform")


@pytest.mark.parametrize("vouches", [True, False])
def test_change_set__of_somebody_who_is_asleep__is_published_if_the_provider_vouches_for_them_then(
    ana: Person, provider: Provider, later: Later, vouches: bool
) -> None:
    sign_in(provider, ana)
    person = user_principal(USERS.objects.get(username="ana"))
    assert person is not None
    edits = [Put(parsed(cluster("pay")))]
    made = change_set_create(environment_key="default", title="at night", edits=edits, actor=person)
    change_set_schedule(public_id=made, not_before=timezone.now() + timedelta(hours=3), actor=person)
    later(3 * 3_600 + 1)
    if not vouches:
        provider.end_sessions(ana)

    change_sets_tick()

    view = change_set_get(public_id=made).view
    assert view.state.value == ("published" if vouches else "draft")
    assert ("ana, who scheduled it" in view.waits_for) == (not vouches)
