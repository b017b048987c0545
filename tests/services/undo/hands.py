"""What somebody writes, and takes back."""

from dataclasses import replace

import pytest

from controlplane.access.selectors import rule_list, rule_state
from controlplane.access.services import (
    rule_create,
)
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES, Principal
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import change_get, environment_get, resource_get
from controlplane.catalog.services import Terms, change_apply, environment_update
from controlplane.catalog.values import ChangeMade, Delete, Edit, EnvironmentPolicy, Put
from controlplane.common.errors import Conflict, NotFound
from controlplane.undo.services import Undone, change_undo, undo_way
from tests.support.manifests import Tree, cluster, parsed
from tests.support.principals import somebody
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.resource_types import CLUSTER

DANA, OPAL = (somebody(name, ADMIN_SCOPES) for name in ("dana", "opal"))
EDGE = GroupDraft("edge", (Selector(node_cluster="edge", metadata={"zone": "eu-*"}),), Trust.DECLARED)
DENY_ALL = RuleDraft(Effect.DENY, "*")


def put(*trees: Tree, owner: str | None = None, delete: tuple[str, ...] = (), actor: Principal = DANA) -> ChangeMade:
    edits: list[Edit] = [*(Put(parsed(tree)) for tree in trees), *(Delete(CLUSTER, name) for name in delete)]
    return change_apply(environment_key="default", edits=edits, actor=actor, message="why", terms=Terms(owner))


def undo(change: str, actor: Principal = OPAL) -> Undone:
    return change_undo(public_id=change, reason="it broke", actor=actor, request_id="r-1")


def timeout(name: str) -> str:
    """What a cluster's connect_timeout is, as bytes tell it; "gone" where there is none."""
    try:
        content = resource_get(environment_key="default", kind=CLUSTER, name=name)
    except NotFound:
        return "gone"
    return next(
        (text for text in ("2s", "3s") if parsed(cluster(name, connect_timeout=text)).any_bytes == content.any_bytes),
        "first",
    )


def policy() -> EnvironmentPolicy:
    return environment_get(key="default").policy


def settings(**values: object) -> str:
    now = policy()
    changed = replace(now, **values)  # type: ignore[arg-type]  # fields of a policy
    return environment_update(key="default", policy=changed, before=now, actor=DANA).change_id


def rule(draft: RuleDraft = DENY_ALL, *, first: bool = False) -> tuple[int, str]:
    made = rule_create(environment_key="default", draft=draft, actor=DANA, first=first)
    return made.id, made.change_id


def rules() -> list[tuple[int, dict[str, object]]]:
    return [(row.pk, rule_state(row).draft.as_json()) for row in rule_list(environment_key="default")]


def refusals(change: str) -> list[str]:
    """What stands in the way of taking a change back, which must be all that happens."""
    before = Change.objects.count()
    with pytest.raises(Conflict, match="cannot be taken back") as refused:
        undo(change)
    assert Change.objects.count() == before
    assert [each.detail for each in undo_way(change=change_get(public_id=change)).obstacles] == [
        each.detail for each in refused.value.findings
    ]
    return [each.detail for each in refused.value.findings]
