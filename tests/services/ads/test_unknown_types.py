"""A replica, and a worker, meet a resource type that only a later version knows: in a rolling upgrade, and after going
back (reliability F26, architecture.md law 1).
"""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import builds_sweep
from controlplane.catalog.models import Resource
from controlplane.catalog.services import change_apply, environment_default_ensure
from controlplane.catalog.values import Put
from controlplane.snapshots.selectors import entries_published
from tests.support.ads_replica import Replica
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.access import Effect

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
LATER = "of_a_later_version"


@pytest.fixture(autouse=True)
def environment() -> None:
    environment_default_ensure()


def put(*names: str, later: str = "") -> None:
    """Publish these clusters; `later` becomes a resource of a type that is not known."""
    change_apply(environment_key="default", edits=[Put(parsed(cluster(name))) for name in names], actor=DANA)
    Resource.objects.filter(name=later).update(type=LATER)
    builds_sweep()


@pytest.mark.parametrize("with_rules", [False, True])
def test_replica__type_it_does_not_know__serves_the_others_on_and_says_so(tmp_path: Path, with_rules: bool) -> None:
    if with_rules:
        rule = RuleDraft(effect=Effect.DENY, pattern="secret-*", types=("cluster",))
        rule_create(environment_key="default", draft=rule, actor=DANA)
    put("a")
    replica = Replica(tmp_path).look()
    put("b", "new", later="new")

    with capture_logs() as logged:
        replica.look()

    assert set(replica.timeouts()) == {"a", "b"}
    assert replica.snapshot().unknown == {LATER}
    assert [event["types"] for event in logged if event["event"] == "types.unknown"] == [[LATER]]
    said = f"'default' has resource types that this version does not know and does not serve ({LATER})"
    assert replica.loader.status().detail == said
    assert (LATER, "new") in entries_published(environment_key="default")  # for those that know it
