"""Change sets that hold rules and groups: written with the resources as one change, stale when somebody wrote the same,
and taken back as a whole.
"""

from dataclasses import replace

import pytest

from controlplane.access.choices import EditSubject
from controlplane.access.models import AccessEdit, AccessRule, ClientGroup
from controlplane.access.selectors import access_state, access_table
from controlplane.access.services import (
    group_create,
    group_delete,
    group_update,
    rule_create,
    rule_delete,
    rule_update,
)
from controlplane.access.values import POSITION_FIRST, GroupDraft, RuleDraft, Wish
from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.selectors import change_get
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Delete, Edit, Put
from controlplane.changesets.models import ChangeSet
from controlplane.changesets.selectors import SetDetail, change_set_get, review_counts
from controlplane.changesets.services import (
    SetChanges,
    change_set_approve,
    change_set_create,
    change_set_edit,
    change_set_publish,
    change_set_submit,
)
from controlplane.changesets.values import Merge, SetState, Take
from controlplane.common.errors import Conflict, Forbidden, InputInvalid
from controlplane.database.aliases import READER
from controlplane.undo.services import change_undo, undo_way
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.resource_types import CLUSTER

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

ADA, BOB = (somebody(name, ADMIN_SCOPES) for name in ("ada", "bob"))
EDGE = GroupDraft("edge", (Selector(node_cluster="edge"),), Trust.DECLARED)
CORE = replace(EDGE, key="core")
DENY = RuleDraft(Effect.DENY, "pay*", client_groups=("edge",))
FOR_ALL = replace(DENY, client_groups=())
DENY_ALL = RuleDraft(Effect.DENY, "*")
WIDER = replace(EDGE, matchers=(Selector(node_cluster="edge-*"),))
RULE, GROUP = EditSubject.RULE, EditSubject.GROUP


def wish(draft: RuleDraft | GroupDraft | None, number: int | None = None, *, key: str = "") -> Wish:
    if isinstance(draft, GroupDraft) or key:
        return Wish(GROUP, key or getattr(draft, "key", ""), number, draft)
    return Wish(RULE, "", number, draft)


def proposed(*wishes: Wish, edits: tuple[Edit, ...] = ()) -> str:
    return change_set_create(environment_key="default", title="closer", edits=edits, wishes=wishes, actor=ADA)


def stored_rule(draft: RuleDraft = FOR_ALL) -> int:
    return rule_create(environment_key="default", draft=draft, actor=BOB).id


def publish(made: str) -> str:
    written = change_set_publish(public_id=made, actor=ADA)
    assert written is not None
    return written.change_id


def stands(made: str) -> SetDetail:
    return change_set_get(public_id=made)


def before_and_after(made: str) -> tuple[object, object]:
    [each] = stands(made).wishes
    return each.before, each.after


def test_rule_group_and_resource__are_one_change_and_its_undo_takes_all_of_it_back() -> None:
    old = stored_rule()
    change_apply(environment_key="default", edits=[Put(parsed(cluster("old")))], actor=BOB)
    found, there = access_state(environment_key="default"), Resource.objects.get(name="old")
    made = proposed(
        *(wish(DENY), wish(EDGE), wish(None, old)),
        edits=(Put(parsed(cluster("pay"))), Delete(CLUSTER, "old", missing_ok=True)),
    )
    changes = Change.objects.count()

    change = publish(made)

    assert Change.objects.count() == changes + 1
    row = change_get(public_id=change)
    assert (row.kind, row.revisions.count(), AccessEdit.objects.filter(change=row).count()) == ("resources", 2, 3)
    assert stands(made).view.changes == (change,)
    table = access_table(environment_key="default")
    assert [(rule.pattern, rule.client_groups) for rule in table.rules] == [("pay*", frozenset({"edge"}))]
    steps = undo_way(change=row).steps
    assert len(steps) == 5
    change_undo(public_id=change, reason="too much", actor=BOB)
    assert Change.objects.count() == changes + 2
    assert access_state(environment_key="default") == found
    there.refresh_from_db()
    assert (there.deleted, Resource.objects.get(name="pay").deleted) == (False, True)


def test_only_rules__are_a_change_of_access_that_is_taken_back_as_any() -> None:
    made = proposed(wish(EDGE), wish(DENY))

    change = publish(made)

    row = change_get(public_id=change)
    assert (row.kind, row.message, AccessRule.objects.count()) == ("access", "closer", 1)
    change_undo(public_id=change, reason="too much", actor=BOB)
    assert (AccessRule.objects.count(), ClientGroup.objects.count()) == (0, 0)


def test_undo__of_both__needs_the_right_to_both_and_nothing_of_it_written_since() -> None:
    change = publish(proposed(wish(EDGE), edits=(Put(parsed(cluster("pay"))),)))
    editor = somebody("eve", (Scope(Role.EDITOR, "default"),))

    with pytest.raises(Forbidden, match="access-editor"):
        change_undo(public_id=change, reason="no", actor=editor)
    group_update(
        environment_key="default", key="edge", draft=replace(EDGE, matchers=(Selector(node_cluster="e"),)), actor=BOB
    )
    with pytest.raises(Conflict) as refused:
        change_undo(public_id=change, reason="no", actor=BOB)
    assert "Client group 'edge' was changed again since: by bob" in refused.value.findings[0].detail
    assert not Resource.objects.get(name="pay").deleted


@pytest.mark.parametrize("of", ["a rule", "a group"])
@pytest.mark.parametrize("done", ["changed", "deleted"])
@pytest.mark.parametrize("take", list(Take))
def test_written_since__is_stale_says_what_moved_and_is_merged_by_name(of: str, done: str, take: Take) -> None:
    if of == "a rule":
        number = stored_rule()
        name, made = str(number), proposed(wish(DENY_ALL, number))
        other = replace(DENY, client_groups=(), pattern="other")
        if done == "changed":
            rule_update(environment_key="default", rule_id=number, draft=other, actor=BOB)
        else:
            rule_delete(environment_key="default", rule_id=number, actor=BOB)
    else:
        group_create(environment_key="default", draft=EDGE, actor=BOB)
        name, made = "edge", proposed(wish(WIDER))
        if done == "changed":
            group_update(environment_key="default", key="edge", draft=replace(EDGE, matchers=()), actor=BOB)
        else:
            group_delete(environment_key="default", key="edge", actor=BOB)
    word = "rule" if of == "a rule" else "group"

    detail = stands(made)
    assert (detail.view.state, detail.view.moved) == (SetState.STALE, 1)
    [moved] = detail.moved
    last = Change.objects.latest("pk")
    assert (moved.type, moved.name, moved.author, moved.change) == (word, name, "bob", str(last.public_id))
    assert (moved.base, moved.now) == (1, 2 if done == "changed" else 0)
    with pytest.raises(Conflict):
        publish(made)
    change_set_edit(public_id=made, changes=SetChanges(merges=[Merge(word, name, take)]), actor=ADA)

    assert stands(made).view.state is SetState.DRAFT
    if take is Take.THEIRS:
        assert stands(made).wishes == ()
        return
    publish(made)
    states = access_state(environment_key="default")
    [(kept, state)] = (states.rules if of == "a rule" else states.groups).items()
    assert state == {
        **(DENY_ALL if of == "a rule" else WIDER).as_json(),
        **({"position": 10} if of == "a rule" else {}),
    }
    assert of == "a group" or kept == int(name)


def test_group_to_be_made__that_somebody_made_since__is_stale_and_ours_becomes_it() -> None:
    made = proposed(wish(WIDER))
    group_create(environment_key="default", draft=EDGE, actor=BOB)

    [moved] = stands(made).moved
    assert (moved.name, moved.base, moved.now, moved.author) == ("edge", 0, 1, "bob")
    assert review_counts(environment_keys=["default"]) == {"default": 0}
    change_set_edit(public_id=made, changes=SetChanges(merges=[Merge("group", "edge", Take.OURS)]), actor=ADA)
    publish(made)

    assert [state["matchers"] for state in access_state(environment_key="default").groups.values()] == [
        [{"node_cluster": "edge-*"}]
    ]


def test_edit__of_a_rule__voids_the_approval_and_the_same_again_does_not() -> None:
    number = stored_rule()
    made = proposed(wish(DENY_ALL, number))
    change_set_submit(public_id=made, actor=ADA)
    change_set_approve(public_id=made, actor=BOB)

    assert not change_set_edit(public_id=made, changes=SetChanges(wishes=[wish(DENY_ALL, number)]), actor=ADA)
    assert stands(made).view.state is SetState.APPROVED
    changed = SetChanges(wishes=[wish(replace(DENY_ALL, message="ask"), number)])
    assert change_set_edit(public_id=made, changes=changed, actor=ADA)

    assert (stands(made).view.state, stands(made).view.approvals) == (SetState.DRAFT, 0)


def test_edit__of_one_half__leaves_the_other() -> None:
    made = proposed(wish(DENY_ALL), edits=(Put(parsed(cluster("pay"))),))

    change_set_edit(public_id=made, changes=SetChanges(edits=[Put(parsed(cluster("shop")))]), actor=ADA)
    assert [each.key for each in stands(made).wishes] == [("rule", "new-1")]
    change_set_edit(public_id=made, changes=SetChanges(wish_adds=[wish(DENY_ALL), wish(EDGE)]), actor=ADA)
    change_set_edit(public_id=made, changes=SetChanges(removes=[("rule", "new-1")]), actor=ADA)

    assert [each.key for each in stands(made).wishes] == [("group", "edge")]
    assert [each.name for each in stands(made).entries] == ["shop"]


def test_new_rule__sent_again__keeps_its_name_whatever_order() -> None:
    other = replace(DENY_ALL, pattern="other")
    made = proposed(wish(DENY_ALL), wish(other))

    again = SetChanges(wishes=[wish(other), wish(DENY_ALL)])

    assert not change_set_edit(public_id=made, changes=again, actor=ADA)


def test_new_rule__that_is_there_already__is_not_made_twice() -> None:
    number = stored_rule()

    made = proposed(wish(FOR_ALL), wish(DENY_ALL))

    assert [each.key for each in stands(made).wishes] == [("rule", str(number)), ("rule", "new-1")]
    publish(made)
    assert publish_again(FOR_ALL, DENY_ALL) is None
    assert AccessRule.objects.count() == 2


def publish_again(*drafts: RuleDraft) -> Change | None:
    written = change_set_publish(public_id=proposed(*map(wish, drafts)), actor=ADA)
    assert written is not None
    return written.change


def test_before_all_others__where_there_is_no_room__the_others_move_with_it_and_back() -> None:
    number = stored_rule(replace(DENY_ALL, position=1))
    made = proposed(wish(RuleDraft(Effect.ALLOW, "pay", POSITION_FIRST)))

    change = publish(made)

    assert [rule.pattern for rule in access_table(environment_key="default").rules] == ["pay", "*"]
    change_undo(public_id=change, reason="no", actor=BOB)
    assert {number: 1} == {n: state["position"] for n, state in access_state(environment_key="default").rules.items()}


def test_two_groups__change_keys_in_one() -> None:
    ids = [group_create(environment_key="default", draft=each, actor=BOB).id for each in (EDGE, CORE)]
    rule_create(environment_key="default", draft=DENY, actor=BOB)
    made = proposed(*(Wish(GROUP, "", number, draft) for number, draft in zip(ids, (CORE, EDGE), strict=True)))

    change = publish(made)

    [rule] = access_state(environment_key="default").rules.values()
    assert rule["client_groups"] == ["core"]
    change_undo(public_id=change, reason="no", actor=BOB)
    assert access_state(environment_key="default").groups[ids[0]]["key"] == "edge"


def test_what_cannot_be__is_told_at_once_and_stores_nothing() -> None:
    wishes = [
        replace(wish(replace(DENY_ALL, pattern="***")), place="/rules/0"),
        replace(wish(DENY_ALL, 4_711), place="/rules/1"),
        replace(wish(DENY_ALL, 4_711), place="/rules/2"),
    ]

    with pytest.raises(InputInvalid) as refused:
        proposed(*wishes)

    said = [(each.pointer, each.resource_type) for each in refused.value.findings]
    assert ("/rules/0/pattern", "rule") in said
    assert ("/rules/1/id", "rule") in said
    assert ("/rules/2", "rule") in said
    assert ChangeSet.objects.count() == 0


def test_rights__of_rules_and_of_resources__are_needed_of_who_drafts_and_who_publishes() -> None:
    editor = somebody("eve", (Scope(Role.EDITOR, "default"),))
    keeper = somebody("kim", (Scope(Role.ACCESS_EDITOR, "default"),))
    rules, both = proposed(wish(DENY_ALL)), proposed(wish(DENY_ALL), edits=(Put(parsed(cluster("pay"))),))
    resources = proposed(edits=(Put(parsed(cluster("shop"))),))

    for actor, wrong in ((editor, (rules, both)), (keeper, (both, resources))):
        for made in wrong:
            with pytest.raises(Forbidden):
                change_set_publish(public_id=made, actor=actor)
            with pytest.raises(Forbidden):
                change_set_edit(public_id=made, changes=SetChanges(title="x"), actor=actor)
    with pytest.raises(Forbidden):
        change_set_create(environment_key="default", title="x", wishes=[wish(DENY_ALL)], actor=editor)
    with pytest.raises(Forbidden):
        change_set_edit(public_id=resources, changes=SetChanges(wish_adds=[wish(DENY_ALL)]), actor=editor)
    assert change_set_publish(public_id=rules, actor=keeper) is not None
    assert stands(resources).wishes == ()
