"""Writes client groups and access rules; `cases` writes what they are tried against.

Each write of a group or a rule is a change: it locks the environment, counts its generation and leads to a build
(decisions U3, D6). Before it is committed, the saved cases are tried against the rules as they would be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.conf import settings
from django.db import models, transaction

from controlplane.access.checks import group_findings, rule_findings
from controlplane.access.choices import EditAction, EditSubject
from controlplane.access.models import AccessEdit, AccessRule, AccessRuleGroup, ClientGroup
from controlplane.access.review import cases_broken, rules_shadowed
from controlplane.access.selectors import (
    access_table,
    access_table_read,
    access_undo_way,
    case_list,
    case_state,
    edits_of_change,
    group_get,
    rule_get,
    rule_list,
    rule_state,
)
from controlplane.access.undoing import Restored, action_of, restored_by
from controlplane.access.values import AccessWritten, GroupDraft, GroupState, RuleDraft, RuleState
from controlplane.accounts.principal import Principal
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.guarding import NO_CONSENT, OF_ITSELF, Consent, Prospect
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.services import (
    change_start,
    environment_lock,
    freeze_pass,
    frozen_findings,
    loss_accept,
)
from controlplane.catalog.undoing import Undoes
from controlplane.common.errors import Conflict, InputInvalid
from controlplane.journal.services import audit_record
from xdscore.access import AccessTable, Effect
from xdscore.findings import Finding, has_errors
from xdscore.limits import Limits

# Between two rules that are added behind each other, so that others fit between them.
_POSITION_STEP = 10
# Further than any position is from another (the API takes 1,000,000,000 at most), and within the column.
_FAR = 1_000_000_001

Shift = tuple[int, Mapping[str, object] | None, Mapping[str, object] | None]
"""Another rule or group that a write changes on the side: its id, and its state before and after; None where there is
none.
"""


@transaction.atomic(durable=True)
def group_create(
    *,
    environment_key: str,
    draft: GroupDraft,
    actor: Principal,
    reason: str = "",
    request_id: str = "",
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
) -> AccessWritten:
    """Create a client group. No rule is for it yet, so no client loses anything. `dry_run`: store nothing. Raises
    NotFound, WriteFrozen, Conflict (the key is taken, or there are too many) and InputInvalid.
    """
    writing = _Writing(environment_key, actor, request_id, consent, dry_run=dry_run, reason=reason)
    _refuse_if(group_findings(draft, _limits()))
    existing = ClientGroup.objects.filter(environment=writing.environment)
    if existing.filter(key=draft.key).exists():
        raise Conflict(f"There is a client group '{draft.key}' in '{environment_key}' already. Nothing was changed.")
    if existing.count() >= _limits().client_groups_per_environment:
        raise Conflict(f"'{environment_key}' has as many client groups as are allowed. Nothing was changed.")
    row = ClientGroup.objects.create(environment=writing.environment, **_group_columns(draft))
    return writing.finish(EditSubject.GROUP, row.pk, EditAction.CREATED, None, draft.as_json())


@transaction.atomic(durable=True)
def group_update(
    *,
    environment_key: str,
    key: str,
    draft: GroupDraft,
    actor: Principal,
    reason: str = "",
    request_id: str = "",
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
) -> AccessWritten:
    """Replace a client group by `draft`; makes no change where the group equals it. `dry_run`: store nothing. Raises
    NotFound, Conflict, LossRefused and InputInvalid.
    """
    writing = _Writing(environment_key, actor, request_id, consent, dry_run=dry_run, reason=reason)
    before = group_get(environment_key=environment_key, key=key)
    _refuse_if(group_findings(draft, _limits()))
    if before.draft == draft:
        return AccessWritten(before.id, draft.as_json(), "")
    namesakes = ClientGroup.objects.filter(environment=writing.environment, key=draft.key).exclude(pk=before.id)
    if namesakes.exists():
        raise Conflict(f"There is a client group '{draft.key}' in '{environment_key}' already. Nothing was changed.")
    ClientGroup.objects.filter(pk=before.id).update(**_group_columns(draft))
    return writing.finish(EditSubject.GROUP, before.id, EditAction.UPDATED, before.draft.as_json(), draft.as_json())


@transaction.atomic(durable=True)
def group_delete(
    *,
    environment_key: str,
    key: str,
    actor: Principal,
    reason: str = "",
    request_id: str = "",
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
) -> AccessWritten:
    """Delete a client group. Raises NotFound, and Conflict while a rule is for it, so that no client loses anything.
    `dry_run`: store nothing.
    """
    writing = _Writing(environment_key, actor, request_id, consent, dry_run=dry_run, reason=reason)
    group: GroupState = group_get(environment_key=environment_key, key=key)
    rules = AccessRuleGroup.objects.filter(group_id=group.id).order_by("rule").values_list("rule_id", flat=True)
    if rules:
        numbers = ", ".join(str(number) for number in rules[:10])
        raise Conflict(f"Access rules speak of client group '{group.draft.key}': {numbers}. Nothing was changed.")
    ClientGroup.objects.filter(pk=group.id).delete()
    return writing.finish(EditSubject.GROUP, group.id, EditAction.DELETED, group.draft.as_json(), None)


@transaction.atomic(durable=True)
def rule_create(
    *,
    environment_key: str,
    draft: RuleDraft,
    actor: Principal,
    reason: str = "",
    request_id: str = "",
    first: bool = False,
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
) -> AccessWritten:
    """Create an access rule at the position in `draft`. Where that is None: behind all other rules or, with `first`,
    before them. `dry_run`: store nothing.

    Raises NotFound, Conflict (the position is taken, there are too many rules, a blocking case would break),
    LossRefused and InputInvalid.
    """
    writing = _Writing(environment_key, actor, request_id, consent, dry_run=dry_run, reason=reason)
    draft = _normal(draft)
    _refuse_if(_rule_problems(writing, draft))
    rules = AccessRule.objects.filter(environment=writing.environment)
    if rules.count() >= _limits().rules_per_environment:
        raise Conflict(f"'{environment_key}' has as many access rules as are allowed. Nothing was changed.")
    moved: tuple[Shift, ...] = ()
    if draft.position is None and first:
        position, moved = _room_before_all(writing.environment)
        draft = replace(draft, position=position)
    if draft.position is None:
        last = rules.aggregate(last=models.Max("position"))["last"]
        draft = replace(draft, position=_POSITION_STEP if last is None else last + _POSITION_STEP)
    _refuse_taken(writing, draft, None)
    row = AccessRule.objects.create(environment=writing.environment, **_rule_columns(draft))
    _link_groups(row.pk, writing, draft)
    return writing.finish(EditSubject.RULE, row.pk, EditAction.CREATED, None, draft.as_json(), also=moved)


@transaction.atomic(durable=True)
def rule_update(
    *,
    environment_key: str,
    rule_id: int,
    draft: RuleDraft,
    actor: Principal,
    reason: str = "",
    request_id: str = "",
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
) -> AccessWritten:
    """Replace an access rule by `draft`; makes no change where the rule equals it. Raises what `rule_create` raises."""
    writing = _Writing(environment_key, actor, request_id, consent, dry_run=dry_run, reason=reason)
    before: RuleState = rule_get(environment_key=environment_key, rule_id=rule_id)
    draft = replace(draft, position=before.draft.position if draft.position is None else draft.position)
    draft = _normal(draft)
    _refuse_if(_rule_problems(writing, draft))
    if before.draft == draft:
        return AccessWritten(before.id, draft.as_json(), "")
    _refuse_taken(writing, draft, before.id)
    AccessRule.objects.filter(pk=before.id).update(**_rule_columns(draft))
    AccessRuleGroup.objects.filter(rule_id=before.id).delete()
    _link_groups(before.id, writing, draft)
    return writing.finish(EditSubject.RULE, before.id, EditAction.UPDATED, before.draft.as_json(), draft.as_json())


@transaction.atomic(durable=True)
def rule_delete(
    *,
    environment_key: str,
    rule_id: int,
    actor: Principal,
    reason: str = "",
    request_id: str = "",
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
) -> AccessWritten:
    """Delete an access rule. Raises NotFound, LossRefused, and Conflict when a blocking case would break."""
    writing = _Writing(environment_key, actor, request_id, consent, dry_run=dry_run, reason=reason)
    rule = rule_get(environment_key=environment_key, rule_id=rule_id)
    AccessRule.objects.filter(pk=rule.id).delete()
    return writing.finish(EditSubject.RULE, rule.id, EditAction.DELETED, rule.draft.as_json(), None)


@transaction.atomic(durable=True)
def rule_move(
    *,
    environment_key: str,
    rule_id: int,
    earlier: bool,
    actor: Principal,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
) -> AccessWritten:
    """Swap an access rule with the one before it (`earlier`) or behind it. The first one has none before it, the last
    one none behind it: no change then. Raises NotFound, LossRefused, and Conflict when a blocking case would break.
    """
    writing = _Writing(environment_key, actor, request_id, consent, dry_run=dry_run)
    moved = rule_get(environment_key=environment_key, rule_id=rule_id)
    order = [rule_state(row) for row in rule_list(environment_key=environment_key)]
    place = next(place for place, each in enumerate(order) if each.id == rule_id)
    target = place - 1 if earlier else place + 1
    if not 0 <= target < len(order):
        return AccessWritten(moved.id, moved.draft.as_json(), "")
    other = order[target]
    rules = AccessRule.objects.filter(environment=writing.environment)
    # A position is one rule's, so one of both waits where no rule is.
    rules.filter(pk=moved.id).update(position=(order[-1].draft.position or 0) + _POSITION_STEP)
    rules.filter(pk=other.id).update(position=moved.draft.position)
    rules.filter(pk=moved.id).update(position=other.draft.position)
    after = replace(moved.draft, position=other.draft.position)
    other_after = replace(other.draft, position=moved.draft.position)
    return writing.finish(
        EditSubject.RULE,
        moved.id,
        EditAction.UPDATED,
        moved.draft.as_json(),
        after.as_json(),
        also=((other.id, other.draft.as_json(), other_after.as_json()),),
    )


@transaction.atomic(durable=True)
def access_undo(
    *, change: Change, undoes: Undoes, actor: Principal, request_id: str = "", consent: Consent = NO_CONSENT
) -> AccessWritten:
    """Undo what a change did to rules and groups; a deleted one comes back under its id.

    Raises LossRefused, and Conflict naming everything that stands in the way, or the blocking cases that would break.
    """
    writing = _Writing(change.environment.key, actor, request_id, consent, dry_run=False)
    access_undo_way(change=change).go(undoes.change)
    restored = restored_by(edits_of_change(change_id=undoes.change))
    _restore_groups([each for each in restored if each.subject is EditSubject.GROUP], writing)
    _restore_rules([each for each in restored if each.subject is EditSubject.RULE], writing)
    first, *others = restored
    return writing.finish(
        first.subject,
        first.id,
        first.action,
        first.before,
        first.after,
        also=[(each.id, each.before, each.after) for each in others],
        undoes=undoes,
    )


def default_effect_check(*, environment_key: str, default: Effect) -> None:
    """Try the saved cases as if `default` were the environment's default effect. Raises NotFound, and Conflict when a
    blocking case would break.
    """
    before = access_table(environment_key=environment_key)
    _refuse_broken(before, replace(before, default=default), environment_key)


class _Writing:
    """One write of rules or groups. Locks the environment and remembers its rules when it is made; `finish` checks the
    new rules and records the change.
    """

    def __init__(
        self,
        environment_key: str,
        actor: Principal,
        request_id: str,
        consent: Consent,
        *,
        dry_run: bool,
        reason: str = "",
    ) -> None:
        self.environment = environment_lock(key=environment_key)
        self._actor = actor
        self._request_id = request_id
        self._reason = reason
        self._consent = OF_ITSELF if dry_run else consent
        self._dry_run = dry_run
        self._before = _table(self.environment)

    @property
    def group_ids(self) -> dict[str, int]:
        """The row ids of the environment's client groups, by key."""
        return dict(ClientGroup.objects.filter(environment=self.environment).values_list("key", "pk"))

    def finish(
        self,
        subject: EditSubject,
        subject_id: int,
        action: EditAction,
        before: Mapping[str, object] | None,
        after: Mapping[str, object] | None,
        *,
        also: Sequence[Shift] = (),
        undoes: Undoes | None = None,
    ) -> AccessWritten:
        """Try the saved cases, check what clients would lose, and record the change; roll all of it back in a dry run.
        Raises WriteFrozen, Conflict when a blocking case breaks, and LossRefused.

        `before`, `after`: the rule or group as JSON; None where it does not exist. `also`: other rules or groups that
        changed with it. `undoes`: the change that this write takes back.
        """
        table = _table(self.environment)
        broken = ""
        if undoes is None:
            broken = freeze_pass(self.environment, self._actor, self._consent, request_id=self._request_id)
        warnings = _refuse_broken(self._before, table, self.environment.key)
        loss = loss_accept(Prospect(self.environment.key, tables=(self._before, table)), self._consent)
        verb = f"{'access_rule' if subject is EditSubject.RULE else 'client_group'}.{action.value}"
        change = change_start(
            environment=self.environment,
            kind=ChangeKind.ACCESS,
            actor=self._actor,
            message=_words(subject, subject_id, action, after if after is not None else before or {}),
            reason="; ".join(filter(None, (self._reason, broken))),
            undoes=undoes,
            request_id=self._request_id,
            loss=loss,
        )
        AccessEdit.objects.create(
            change=change,
            subject=subject.value,
            subject_id=subject_id,
            action=action.value,
            before=before,
            after=after,
        )
        for other_id, other_before, other_after in also:
            AccessEdit.objects.create(
                change=change,
                subject=subject.value,
                subject_id=other_id,
                action=action_of(other_before, other_after).value,
                before=other_before,
                after=other_after,
            )
        audit_record(
            actor=self._actor,
            verb=verb,
            subject=f"{subject.value}/{subject_id}",
            environment=self.environment.key,
            request_id=self._request_id,
            detail={"before": before, "after": after, **({"message": self._reason} if self._reason else {})},
        )
        row = after if after is not None else before or {}
        findings = (*warnings, *(said for _, said in rules_shadowed(table)))
        if self._dry_run:
            findings = (*findings, *frozen_findings(self.environment))
            transaction.set_rollback(True)
            return AccessWritten(subject_id, row, "", findings, loss)
        return AccessWritten(subject_id, row, str(change.public_id), findings, loss)


def _restore_groups(restored: Sequence[Restored], writing: _Writing) -> None:
    groups = ClientGroup.objects.filter(environment=writing.environment)
    for each in restored:
        if each.group is None:
            groups.filter(pk=each.id).delete()
        elif each.before is None:
            groups.create(pk=each.id, environment=writing.environment, **_group_columns(each.group))
        else:
            groups.filter(pk=each.id).update(**_group_columns(each.group))


def _restore_rules(restored: Sequence[Restored], writing: _Writing) -> None:
    rules = AccessRule.objects.filter(environment=writing.environment)
    rules.filter(pk__in=[each.id for each in restored if each.after is None]).delete()
    # Out of each other's way first, because a position is one rule's at every moment.
    rules.filter(pk__in=[each.id for each in restored]).update(position=models.F("position") + _FAR)
    for each in restored:
        if each.rule is None:
            continue
        if each.before is None:
            rules.create(pk=each.id, environment=writing.environment, **_rule_columns(each.rule))
        else:
            rules.filter(pk=each.id).update(**_rule_columns(each.rule))
            AccessRuleGroup.objects.filter(rule_id=each.id).delete()
        _link_groups(each.id, writing, each.rule)


def _words(subject: EditSubject, subject_id: int, action: EditAction, row: Mapping[str, object]) -> str:
    """One line for lists of changes that says what was done to a rule or group. `row`: the rule or group as JSON."""
    if subject is EditSubject.RULE:
        return f"access rule {subject_id} {action.value}: {row.get('effect', '')} {row.get('pattern', '')}"
    return f"client group {row.get('key', subject_id)} {action.value}"


def _table(environment: Environment) -> AccessTable:
    return access_table_read(environment_id=environment.pk, default=Effect(environment.default_effect))


def _refuse_broken(before: AccessTable, after: AccessTable, environment_key: str) -> tuple[Finding, ...]:
    saved = [case_state(row) for row in case_list(environment_key=environment_key)]
    findings = cases_broken(before, after, environment_key, saved)
    if has_errors(findings):
        raise Conflict("A blocking access case would not be kept any more. Nothing was changed.", findings=findings)
    return findings


def _refuse_if(findings: tuple[Finding, ...]) -> None:
    if findings:
        problems = "a problem" if len(findings) == 1 else f"{len(findings)} problems"
        raise InputInvalid(f"The body has {problems}. Nothing was changed.", findings=findings)


def _refuse_taken(writing: _Writing, draft: RuleDraft, rule_id: int | None) -> None:
    rules = AccessRule.objects.filter(environment=writing.environment, position__in=[draft.position])
    holder = next((rule for rule in rules if rule.pk != rule_id), None)
    if holder is not None:
        raise Conflict(
            f"Position {draft.position} is that of access rule {holder.pk}. Take another, or move that rule first. "
            "Nothing was changed."
        )


def _room_before_all(environment: Environment) -> tuple[int, tuple[Shift, ...]]:
    """A free position before all rules of the environment, and the rules that were moved to make room for it."""
    rules = AccessRule.objects.filter(environment=environment)
    lowest: int | None = rules.aggregate(lowest=models.Min("position"))["lowest"]
    if lowest is None or lowest > 1:
        return _POSITION_STEP if lowest is None else lowest // 2, ()
    before = {row.pk: rule_state(row).draft for row in rule_list(environment_key=environment.key)}
    # Over all others and back, because a position is one rule's at every moment.
    rules.update(position=models.F("position") + _FAR)
    rules.update(position=models.F("position") - _FAR + _POSITION_STEP)
    return lowest, tuple(
        (pk, draft.as_json(), replace(draft, position=(draft.position or 0) + _POSITION_STEP).as_json())
        for pk, draft in before.items()
    )


def _rule_problems(writing: _Writing, draft: RuleDraft) -> tuple[Finding, ...]:
    return rule_findings(draft, writing.group_ids.keys(), writing.environment.key, _limits())


def _normal(draft: RuleDraft) -> RuleDraft:
    """A copy of the draft with its groups and types sorted, each once, so that drafts that mean the same are equal."""
    groups, types = tuple(sorted(set(draft.client_groups))), tuple(sorted(set(draft.types)))
    return replace(draft, client_groups=groups, types=types)


def _link_groups(rule_id: int, writing: _Writing, draft: RuleDraft) -> None:
    ids = writing.group_ids
    links = (AccessRuleGroup(rule_id=rule_id, group_id=ids[key]) for key in draft.client_groups)
    AccessRuleGroup.objects.bulk_create(links)


def _group_columns(draft: GroupDraft) -> dict[str, object]:
    return draft.as_json()


def _rule_columns(draft: RuleDraft) -> dict[str, object]:
    return {column: value for column, value in draft.as_json().items() if column != "client_groups"}


def _limits() -> Limits:
    limits: Limits = settings.PARLEY.limits
    return limits
