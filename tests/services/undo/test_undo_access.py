"""Taking back what a change did to rules and groups."""

from dataclasses import replace

import pytest

from controlplane.access.cases import case_create
from controlplane.access.models import AccessEdit
from controlplane.access.selectors import group_get
from controlplane.access.services import (
    group_create,
    group_delete,
    group_update,
    rule_delete,
    rule_move,
    rule_update,
)
from controlplane.access.values import Case, RuleDraft
from controlplane.builder.services import builds_sweep
from controlplane.catalog.selectors import change_get
from controlplane.common.errors import Conflict
from controlplane.database.aliases import READER
from tests.services.undo.hands import (
    DANA,
    DENY_ALL,
    EDGE,
    OPAL,
    put,
    refusals,
    rule,
    rules,
    undo,
)
from tests.support.manifests import cluster
from xdscore.access import Effect
from xdscore.environment_choice import ClientFacts

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]


def test_undo__of_a_rule_that_takes_everything__is_one_change_without_it() -> None:
    put(cluster("a"))
    number, change = rule()

    undone = undo(change)
    builds_sweep()

    assert rules() == []
    row = change_get(public_id=undone.change)
    assert (row.kind, row.undoes) == ("access", change)
    [edit] = AccessEdit.objects.filter(change=row)
    assert (edit.subject_id, edit.action, edit.after) == (number, "deleted", None)


def test_undo__of_a_deleted_rule__it_is_there_again_with_its_number_place_and_groups() -> None:
    group_create(environment_key="default", draft=EDGE, actor=DANA)
    number, _ = rule(RuleDraft(Effect.DENY, "pay*", client_groups=("edge",), types=("cluster",), message="ask"))
    before = rules()
    deleted = rule_delete(environment_key="default", rule_id=number, actor=DANA)

    undo(deleted.change_id)

    assert rules() == before


def test_undo__of_a_move__both_rules_have_their_places_again() -> None:
    first, _ = rule(RuleDraft(Effect.ALLOW, "a"))
    rule(RuleDraft(Effect.ALLOW, "b"))
    before = rules()
    moved = rule_move(environment_key="default", rule_id=first, earlier=False, actor=DANA)
    assert rules() != before

    undo(moved.change_id)

    assert rules() == before


def test_undo__of_a_rule_that_made_others_give_way__all_have_their_places_again() -> None:
    rule(RuleDraft(Effect.ALLOW, "a", position=1))
    before = rules()
    _, change = rule(first=True)
    assert len(AccessEdit.objects.filter(change__public_id=change)) == 2

    undo(change)

    assert rules() == before


def test_undo__of_a_group__renamed_or_deleted__it_is_what_it_was() -> None:
    made = group_create(environment_key="default", draft=EDGE, actor=DANA)
    renamed = group_update(environment_key="default", key="edge", draft=replace(EDGE, key="rim"), actor=DANA)
    undo(renamed.change_id)
    assert group_get(environment_key="default", key="edge").id == made.id
    deleted = group_delete(environment_key="default", key="edge", actor=DANA)

    undo(deleted.change_id)

    again = group_get(environment_key="default", key="edge")
    assert (again.id, again.draft) == (made.id, EDGE)


def test_undo__of_a_group_that_rules_speak_of__names_the_rules() -> None:
    made = group_create(environment_key="default", draft=EDGE, actor=DANA)
    number, _ = rule(replace(DENY_ALL, client_groups=("edge",)))

    assert refusals(made.change_id) == [f"Client group 'edge' cannot be deleted: access rules speak of it: {number}."]


def test_undo__of_a_rule_that_was_changed_or_deleted_since__names_who_did() -> None:
    number, change = rule()
    later = rule_update(environment_key="default", rule_id=number, draft=replace(DENY_ALL, pattern="b*"), actor=OPAL)

    assert refusals(change) == [
        f"Access rule {number} was changed again since: by opal in change {later.change_id[:8]}."
    ]

    gone = rule_delete(environment_key="default", rule_id=number, actor=DANA)
    assert refusals(later.change_id) == [f"Access rule {number} is gone: by dana in change {gone.change_id[:8]}."]


def test_undo__of_a_deleted_rule_whose_place_is_taken_and_whose_group_is_gone__says_both() -> None:
    group_create(environment_key="default", draft=EDGE, actor=DANA)
    number, _ = rule(replace(DENY_ALL, client_groups=("edge",), position=10))
    deleted = rule_delete(environment_key="default", rule_id=number, actor=DANA)
    group_delete(environment_key="default", key="edge", actor=DANA)
    other, _ = rule(replace(DENY_ALL, position=10))

    said = refusals(deleted.change_id)

    assert len(said) == 2
    assert "would not be taken today" in said[0]
    assert "'edge'" in said[0]
    assert said[1] == f"Access rule {number} cannot have its position 10 again: Access rule {other} has it."


def test_undo__of_a_rule_whose_group_has_another_key__says_why_it_differs() -> None:
    group_create(environment_key="default", draft=EDGE, actor=DANA)
    number, change = rule(replace(DENY_ALL, client_groups=("edge",)))
    group_update(environment_key="default", key="edge", draft=replace(EDGE, key="rim"), actor=OPAL)

    assert refusals(change) == [
        f"Access rule {number} was changed again since: a client group it speaks of has another key now."
    ]


def test_undo__that_would_break_a_blocking_case__is_refused() -> None:
    put(cluster("a"))
    _, change = rule()
    case = Case(ClientFacts(node_id="n"), "cluster", "a", Effect.DENY)
    case_create(environment_key="default", case=case, blocking=True, actor=DANA)

    with pytest.raises(Conflict, match="blocking access case"):
        undo(change)

    assert len(rules()) == 1
