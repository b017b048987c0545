"""What a change wrote, as it is listed: edits in order, counted whole, and the findings of what is not listed."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.edits import change_edits
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply, environment_default_ensure, environment_update
from controlplane.catalog.values import Delete, Put
from tests.support.manifests import cluster, endpoints, parsed
from tests.support.principals import somebody
from xdscore.resource_types import CLUSTER
from xdscore.schema.content_policy import Stance

pytestmark = pytest.mark.django_db(transaction=True)

DANA = somebody("dana", ADMIN_SCOPES)


def written(*edits: Put | Delete) -> Change:
    made = change_apply(environment_key="default", edits=list(edits), actor=DANA)
    assert made.change is not None
    return made.change


def test_change_edits__more_than_are_listed__count_and_findings_of_all_in_one_query() -> None:
    environment_default_ensure()
    policy = environment_get(key="default").policy
    content = replace(policy.content, loopback=Stance.WARN)
    environment_update(key="default", policy=replace(policy, content=content), actor=DANA)
    written(Put(parsed(cluster("b"))), Put(parsed(cluster("c"))))
    change = written(
        Put(parsed(cluster("a"))),
        Put(parsed(cluster("b", connect_timeout="7s"))),
        Delete(CLUSTER, "c"),
        *(Put(parsed(endpoints(f"e{number}", 8080))) for number in range(3)),
    )

    with CaptureQueriesContext(connection) as asked:
        wrote = change_edits(change=change, limit=3, findings=2)

    assert len(asked) == 1
    assert [(each.name, each.action) for each in wrote.edits] == [("a", "created"), ("b", "updated"), ("c", "deleted")]
    assert wrote.count == 6
    assert [each.resource_name for each in wrote.findings] == ["e0", "e1"]
    assert change_edits(change=change, limit=3).findings == ()
