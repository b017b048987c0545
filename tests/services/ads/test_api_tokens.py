"""Which API tokens a replica knows from memory: those in force when its loader last looked, and no others."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from adsserver.ports import Directory, FleetUnavailableError
from adsserver.store.fleet import Fleet
from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.accounts.services import api_token_create, api_token_revoke
from controlplane.accounts.token_rules import TokenKind
from controlplane.catalog.services import environment_default_ensure
from tests.support.ads import MemoryContents
from tests.support.ads_replica import Replica
from tests.support.principals import somebody

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
VIEWER = (Scope(Role.VIEWER, None),)


@pytest.fixture
def replica(tmp_path: Path) -> Replica:
    environment_default_ensure()
    return Replica(tmp_path / "cache")


def knows(replica: Replica, token: str, *, after: timedelta = timedelta()) -> bool:
    fleet = Fleet(MemoryContents(), now=(timezone.now() + after).timestamp)
    fleet.observe(replica.look().directory)
    return fleet.knows(token)


def test_knows__token_in_force__until_it_is_revoked_or_ends(replica: Replica) -> None:
    row, forever = api_token_create(name="a", scopes=VIEWER, actor=DANA)
    assert knows(replica, forever)

    _, ending = api_token_create(name="b", scopes=VIEWER, actor=DANA, expires_at=timezone.now() + timedelta(minutes=1))
    assert knows(replica, ending)
    assert not knows(replica, ending, after=timedelta(minutes=2))
    api_token_revoke(token=row, actor=DANA)
    assert not knows(replica, forever)
    assert knows(replica, ending)


def test_knows__owner_is_deleted__their_token_is_not_known_any_more(replica: Replica) -> None:
    owner = get_user_model().objects.create_user("olga")
    row, owned = api_token_create(name="a", scopes=VIEWER, actor=DANA)
    api_token_create(name="b", scopes=VIEWER, actor=DANA)
    ApiToken.objects.filter(pk=row.pk).update(owner=owner, kind=TokenKind.PERSONAL.value)
    assert knows(replica, owned)

    owner.delete()

    assert not knows(replica, owned)


@pytest.mark.parametrize("token", ["", "unknown", "x" * 10_000, "é"])
def test_knows__anything_else__is_nobodys(replica: Replica, token: str) -> None:
    api_token_create(name="a", scopes=VIEWER, actor=DANA)

    assert not knows(replica, token)


def test_knows__tokens_not_read_yet__nobody_is_called_unknown(replica: Replica) -> None:
    _, token = api_token_create(name="a", scopes=VIEWER, actor=DANA)
    replica.look()
    fleet = Fleet(MemoryContents())
    fleet.observe(Directory())

    with pytest.raises(FleetUnavailableError, match="has not read the API tokens yet"):
        fleet.knows(token)
