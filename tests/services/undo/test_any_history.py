"""Whatever was written, in whatever order: taking the last of it back gives what was before, down to the beginning."""

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.access.selectors import group_list, group_state, rule_list, rule_state
from controlplane.access.services import (
    group_create,
    group_delete,
    group_update,
    rule_create,
    rule_delete,
    rule_move,
    rule_update,
)
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Resource
from controlplane.catalog.services import Terms, change_apply, environment_create
from controlplane.catalog.values import Delete, Edit, EnvironmentPolicy, Put
from controlplane.common.errors import Conflict, InputInvalid, NotFound
from controlplane.undo.services import change_undo
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True)

DANA = somebody("dana", ADMIN_SCOPES)
PARSED = {
    (name, patience): parsed(cluster(name, connect_timeout=patience)) for name in "abc" for patience in ("1s", "2s")
}
GROUPS = ("edge", "rim")

Write = Callable[[str], str]
"""Writes something into the environment of this key; the id of the change, empty where nothing was changed."""

_numbers = count()
_history = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@st.composite
def resource_writes(draw: st.DrawFn) -> Write:
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    edits: list[Edit] = []
    for name in names:
        patience = draw(st.sampled_from(("1s", "2s", None)))
        edits.append(Put(PARSED[name, patience]) if patience else Delete(CLUSTER, name, missing_ok=True))
    owner = draw(st.sampled_from((None, "team-a", "team-b")))
    return lambda key: change_apply(environment_key=key, edits=edits, actor=DANA, terms=Terms(owner)).change_id


@st.composite
def access_writes(draw: st.DrawFn) -> Write:
    act = draw(st.sampled_from(("rule", "first", "change", "move", "delete", "group", "regroup", "ungroup")))
    which, group = draw(st.integers(0, 3)), draw(st.sampled_from(GROUPS))
    effect, pattern = draw(st.sampled_from(list(Effect))), draw(st.sampled_from(("a*", "b", "*")))
    speaks_of = draw(st.sampled_from(((), (group,))))
    earlier, position = draw(st.booleans()), draw(st.sampled_from((None, 1, 10)))
    matchers = (Selector(node_cluster=pattern, metadata={"zone": pattern}),)

    def write(key: str) -> str:
        def there() -> int:
            ids = list(rule_list(environment_key=key).values_list("pk", flat=True))
            return ids[which % len(ids)] if ids else 0

        draft = RuleDraft(effect, pattern, position, client_groups=speaks_of)
        grouped = GroupDraft(group, matchers, Trust.DECLARED)
        match act:
            case "rule" | "first":
                made = rule_create(environment_key=key, draft=draft, actor=DANA, first=act == "first")
            case "change":
                made = rule_update(environment_key=key, rule_id=there(), draft=draft, actor=DANA)
            case "move":
                made = rule_move(environment_key=key, rule_id=there(), earlier=earlier, actor=DANA)
            case "delete":
                made = rule_delete(environment_key=key, rule_id=there(), actor=DANA)
            case "group":
                made = group_create(environment_key=key, draft=grouped, actor=DANA)
            case "regroup":
                made = group_update(environment_key=key, key=GROUPS[which % 2], draft=grouped, actor=DANA)
            case _:
                made = group_delete(environment_key=key, key=group, actor=DANA)
        return made.change_id

    return write


def resources(key: str) -> object:
    rows = Resource.objects.filter(environment__key=key, deleted=False)
    return sorted(rows.values_list("type", "name", "owner", "head__blob", "head__ttl_ms"))


def access(key: str) -> object:
    rules = [(row.pk, rule_state(row)) for row in rule_list(environment_key=key)]
    return rules, [(row.pk, group_state(row)) for row in group_list(environment_key=key)]


def unwinds(writes: list[Write], state: Callable[[str], object]) -> None:
    """Every write taken back, last first, gives what was before it; and what is taken back comes back."""
    key = f"e{next(_numbers)}"
    environment_create(key=key, policy=EnvironmentPolicy(), actor=DANA)
    made: list[tuple[str, object]] = []
    for write in writes:
        before = state(key)
        try:
            change = write(key)
        except (Conflict, InputInvalid, NotFound):
            continue  # such as a group that rules speak of: nothing was written
        if change:
            made.append((change, before))
    for change, before in reversed(made):
        after = state(key)
        undone = change_undo(public_id=change, reason="why", actor=DANA)
        assert state(key) == before
        redone = change_undo(public_id=undone.change, reason="why not", actor=DANA)
        assert state(key) == after
        change_undo(public_id=redone.change, reason="why", actor=DANA)
        assert state(key) == before


@_history
@given(st.lists(resource_writes(), min_size=1, max_size=6))
def test_undo__of_each_write_of_resources__gives_what_was_before_it(db: None, writes: list[Write]) -> None:
    unwinds(writes, resources)


@_history
@given(st.lists(access_writes(), min_size=1, max_size=10))
def test_undo__of_each_write_of_access__gives_what_was_before_it(db: None, writes: list[Write]) -> None:
    unwinds(writes, access)
