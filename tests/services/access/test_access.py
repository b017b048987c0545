"""Groups and rules, through the real database, up to what a client is told."""

from dataclasses import replace

import pytest
from django.db import IntegrityError, transaction

from controlplane.access.cases import case_create
from controlplane.access.choices import EditAction, EditSubject
from controlplane.access.models import AccessRule
from controlplane.access.selectors import cases_try, edit_done, edit_list, group_get, rule_get, rule_list
from controlplane.access.services import (
    default_effect_check,
    group_create,
    group_delete,
    group_update,
    rule_create,
    rule_delete,
    rule_move,
    rule_update,
)
from controlplane.access.values import AccessWritten, Case, GroupDraft, RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import builds_sweep
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.services import change_apply, environment_create, environment_delete
from controlplane.catalog.values import EnvironmentPolicy, Put
from controlplane.common.errors import Conflict, InputInvalid, NotFound
from controlplane.journal.models import AuditEvent
from controlplane.snapshots.selectors import snapshot_of_name
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.decision import Decision, Denied, Missing, Serve, decide
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
EDGE = GroupDraft("edge", (Selector(node_cluster="edge"),), Trust.DECLARED)
DENY_PAY = RuleDraft(Effect.DENY, "pay*", client_groups=("edge",), message="ask payments")
AT_THE_EDGE = ClientFacts(node_id="n", node_cluster="edge")


def group(draft: GroupDraft = EDGE) -> AccessWritten:
    return group_create(environment_key="default", draft=draft, actor=DANA)


def rule(draft: RuleDraft = DENY_PAY) -> AccessWritten:
    return rule_create(environment_key="default", draft=draft, actor=DANA)


def decided(client: ClientFacts, name: str) -> Decision:
    """What a client would be told of what is published now."""
    snapshot = snapshot_of_name(environment_key="default", kind=CLUSTER, name=name)
    assert snapshot is not None
    return decide(snapshot.access.audience("default", client), CLUSTER, name, snapshot)


def test_rule__written_and_built__decides_for_its_group_and_for_nobody_else(database: str) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(cluster("pay")))], actor=DANA)
    group()
    made = rule()

    builds_sweep()

    assert decided(AT_THE_EDGE, "pay") == decided(AT_THE_EDGE, "payroll") == Denied(made.id, "ask payments")
    assert isinstance(decided(ClientFacts(node_id="n"), "pay"), Serve)
    assert decided(AT_THE_EDGE, "other") == Missing()


def test_rule__removed_again__the_name_is_served_again(database: str) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(cluster("pay")))], actor=DANA)
    group()
    made = rule()
    builds_sweep()

    rule_delete(environment_key="default", rule_id=made.id, actor=DANA)
    builds_sweep()

    assert isinstance(decided(AT_THE_EDGE, "pay"), Serve)


def test_write__group_or_rule__is_a_change_with_its_audit_event_and_history(database: str) -> None:
    generation = Environment.objects.get(key="default").generation
    group()
    made = rule()
    changed = rule_update(
        environment_key="default", rule_id=made.id, draft=replace(DENY_PAY, effect=Effect.HIDE), actor=DANA
    )

    change = Change.objects.get(public_id=changed.change_id)
    assert (change.kind, change.generation) == ("access", generation + 3)
    verbs = list(AuditEvent.objects.order_by("-pk").values_list("verb", flat=True)[:3])
    assert verbs == ["access_rule.updated", "access_rule.created", "client_group.created"]
    history = [edit_done(row) for row in edit_list(environment_key="default", subject=EditSubject.RULE)]
    assert [edit.action for edit in history] == [EditAction.UPDATED, EditAction.CREATED]
    assert history[0].before is not None
    assert history[0].after is not None
    assert (history[0].before["effect"], history[0].after["effect"]) == ("deny", "hide")


def test_write__what_is_there_already__makes_no_change(database: str) -> None:
    group()
    made = rule()

    again = rule_update(environment_key="default", rule_id=made.id, draft=DENY_PAY, actor=DANA)
    same = group_update(environment_key="default", key="edge", draft=EDGE, actor=DANA)

    assert again.change_id == same.change_id == ""


def test_rule__without_position__goes_behind_the_others_with_room_between(database: str) -> None:
    rules = [rule(RuleDraft(Effect.ALLOW, name)) for name in ("a", "b")]

    between = rule(RuleDraft(Effect.DENY, "c", position=15))

    order = [row.pk for row in rule_list(environment_key="default")]
    assert order == [rules[0].id, between.id, rules[1].id]


def test_rule__position_of_another__is_refused_and_says_whose_it_is(database: str) -> None:
    made = rule(RuleDraft(Effect.ALLOW, "a"))

    with pytest.raises(Conflict, match=f"access rule {made.id}"):
        rule(RuleDraft(Effect.DENY, "b", position=10))


def test_rule__disabled__decides_nothing(database: str) -> None:
    group()
    made = rule(replace(DENY_PAY, enabled=False))
    builds_sweep()

    assert decided(AT_THE_EDGE, "pay") == Missing()
    assert not rule_get(environment_key="default", rule_id=made.id).draft.enabled


@pytest.mark.parametrize(
    ("draft", "code", "pointer"),
    [
        (RuleDraft(Effect.DENY, "a*b*c*d"), "XDS3050", "/pattern"),
        (RuleDraft(Effect.DENY, ""), "XDS3050", "/pattern"),
        (RuleDraft(Effect.DENY, "x" * 257), "XDS3050", "/pattern"),
        (RuleDraft(Effect.DENY, "a\nb"), "XDS3050", "/pattern"),
        (RuleDraft(Effect.DENY, "a", client_groups=("nobody",)), "XDS3051", "/client_groups/0"),
    ],
)
def test_rule__cannot_be_used__is_refused_with_the_place(
    database: str, draft: RuleDraft, code: str, pointer: str
) -> None:
    with pytest.raises(InputInvalid) as refused:
        rule(draft)

    assert [(finding.code, finding.pointer) for finding in refused.value.findings] == [(code, pointer)]
    assert not AccessRule.objects.exists()


def test_group__verified_but_matched_by_what_clients_say__is_refused(database: str) -> None:
    draft = GroupDraft("g", (Selector(identity="spiffe://corp/a"), Selector(node_id="n")), Trust.VERIFIED)

    with pytest.raises(InputInvalid) as refused:
        group(draft)

    assert [(finding.code, finding.pointer) for finding in refused.value.findings] == [("XDS3052", "/matchers/1")]


def test_group__that_rules_speak_of__cannot_be_deleted(database: str) -> None:
    group()
    made = rule()

    with pytest.raises(Conflict, match=str(made.id)):
        group_delete(environment_key="default", key="edge", actor=DANA)
    rule_delete(environment_key="default", rule_id=made.id, actor=DANA)
    group_delete(environment_key="default", key="edge", actor=DANA)

    with pytest.raises(NotFound):
        group_get(environment_key="default", key="edge")


def test_group__renamed__rules_go_on_speaking_of_it(database: str) -> None:
    group()
    made = rule()

    group_update(environment_key="default", key="edge", draft=replace(EDGE, key="rim"), actor=DANA)

    assert rule_get(environment_key="default", rule_id=made.id).draft.client_groups == ("rim",)


def test_database__two_rules_at_one_position__are_refused(database: str) -> None:
    rule(RuleDraft(Effect.ALLOW, "a"))

    with pytest.raises(IntegrityError), transaction.atomic():
        AccessRule.objects.create(
            environment=Environment.objects.get(key="default"), position=10, pattern="b", effect="deny"
        )


def case(expect: Effect, *, blocking: bool) -> None:
    tried = Case(AT_THE_EDGE, "cluster", "pay", expect)
    case_create(environment_key="default", case=tried, blocking=blocking, actor=DANA)


def test_saved_case__required_and_broken_by_a_rule__the_change_is_refused(database: str) -> None:
    group()
    case(Effect.ALLOW, blocking=True)

    with pytest.raises(Conflict) as refused:
        rule()

    assert [finding.code for finding in refused.value.findings] == ["XDS3055"]
    assert not AccessRule.objects.exists()


def test_saved_case__not_required__the_change_goes_through_with_a_warning(database: str) -> None:
    group()
    case(Effect.ALLOW, blocking=False)

    made = rule()

    assert [finding.code for finding in made.findings] == ["XDS3055"]


def test_saved_case__broken_before__does_not_stop_the_next_change(database: str) -> None:
    case(Effect.DENY, blocking=True)

    made = rule(RuleDraft(Effect.ALLOW, "unrelated"))

    assert made.change_id
    assert [finding.code for finding in made.findings] == ["XDS3055"]


def test_saved_case__broken_by_another_default__is_refused(database: str) -> None:
    case(Effect.ALLOW, blocking=True)

    with pytest.raises(Conflict):
        default_effect_check(environment_key="default", default=Effect.DENY)


def test_cases_try__rules_as_they_are__say_effect_and_rule(database: str) -> None:
    group()
    made = rule()
    cases = tuple(Case(AT_THE_EDGE, "cluster", name, Effect.DENY) for name in ("pay", "web"))

    results = cases_try(environment_key="default", cases=cases)

    assert [(result.ok, result.effect, result.rule) for result in results] == [
        (True, Effect.DENY, made.id),
        (False, Effect.ALLOW, 0),
    ]


def test_environment__deleted_with_rules_and_history__is_gone(database: str) -> None:
    environment_create(key="shop", policy=EnvironmentPolicy(), actor=DANA)
    group_create(environment_key="shop", draft=EDGE, actor=DANA)
    rule_create(environment_key="shop", draft=DENY_PAY, actor=DANA)

    environment_delete(key="shop", actor=DANA)

    assert not AccessRule.objects.exists()


def test_rule_move__up_and_down__changes_places_with_its_neighbour_in_one_change(database: str) -> None:
    first, second = (rule(RuleDraft(Effect.DENY, pattern)) for pattern in ("a*", "b*"))

    moved = rule_move(environment_key="default", rule_id=second.id, earlier=True, actor=DANA)

    def order() -> list[int]:
        return [row.pk for row in rule_list(environment_key="default")]

    assert order() == [second.id, first.id]
    edits = [edit_done(row) for row in edit_list(environment_key="default")[:2]]
    assert {edit.change_id for edit in edits} == {moved.change_id}
    places = {edit.subject_id: ((edit.before or {})["position"], (edit.after or {})["position"]) for edit in edits}
    assert places == {second.id: (20, 10), first.id: (10, 20)}
    assert rule_move(environment_key="default", rule_id=second.id, earlier=True, actor=DANA).change_id == ""
    assert rule_move(environment_key="default", rule_id=second.id, earlier=False, actor=DANA).change_id
    assert order() == [first.id, second.id]


def test_rule_move__a_blocking_case_would_break__changes_nothing(database: str) -> None:
    rule(RuleDraft(Effect.ALLOW, "pay"))
    deny = rule(RuleDraft(Effect.DENY, "pay*"))
    case = Case(ClientFacts(node_id="n"), "cluster", "pay", Effect.ALLOW)
    case_create(environment_key="default", case=case, blocking=True, actor=DANA)

    with pytest.raises(Conflict):
        rule_move(environment_key="default", rule_id=deny.id, earlier=True, actor=DANA)

    assert [row.pattern for row in rule_list(environment_key="default")] == ["pay", "pay*"]


def test_rule_create__first_of_all__is_asked_first_also_where_there_was_no_room(database: str) -> None:
    made = [
        rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, f"p{number}"), actor=DANA, first=True).id
        for number in range(7)
    ]

    rows = list(rule_list(environment_key="default"))

    assert [row.pk for row in rows] == made[::-1]
    assert min(row.position for row in rows) >= 1
    assert rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "x"), actor=DANA).id not in made
