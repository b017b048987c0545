"""The state of a type stays small enough for one message (F24, D17)."""

from dataclasses import replace

import pytest
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Change
from controlplane.catalog.services import change_apply, change_plan
from controlplane.catalog.values import ChangeMade, Delete, Put
from controlplane.common.errors import InputInvalid
from tests.support.figures import measured
from tests.support.manifests import cluster, parsed, route
from tests.support.principals import somebody
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
SIZE = len(parsed(cluster("a")).any_bytes) + 5


@pytest.fixture(autouse=True)
def small(database: str, settings: Settings) -> None:
    limits = replace(settings.PARLEY.limits, sotw_state_warning_bytes=2 * SIZE, sotw_state_bytes=3 * SIZE)
    settings.PARLEY = replace(settings.PARLEY, limits=limits)


def put(*trees: dict[str, object]) -> ChangeMade:
    return change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)


def test_change__up_to_the_warning_and_to_the_limit__is_made() -> None:
    quiet = put(cluster("a"), cluster("b"))
    told = put(cluster("c"))

    assert quiet.findings == ()
    assert [finding.code for finding in told.findings] == ["XDS3017"]
    assert f"is {3 * SIZE:,} bytes" in told.findings[0].detail


def test_change__one_byte_above_the_limit__is_refused_with_the_largest_and_leaves_nothing() -> None:
    put(cluster("a"), cluster("b"))
    before = Change.objects.count()

    with pytest.raises(InputInvalid) as refused:
        put(cluster("long"), route("r", "a"))

    (finding,) = refused.value.findings
    assert finding.code == "XDS3016"
    assert f"would be {3 * SIZE + 3:,} bytes" in finding.detail
    assert finding.hint.startswith(f"The largest are long ({SIZE - 2:,}), a ({SIZE - 5:,}), b")
    assert Change.objects.count() == before
    with pytest.raises(InputInvalid):
        change_plan(environment_key="default", edits=[Put(parsed(cluster("long")))], asker=None)
    measured(refused_bytes=3 * SIZE + 3, allowed_bytes=3 * SIZE)


def test_change__over_a_limit_that_was_lowered__may_shrink_and_empty_it(settings: Settings) -> None:
    put(cluster("a"), cluster("b"), cluster("c"))
    limits = replace(settings.PARLEY.limits, sotw_state_warning_bytes=1, sotw_state_bytes=2)
    settings.PARLEY = replace(settings.PARLEY, limits=limits)

    put(cluster("a", connect_timeout="2s"))
    deleted = change_apply(environment_key="default", edits=[Delete(CLUSTER, "b")], actor=DANA)
    named = put(route("r", "c"))

    assert deleted.changed
    assert named.changed, "routes are asked for by name, and are not limited so"
    with pytest.raises(InputInvalid):
        put(cluster("d"))
