"""What wishes about rules and groups come to together, without a database."""

from dataclasses import replace

import pytest

from controlplane.access.choices import EditSubject
from controlplane.access.planning import access_planned, table_of
from controlplane.access.steps import AccessState
from controlplane.access.values import POSITION_FIRST, GroupDraft, RuleDraft, Wish
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.limits import Limits

RULE, GROUP = EditSubject.RULE, EditSubject.GROUP
EDGE = GroupDraft("edge", (Selector(node_cluster="edge"),), Trust.DECLARED)
CORE = replace(EDGE, key="core")
DENY = RuleDraft(Effect.DENY, "pay*", 10, ("edge",))
ALLOW = RuleDraft(Effect.ALLOW, "*", 20)


def now(*rules: RuleDraft, groups: tuple[GroupDraft, ...] = (EDGE,)) -> AccessState:
    return AccessState(
        "prod",
        {number: draft.as_json() for number, draft in enumerate(rules, 1)},
        {number: draft.as_json() for number, draft in enumerate(groups, 1)},
    )


def new(draft: RuleDraft, name: str = "new-1", place: str = "") -> Wish:
    return Wish(RULE, name, None, draft, place)


def test_rule_and_its_group__in_one__fit_each_other() -> None:
    wishes = [new(replace(DENY, client_groups=("core",), position=None)), Wish(GROUP, "core", None, CORE)]

    planned = access_planned(wishes, now(ALLOW), Limits())

    assert planned.findings == ()
    assert [(each.subject, each.id, each.before) for each in planned.steps] == [(GROUP, None, None), (RULE, None, None)]
    assert [rule.pattern for rule in table_of(planned.after, Effect.ALLOW).rules] == ["*", "pay*"]
    assert planned.rule_called(2) == "new-1"


def test_what_is_so_already__does_nothing() -> None:
    wishes = [Wish(RULE, "1", 1, DENY), Wish(GROUP, "edge", 1, EDGE), Wish(RULE, "9", 9, None)]

    assert access_planned(wishes, now(DENY), Limits()).steps == ()


def test_group__deleted_with_its_rule__goes_and_alone_it_does_not() -> None:
    gone = Wish(GROUP, "edge", 1, None)

    together = access_planned([gone, Wish(RULE, "1", 1, None)], now(DENY), Limits())
    alone = access_planned([replace(gone, place="/delete_groups/0")], now(DENY), Limits())

    assert (together.findings, together.after.rules, together.after.groups) == ((), {}, {})
    [said] = alone.findings
    assert (said.pointer, said.resource_type, said.resource_name) == ("/delete_groups/0", "group", "edge")
    assert "1" in said.detail


def test_group__with_another_key__its_rules_follow_and_a_draft_with_the_old_key_does_not() -> None:
    renamed = Wish(GROUP, "edge", 1, CORE)

    followed = access_planned([renamed], now(DENY), Limits())
    old = access_planned([renamed, Wish(RULE, "1", 1, replace(DENY, message="no"))], now(DENY), Limits())

    assert followed.findings == ()
    assert followed.after.rules[1]["client_groups"] == ["core"]
    assert [(said.code, said.pointer) for said in old.findings] == [("XDS3051", "/client_groups/0")]


def test_everything_that_is_wrong__is_told_at_once_with_its_place() -> None:
    wishes = [
        new(replace(DENY, client_groups=("nobody",), pattern="***"), place="/rules/0"),
        new(replace(ALLOW, position=10), "new-2", "/rules/1"),
        Wish(GROUP, "core", None, EDGE, "/groups/0"),
    ]

    found = access_planned(wishes, now(DENY), Limits()).findings

    assert [said.pointer for said in found] == [
        "/rules/0/pattern",
        "/rules/0/client_groups/0",
        "/rules/0/position",
        "/rules/1/position",
        "/groups/0/key",
    ]


def test_two_that_change_places__can() -> None:
    wishes = [Wish(RULE, "1", 1, replace(DENY, position=20)), Wish(RULE, "2", 2, replace(ALLOW, position=10))]

    planned = access_planned(wishes, now(DENY, ALLOW), Limits())

    assert planned.findings == ()
    assert [rule.number for rule in table_of(planned.after, Effect.DENY).rules] == [2, 1]


@pytest.mark.parametrize("lowest", [1, 2, 3, 10, 1_000])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_before_all_others__however_little_room_there_is__keeps_the_order(lowest: int, count: int) -> None:
    stored = now(replace(DENY, position=lowest), replace(ALLOW, position=lowest + 1))
    first = [new(replace(ALLOW, pattern=f"n{each}", position=POSITION_FIRST), f"new-{each}") for each in range(count)]
    last = new(replace(ALLOW, pattern="last", position=None), "new-last")

    planned = access_planned([*first, last], stored, Limits())

    assert planned.findings == ()
    patterns = [rule.pattern for rule in table_of(planned.after, Effect.DENY).rules]
    assert patterns == [*(f"n{each}" for each in range(count)), "pay*", "*", "last"]


def test_rule__gone_meanwhile_and_kept__is_made_again_with_its_number() -> None:
    planned = access_planned([Wish(RULE, "7", 7, DENY)], now(), Limits())

    [step] = planned.steps
    assert (step.id, step.before, step.action.value) == (7, None, "created")


def test_more_than_the_limit__is_refused() -> None:
    limits = replace(Limits(), rules_per_environment=1)

    assert (
        "more access rules"
        in access_planned([new(replace(ALLOW, position=None))], now(DENY), limits).findings[0].detail
    )
