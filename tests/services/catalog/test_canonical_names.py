"""Names that differ only in the order of their context parameters are one, from the manifest to the client (H1)."""

import importlib

import pytest
from django.apps import apps
from django.db import connection

from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import builds_sweep
from controlplane.catalog.models import Reference, Resource
from controlplane.catalog.selectors import resource_list
from controlplane.catalog.services import change_apply, environment_create
from controlplane.catalog.values import EnvironmentPolicy, Put
from controlplane.snapshots.selectors import snapshot_of_name
from tests.support.manifests import cluster, endpoints, parsed
from tests.support.principals import somebody
from xdscore.access import Effect
from xdscore.decision import Decision, Missing, Serve, decide
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import ENDPOINT

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
NAME = "xdstp://shop/envoy.config.endpoint.v3.ClusterLoadAssignment/pay?"
SPELLINGS = (NAME + "zone=eu&env=prod", NAME + "env=prod&zone=eu")


@pytest.fixture(autouse=True)
def environment() -> None:
    environment_create(key="shop", policy=EnvironmentPolicy(default_effect=Effect.ALLOW), actor=DANA)


def put(name: str) -> None:
    asks = cluster("pay", type="EDS", eds_cluster_config={"service_name": name, "eds_config": {"ads": {}}})
    edits = [Put(parsed(endpoints(name, 80, address="192.0.2.1"))), Put(parsed(asks))]
    change_apply(environment_key="shop", edits=edits, actor=DANA)


def decided(name: str) -> Decision:
    snapshot = snapshot_of_name(environment_key="shop", kind=ENDPOINT, name=SPELLINGS[1])
    assert snapshot is not None
    return decide(snapshot.access.audience("shop", ClientFacts(node_id="n")), ENDPOINT, name, snapshot)


@pytest.mark.parametrize("written", SPELLINGS)
def test_published_name__written_in_any_order__is_served_to_who_asks_in_any(written: str) -> None:
    put(written)
    put(SPELLINGS[0])
    builds_sweep()

    assert [row.name for row in resource_list(environment_key="shop", kind=ENDPOINT)] == [SPELLINGS[1]]
    assert [type(decided(asked)) for asked in SPELLINGS] == [Serve, Serve]


@pytest.mark.parametrize("pattern", [*SPELLINGS, NAME + "zone=*&env=prod"])
def test_access_rule__its_pattern_in_any_order__hides_it_from_who_asks_in_any(pattern: str) -> None:
    put(SPELLINGS[0])
    rule_create(environment_key="shop", draft=RuleDraft(Effect.HIDE, pattern), actor=DANA)
    builds_sweep()

    assert [type(decided(asked)) for asked in SPELLINGS] == [Missing, Missing]


def test_upgrade__stored_in_another_order__is_found_by_its_canonical_name() -> None:
    put(SPELLINGS[1])
    Resource.objects.filter(name=SPELLINGS[1]).update(name=SPELLINGS[0])
    Reference.objects.filter(to_name=SPELLINGS[1]).update(to_name=SPELLINGS[0])

    with connection.schema_editor() as editor:
        importlib.import_module("controlplane.catalog.migrations.0017_canonical_names").canonical_names(apps, editor)
    builds_sweep()

    assert [type(decided(asked)) for asked in SPELLINGS] == [Serve, Serve]
    assert set(Reference.objects.values_list("to_name", flat=True)) == {SPELLINGS[1]}
