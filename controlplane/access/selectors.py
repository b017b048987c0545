"""Reads of access: groups, rules, cases, and the table they make."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from django.conf import settings
from django.db import models

from controlplane.access.choices import EditAction, EditSubject
from controlplane.access.models import AccessCase, AccessEdit, AccessRule, AccessRuleGroup, ClientGroup
from controlplane.access.review import case_run, secrets_closed
from controlplane.access.undoing import AccessNow, access_way, restored_by
from controlplane.access.values import (
    Case,
    CaseResult,
    EditDone,
    GroupDraft,
    GroupState,
    RuleDraft,
    RuleState,
    SavedCase,
)
from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.undoing import Way
from controlplane.catalog.values import EditedResource
from controlplane.common.errors import NotFound
from xdscore.access import AccessTable, Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.findings import Finding
from xdscore.limits import Limits
from xdscore.resource_types import SECRET_WORDS


def access_table_read(*, environment_id: int, default: Effect, using: str = "default") -> AccessTable:
    """The access table of an environment as the rows say it now. Called by the builder in its read transaction."""
    groups = ClientGroup.objects.using(using).filter(environment_id=environment_id).order_by("key")
    rules = rule_rows(using=using).filter(environment_id=environment_id, enabled=True)
    drafts = tuple(group_state(row).draft.group for row in groups)
    return AccessTable(default, drafts, tuple(rule_state(row).rule for row in rules))


def access_table(*, environment_key: str) -> AccessTable:
    """The access table of the environment with this key, as the rows say it now. Raises NotFound."""
    environment = environment_get(key=environment_key)
    return access_table_read(environment_id=environment.id, default=environment.policy.default_effect)


def secret_findings(*, environment_key: str, edits: Iterable[EditedResource]) -> tuple[Finding, ...]:
    """Warnings about the secrets among these edits that no rule, as they are now, lets any client read. Raises
    NotFound.
    """
    put = [(each.type, each.name) for each in edits if each.type in SECRET_WORDS and each.action != "deleted"]
    return secrets_closed(access_table(environment_key=environment_key), environment_key, put) if put else ()


def group_list(*, environment_key: str) -> models.QuerySet[ClientGroup]:
    """The client groups of an environment by key; `group_state` turns each into a value."""
    return ClientGroup.objects.filter(environment__key=environment_key).order_by("key")


def group_get(*, environment_key: str, key: str) -> GroupState:
    """One group by its key or, where no key is like that, by its id. Raises NotFound."""
    rows = group_list(environment_key=environment_key)
    row = rows.filter(key=key).first()
    if row is None and key.isascii() and key.isdigit() and len(key) < 18:
        row = rows.filter(pk=int(key)).first()
    if row is None:
        raise NotFound(f"There is no client group '{key}' in '{environment_key}'.")
    return group_state(row)


def group_state(row: ClientGroup) -> GroupState:
    """The value that a row of `group_list` stands for."""
    matchers = tuple(Selector(**matcher) for matcher in row.matchers)
    return GroupState(row.pk, GroupDraft(row.key, matchers, Trust(row.trust)))


def rule_rows(*, using: str = "default") -> models.QuerySet[AccessRule]:
    """All access rules in the order of their positions, with the client groups that `rule_state` reads of each."""
    return AccessRule.objects.using(using).order_by("position").prefetch_related("client_groups")


def rule_list(*, environment_key: str) -> models.QuerySet[AccessRule]:
    """The rules of an environment in their order; `rule_state` turns each into a value."""
    return rule_rows().filter(environment__key=environment_key)


def rule_get(*, environment_key: str, rule_id: int) -> RuleState:
    """The access rule of an environment with this id. Raises NotFound."""
    row = rule_list(environment_key=environment_key).filter(pk=rule_id).first()
    if row is None:
        raise NotFound(f"There is no access rule {rule_id} in '{environment_key}'.")
    return rule_state(row)


def rule_state(row: AccessRule) -> RuleState:
    """The value that a row of `rule_rows` stands for."""
    draft = RuleDraft(
        effect=Effect(row.effect),
        pattern=row.pattern,
        position=row.position,
        client_groups=tuple(sorted(group.key for group in row.client_groups.all())),
        types=tuple(row.types),
        message=row.message,
        enabled=row.enabled,
    )
    return RuleState(row.pk, draft)


def case_list(*, environment_key: str) -> models.QuerySet[AccessCase]:
    """The saved cases of an environment, oldest first; `case_state` turns each into a value."""
    return AccessCase.objects.filter(environment__key=environment_key).order_by("pk")


def case_state(row: AccessCase) -> SavedCase:
    """The value that a row of `case_list` stands for."""
    return SavedCase(row.pk, Case(ClientFacts(**row.client), row.type, row.name, Effect(row.expect)), row.blocking)


def client_json(client: ClientFacts) -> dict[str, object]:
    """The facts about a client that rules look at, as JSON; facts that are not given are left out."""
    return {field: value for field, value in asdict(client).items() if value and field != "kind"}


def cases_try(*, environment_key: str, cases: tuple[Case, ...]) -> tuple[CaseResult, ...]:
    """Try these cases against the rules as they are now; one result for each. Stores nothing. Raises NotFound."""
    table = access_table(environment_key=environment_key)
    return tuple(case_run(table, environment_key, case) for case in cases)


def edit_list(
    *, environment_key: str, subject: EditSubject | None = None, subject_id: int | None = None
) -> models.QuerySet[AccessEdit]:
    """The history of an environment's groups and rules, or of one of them, newest first; `edit_done` turns each into a
    value.
    """
    rows = AccessEdit.objects.filter(change__environment__key=environment_key).select_related("change")
    if subject is not None:
        rows = rows.filter(subject=subject.value)
    if subject_id is not None:
        rows = rows.filter(subject_id=subject_id)
    return rows.order_by("-pk")


def rules_of_upgrade() -> tuple[tuple[str, int], ...]:
    """The environment and id of each rule that an upgrade wrote, oldest first: whatever else writes one does so by
    somebody's name.
    """
    rows = AccessEdit.objects.filter(
        change__author=SYSTEM.name,
        change__principal__in=("", str(SYSTEM.id)),  # migrations write none; somebody of that name has another
        subject=EditSubject.RULE.value,
        action=EditAction.CREATED.value,
    ).order_by("pk")
    return tuple(rows.values_list("change__environment__key", "subject_id"))


def edits_of_change(*, change_id: str, limit: int | None = None) -> tuple[EditDone, ...]:
    """The edits that one change made to groups and rules, oldest first; the first `limit` of them where there is a
    limit.
    """
    rows = AccessEdit.objects.filter(change__public_id=change_id).select_related("change").order_by("pk")
    return tuple(edit_done(row) for row in rows[:limit])


def access_undo_way(*, change: Change) -> Way:
    """What undoing this change of rules or groups would do now, and what stands in the way."""
    edits = edits_of_change(change_id=str(change.public_id))
    now = _access_now(environment_key=change.environment.key, after=change)
    limits: Limits = settings.PARLEY.limits
    return access_way(restored_by(edits), now, limits)


def _access_now(*, environment_key: str, after: Change) -> AccessNow:
    """The rules and groups as they are now. For those that were written again after this change: by whom, and in which
    change.
    """
    groups = {row.pk: group_state(row).draft.as_json() for row in group_list(environment_key=environment_key)}
    rules = {row.pk: rule_state(row).draft.as_json() for row in rule_list(environment_key=environment_key)}
    links = AccessRuleGroup.objects.filter(group__environment__key=environment_key)
    spoken_of: dict[int, list[int]] = {}
    for rule, group in links.order_by("rule").values_list("rule", "group"):
        spoken_of.setdefault(group, []).append(rule)
    later = edit_list(environment_key=environment_key).filter(
        change__generation__gt=after.generation,
        subject_id__in=AccessEdit.objects.filter(change=after).values("subject_id"),
    )
    changed_by = {
        (done.subject, done.subject_id): (done.author, done.change_id) for done in map(edit_done, later.order_by("pk"))
    }
    return AccessNow(environment_key, rules, groups, spoken_of, changed_by)


def edit_done(row: AccessEdit) -> EditDone:
    """The value that a row of `edit_list` stands for."""
    before: Mapping[str, object] | None = row.before
    after: Mapping[str, object] | None = row.after
    return EditDone(
        change_id=str(row.change.public_id),
        author=row.change.author,
        principal=row.change.principal,
        at=row.at,
        subject=EditSubject(row.subject),
        subject_id=row.subject_id,
        action=EditAction(row.action),
        before=before,
        after=after,
    )
