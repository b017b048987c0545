"""A ttl is part of a resource's version, and few enough resources have one (protocol.md G1, G2)."""

from dataclasses import replace

import pytest
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Revision
from controlplane.catalog.services import change_apply, planning
from controlplane.catalog.values import ChangeMade, Put
from controlplane.common.errors import InputInvalid
from tests.support.manifests import TYPE, Tree, cluster, parsed
from tests.support.principals import somebody
from xdscore.snapshot import content_version, ttl_ms_of, without_ttl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)


@pytest.fixture(autouse=True)
def few(database: str, settings: Settings) -> None:
    limits = replace(settings.PARLEY.limits, ttls_per_environment=2)
    settings.PARLEY = replace(settings.PARLEY, limits=limits)


def expiring(name: str, ttl: str = "30s") -> Tree:
    return {"@type": TYPE + "envoy.service.discovery.v3.Resource", "ttl": ttl, "resource": cluster(name)}


def put(*trees: Tree) -> ChangeMade:
    return change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)


def test_put__other_ttl_of_the_same_content__is_another_version() -> None:
    changed = [put(tree).changed for tree in (cluster("a"), expiring("a"), expiring("a"), expiring("a", "60s"))]

    versions = list(Revision.objects.order_by("number").values_list("version", flat=True))

    assert changed == [True, True, False, True]
    assert [ttl_ms_of(version) for version in versions] == [0, 30_000, 60_000]
    assert len(set(map(without_ttl, versions))) == 1


def test_put__ttl_that_an_earlier_release_kept_for_itself__counts_once_it_is_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as before:
        before.setattr(planning, "content_version", lambda address, _: content_version(address))
        put(expiring("a"))

    again = put(expiring("a"))

    assert again.changed
    assert [ttl_ms_of(each.version) for each in Revision.objects.order_by("number")] == [0, 30_000]


def test_put__more_ttls_than_an_environment_may_have__are_refused_and_the_others_may_change() -> None:
    put(expiring("a"), expiring("b"), cluster("c"))

    with pytest.raises(InputInvalid, match="would hold 3 resources with a ttl; at most 2"):
        put(expiring("c"))

    assert put(expiring("a", "60s"), cluster("c", connect_timeout="9s")).changed
    assert put(cluster("a"), expiring("c")).changed
