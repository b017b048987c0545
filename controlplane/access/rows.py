"""Writes the rows of rules and groups, and the history of both. Private to this app's services."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from django.db.models import F

from controlplane.access.choices import EditSubject
from controlplane.access.models import AccessEdit, AccessRule, AccessRuleGroup, ClientGroup
from controlplane.access.steps import Step
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.catalog.models import Change, Environment
from controlplane.common.principal_ids import Actor
from controlplane.journal.services import audit_record

FAR = 1_000_000_001
"""Further than any position is from another (the API takes 1,000,000,000 at most), and within the column."""


def rows_write(environment: Environment, steps: Iterable[Step]) -> tuple[Step, ...]:
    """Make the rows what these steps say, which must fit what is there; returns the steps with the ids of the rows that
    they made. A step that makes something under an id that it had before names that id.
    """
    steps = tuple(steps)
    of_rules = [each for each in steps if each.subject is EditSubject.RULE]
    of_groups = [each for each in steps if each.subject is EditSubject.GROUP]
    _step_aside(environment, of_rules, of_groups)
    groups = [_group_write(environment, each) for each in of_groups]
    ids = group_ids(environment)
    return (*groups, *(_rule_write(environment, each, ids) for each in of_rules))


def edits_record(change: Change, steps: Iterable[Step], *, actor: Actor, request_id: str, message: str = "") -> None:
    """Note in the history of access, and in the audit log, what a change did to each rule and group. `message`: why."""
    for each in steps:
        edit_record(change, each)
        audit_record(
            actor=actor,
            verb=f"{'access_rule' if each.subject is EditSubject.RULE else 'client_group'}.{each.action.value}",
            subject=f"{each.subject.value}/{each.id}",
            environment=change.environment.key,
            request_id=request_id,
            detail={"before": each.before, "after": each.after, **({"message": message} if message else {})},
        )


def edit_record(change: Change, step: Step) -> None:
    """Note in the history of access what a change did to one rule or group."""
    AccessEdit.objects.create(
        change=change,
        subject=step.subject.value,
        subject_id=step.row,
        action=step.action.value,
        before=step.before,
        after=step.after,
    )


def group_ids(environment: Environment) -> dict[str, int]:
    """The row ids of the environment's client groups, by key."""
    return dict(ClientGroup.objects.filter(environment=environment).values_list("key", "pk"))


def groups_link(rule_id: int, keys: Iterable[str], ids: dict[str, int]) -> None:
    """Make the rule one for the groups with these keys. `ids`: the row ids of the groups, by key."""
    AccessRuleGroup.objects.bulk_create(AccessRuleGroup(rule_id=rule_id, group_id=ids[key]) for key in keys)


def group_columns(draft: GroupDraft) -> dict[str, object]:
    """The columns of a client group's row."""
    return draft.as_json()


def rule_columns(draft: RuleDraft) -> dict[str, object]:
    """The columns of an access rule's row; its groups are rows of their own."""
    return {column: value for column, value in draft.as_json().items() if column != "client_groups"}


def _step_aside(environment: Environment, of_rules: Sequence[Step], of_groups: Sequence[Step]) -> None:
    """Delete what is to go, and bring what is to be written out of each other's way: a position is one rule's, and a
    key one group's, at every moment; and no group goes while a rule is for it.
    """
    rules = AccessRule.objects.filter(environment=environment)
    groups = ClientGroup.objects.filter(environment=environment)
    written = [each.row for each in of_rules if each.before is not None]
    AccessRuleGroup.objects.filter(rule__in=rules.filter(pk__in=written)).delete()
    rules.filter(pk__in=[each.row for each in of_rules if each.after is None]).delete()
    rules.filter(pk__in=written).update(position=F("position") + FAR)
    groups.filter(pk__in=[each.row for each in of_groups if each.after is None]).delete()
    for each in of_groups:
        if each.before is not None and each.after is not None and each.before["key"] != each.after["key"]:
            groups.filter(pk=each.row).update(key=f"~{each.row}")  # no key holds that character


def _group_write(environment: Environment, step: Step) -> Step:
    if step.group is None:
        return step
    if step.before is None:
        made = ClientGroup.objects.create(pk=step.id, environment=environment, **group_columns(step.group))
        return replace(step, id=made.pk)
    ClientGroup.objects.filter(environment=environment, pk=step.row).update(**group_columns(step.group))
    return step


def _rule_write(environment: Environment, step: Step, ids: dict[str, int]) -> Step:
    if step.rule is None:
        return step
    number = step.id
    if step.before is None:
        number = AccessRule.objects.create(pk=step.id, environment=environment, **rule_columns(step.rule)).pk
    else:
        AccessRule.objects.filter(environment=environment, pk=step.row).update(**rule_columns(step.rule))
    groups_link(number or 0, step.rule.client_groups, ids)
    return replace(step, id=number)
