"""Reads of access: groups, rules, cases, and the table they make."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from django.conf import settings
from django.db import models

from controlplane.access.choices import EditAction, EditSubject
from controlplane.access.models import AccessCase, AccessEdit, AccessRule, ClientGroup
from controlplane.access.review import case_run, secrets_closed
from controlplane.access.steps import AccessState
from controlplane.access.undoing import Writers, access_way, restored_by
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
    """The access rules and groups of an environment as the database has them now. `using`: the database alias to read;
    the builder reads in its own transaction.
    """
    groups = ClientGroup.objects.using(using).filter(environment_id=environment_id).order_by("key")
    rules = rule_rows(using=using).filter(environment_id=environment_id, enabled=True)
    drafts = tuple(group_state(row).draft.group for row in groups)
    return AccessTable(default, drafts, tuple(rule_state(row).rule for row in rules))


def access_table(*, environment_key: str) -> AccessTable:
    """The access rules and groups of the environment with this key, as they are now. Raises NotFound."""
    environment = environment_get(key=environment_key)
    return access_table_read(environment_id=environment.id, default=environment.policy.default_effect)


def secret_findings(*, environment_key: str, edits: Iterable[EditedResource]) -> tuple[Finding, ...]:
    """A warning for each secret among the edited resources that no access rule allows any client to read now. Raises
    NotFound.
    """
    put = [(each.type, each.name) for each in edits if each.type in SECRET_WORDS and each.action != "deleted"]
    return secrets_closed(access_table(environment_key=environment_key), environment_key, put) if put else ()


def group_list(*, environment_key: str) -> models.QuerySet[ClientGroup]:
    """The client groups of an environment, ordered by key; `group_state` turns each row into a value."""
    return ClientGroup.objects.filter(environment__key=environment_key).order_by("key")


def group_get(*, environment_key: str, key: str) -> GroupState:
    """The client group with this key or, where there is none, with this id. Raises NotFound."""
    rows = group_list(environment_key=environment_key)
    row = rows.filter(key=key).first()
    if row is None and key.isascii() and key.isdigit() and len(key) < 18:
        row = rows.filter(pk=int(key)).first()
    if row is None:
        raise NotFound(f"There is no client group '{key}' in '{environment_key}'.")
    return group_state(row)


def group_state(row: ClientGroup) -> GroupState:
    """The client group that is stored in this row."""
    matchers = tuple(Selector(**matcher) for matcher in row.matchers)
    return GroupState(row.pk, GroupDraft(row.key, matchers, Trust(row.trust)))


def rule_rows(*, using: str = "default") -> models.QuerySet[AccessRule]:
    """The access rules of all environments, ordered by position; the client groups of each are read with them. `using`:
    the database alias to read.
    """
    return AccessRule.objects.using(using).order_by("position").prefetch_related("client_groups")


def rule_list(*, environment_key: str) -> models.QuerySet[AccessRule]:
    """The access rules of an environment in the order in which they are tried; `rule_state` turns each row into a
    value.
    """
    return rule_rows().filter(environment__key=environment_key)


def rule_get(*, environment_key: str, rule_id: int) -> RuleState:
    """The access rule of an environment with this id. Raises NotFound."""
    row = rule_list(environment_key=environment_key).filter(pk=rule_id).first()
    if row is None:
        raise NotFound(f"There is no access rule {rule_id} in '{environment_key}'.")
    return rule_state(row)


def rule_state(row: AccessRule) -> RuleState:
    """The access rule that is stored in this row of `rule_rows`."""
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
    """The saved cases of an environment, oldest first; `case_state` turns each row into a value."""
    return AccessCase.objects.filter(environment__key=environment_key).order_by("pk")


def case_state(row: AccessCase) -> SavedCase:
    """The saved case that is stored in this row."""
    return SavedCase(row.pk, Case(ClientFacts(**row.client), row.type, row.name, Effect(row.expect)), row.blocking)


def client_json(client: ClientFacts) -> dict[str, object]:
    """The facts about a client, as access rules look at them, as JSON; facts that are not known are left out."""
    return {field: value for field, value in asdict(client).items() if value and field != "kind"}


def cases_try(*, environment_key: str, cases: tuple[Case, ...]) -> tuple[CaseResult, ...]:
    """Try these cases against the access rules as they are now: one result for each, in order. Stores nothing. Raises
    NotFound.
    """
    table = access_table(environment_key=environment_key)
    return tuple(case_run(table, environment_key, case) for case in cases)


def edit_list(
    *, environment_key: str, subject: EditSubject | None = None, subject_id: int | None = None
) -> models.QuerySet[AccessEdit]:
    """What was done to the rules and groups of an environment, newest first; of one kind with `subject`, and of one
    rule or group with `subject_id`, too. `edit_done` turns each row into a value.
    """
    rows = AccessEdit.objects.filter(change__environment__key=environment_key).select_related("change")
    if subject is not None:
        rows = rows.filter(subject=subject.value)
    if subject_id is not None:
        rows = rows.filter(subject_id=subject_id)
    return rows.order_by("-pk")


def rules_of_upgrade() -> tuple[tuple[str, int], ...]:
    """The environment and id of each access rule that an upgrade of Parley wrote, oldest first: those that the history
    says were created in the name of the system.
    """
    rows = AccessEdit.objects.filter(
        change__author=SYSTEM.name,
        change__principal__in=("", str(SYSTEM.id)),  # migrations write none; somebody of that name has another
        subject=EditSubject.RULE.value,
        action=EditAction.CREATED.value,
    ).order_by("pk")
    return tuple(rows.values_list("change__environment__key", "subject_id"))


def edits_of_change(*, change_id: str, limit: int | None = None) -> tuple[EditDone, ...]:
    """What one change did to rules and groups, in order; only the first `limit` edits unless that is None."""
    rows = AccessEdit.objects.filter(change__public_id=change_id).select_related("change").order_by("pk")
    return tuple(edit_done(row) for row in rows[:limit])


def access_undo_way(*, change: Change) -> Way:
    """What undoing what this change did to rules and groups would do now, or everything that stands in its way."""
    edits = edits_of_change(change_id=str(change.public_id))
    limits: Limits = settings.PARLEY.limits
    now = access_state(environment_key=change.environment.key)
    return access_way(restored_by(edits), now, _writers_since(change), limits)


def access_state(*, environment_key: str) -> AccessState:
    """All rules and groups of an environment as they are now."""
    groups = {row.pk: group_state(row).draft.as_json() for row in group_list(environment_key=environment_key)}
    rules = {row.pk: rule_state(row).draft.as_json() for row in rule_list(environment_key=environment_key)}
    return AccessState(environment_key, rules, groups)


def _writers_since(change: Change) -> Writers:
    later = edit_list(environment_key=change.environment.key).filter(
        change__generation__gt=change.generation,
        subject_id__in=AccessEdit.objects.filter(change=change).values("subject_id"),
    )
    return {
        (done.subject, done.subject_id): (done.author, done.change_id) for done in map(edit_done, later.order_by("pk"))
    }


def edit_done(row: AccessEdit) -> EditDone:
    """The edit that is stored in this row of the history."""
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
