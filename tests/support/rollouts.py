"""A rollout that waits for a person, for tests of what is shown and told of one."""

from unittest.mock import patch

from controlplane.accounts.principal import Principal
from controlplane.catalog.models import Environment
from controlplane.catalog.rollout_settings import settings_from_json, settings_to_store
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.rollouts.selectors import rollout_open
from controlplane.rollouts.services import rollout_tick, ticking
from tests.support.manifests import Tree, parsed


def rollout_begun(*trees: Tree, actor: Principal, message: str = "", environment: str = "default") -> str:
    """Let changes of an environment go by rollouts in steps, the first of which asks for a person's word, and write
    these resources; the id of the rollout.
    """
    read = settings_from_json({"mode": "steps", "steps": [{"clients": 1, "approve": True}, {"percent": 100}]})
    rows = Environment.objects.filter(key=environment)
    rows.update(rollout=settings_to_store(read))
    edits = [Put(parsed(tree)) for tree in trees]
    change_apply(environment_key=environment, edits=edits, actor=actor, message=message)
    # Who is connected is known here, without a wait for what ADS processes report.
    with patch.object(ticking, "REPORTED_S", 0.0):
        rollout_tick(environment_id=rows.values_list("pk", flat=True).get())
    found = rollout_open(environment_key=environment)
    assert found is not None
    return found.id
