"""Writes client groups and access rules; `cases` writes what they are tried against.

Each write of a group or a rule is a change: it locks the environment, counts its generation and leads to a build
(decisions U3, D6). Before it is committed, the saved cases are tried against the rules as they would be.
"""

from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings
from django.db import models, transaction

from controlplane.access.checks import group_findings, rule_findings
from controlplane.access.choices import EditSubject
from controlplane.access.models import AccessRule, AccessRuleGroup, ClientGroup
from controlplane.access.review import rules_shadowed
from controlplane.access.rows import FAR, edits_record, group_columns, group_ids, groups_link, rows_write, rule_columns
from controlplane.access.selectors import (
    access_table,
    access_table_read,
    access_undo_way,
    edits_of_change,
    group_get,
    rule_get,
    rule_list,
    rule_state,
)
from controlplane.access.steps import State, Step
from controlplane.access.trying import broken_refuse
from controlplane.access.undoing import restored_by
from controlplane.access.values import POSITION_STEP, AccessWritten, GroupDraft, GroupState, RuleDraft, RuleState
from controlplane.accounts.principal import Principal
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.guarding import NO_CONSENT, OF_ITSELF, Consent, Prospect
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.services import (
    Rewriting,
    barrier_findings,
    barriers_pass,
    cases_judged,
    change_start,
    environment_lock,
    loss_accept,
    review_pass,
)
from controlplane.catalog.undoing import Undoes
from controlplane.common.errors import Conflict, InputInvalid
from xdscore.access import AccessTable, Effect
from xdscore.findings import Finding
from xdscore.limits import Limits


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
    row = ClientGroup.objects.create(environment=writing.environment, **group_columns(draft))
    return writing.finish(EditSubject.GROUP, row.pk, None, draft.as_json())


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
    ClientGroup.objects.filter(pk=before.id).update(**group_columns(draft))
    return writing.finish(EditSubject.GROUP, before.id, before.draft.as_json(), draft.as_json())


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
    return writing.finish(EditSubject.GROUP, group.id, group.draft.as_json(), None)


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
    draft = draft.normal
    _refuse_if(_rule_problems(writing, draft))
    rules = AccessRule.objects.filter(environment=writing.environment)
    if rules.count() >= _limits().rules_per_environment:
        raise Conflict(f"'{environment_key}' has as many access rules as are allowed. Nothing was changed.")
    moved: tuple[Step, ...] = ()
    if draft.position is None and first:
        position, moved = _room_before_all(writing.environment)
        draft = replace(draft, position=position)
    if draft.position is None:
        last = rules.aggregate(last=models.Max("position"))["last"]
        draft = replace(draft, position=POSITION_STEP if last is None else last + POSITION_STEP)
    _refuse_taken(writing, draft, None)
    row = AccessRule.objects.create(environment=writing.environment, **rule_columns(draft))
    groups_link(row.pk, draft.client_groups, writing.group_ids)
    return writing.finish(EditSubject.RULE, row.pk, None, draft.as_json(), also=moved)


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
    draft = draft.normal
    _refuse_if(_rule_problems(writing, draft))
    if before.draft == draft:
        return AccessWritten(before.id, draft.as_json(), "")
    _refuse_taken(writing, draft, before.id)
    AccessRule.objects.filter(pk=before.id).update(**rule_columns(draft))
    AccessRuleGroup.objects.filter(rule_id=before.id).delete()
    groups_link(before.id, draft.client_groups, writing.group_ids)
    return writing.finish(EditSubject.RULE, before.id, before.draft.as_json(), draft.as_json())


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
    return writing.finish(EditSubject.RULE, rule.id, rule.draft.as_json(), None)


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
    rules.filter(pk=moved.id).update(position=(order[-1].draft.position or 0) + POSITION_STEP)
    rules.filter(pk=other.id).update(position=moved.draft.position)
    rules.filter(pk=moved.id).update(position=other.draft.position)
    after = replace(moved.draft, position=other.draft.position)
    other_after = replace(other.draft, position=moved.draft.position)
    return writing.finish(
        EditSubject.RULE,
        moved.id,
        moved.draft.as_json(),
        after.as_json(),
        also=(Step(EditSubject.RULE, other.id, other.draft.as_json(), other_after.as_json()),),
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
    return writing.record(
        rows_write(writing.environment, restored_by(edits_of_change(change_id=undoes.change))), undoes
    )


def default_effect_check(*, environment_key: str, default: Effect) -> None:
    """Try the saved cases as if `default` were the environment's default effect. Raises NotFound, and Conflict when a
    blocking case would break.
    """
    before = access_table(environment_key=environment_key)
    broken_refuse(before, replace(before, default=default), environment_key)


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
        return group_ids(self.environment)

    def finish(
        self,
        subject: EditSubject,
        subject_id: int,
        before: State | None,
        after: State | None,
        *,
        also: Sequence[Step] = (),
    ) -> AccessWritten:
        """`record` what was done to one rule or group, and to others on the side (`also`)."""
        return self.record((Step(subject, subject_id, before, after), *also))

    def record(self, steps: Sequence[Step], undoes: Undoes | None = None) -> AccessWritten:
        """Try the saved cases, check what clients would lose, and record the change; roll all of it back in a dry run.
        Raises WriteFrozen, WriteUnreviewed, Conflict when a blocking case breaks, LossRefused and CasesBroken.

        `steps`: what was done to rules and groups, first what the write is about. `undoes`: the change that this write
        takes back.
        """
        table = _table(self.environment)
        main = steps[0]
        passes = barriers_pass if undoes is None else review_pass  # a freeze stops nobody on the way back
        broken = passes(self.environment, self._actor, self._consent, request_id=self._request_id)
        warnings = broken_refuse(self._before, table, self.environment.key)
        tables = (self._before, table)
        loss = loss_accept(Prospect(self.environment.key, tables=tables), self._consent)
        rewriting = Rewriting(self.environment, tables=tables)
        cases = cases_judged(rewriting, self._consent, self._actor, request_id=self._request_id, dry_run=self._dry_run)
        row = main.after if main.after is not None else main.before or {}
        change = change_start(
            environment=self.environment,
            kind=ChangeKind.ACCESS,
            actor=self._actor,
            message=_words(main, row),
            reason="; ".join(filter(None, (self._reason, broken))),
            undoes=undoes,
            request_id=self._request_id,
            loss=loss,
        )
        edits_record(change, steps, actor=self._actor, request_id=self._request_id, message=self._reason)
        cases.store(change)
        findings = (*warnings, *cases.findings, *(said for _, said in rules_shadowed(table)))
        if self._dry_run:
            findings = (*findings, *barrier_findings(self.environment))
            transaction.set_rollback(True)
            return AccessWritten(main.id or 0, row, "", findings, loss)
        return AccessWritten(main.id or 0, row, str(change.public_id), findings, loss)


def _words(step: Step, row: State) -> str:
    """One line for lists of changes that says what was done to a rule or group. `row`: the rule or group as JSON."""
    if step.subject is EditSubject.RULE:
        return f"access rule {step.id} {step.action.value}: {row.get('effect', '')} {row.get('pattern', '')}"
    return f"client group {row.get('key', step.id)} {step.action.value}"


def _table(environment: Environment) -> AccessTable:
    return access_table_read(environment_id=environment.pk, default=Effect(environment.default_effect))


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


def _room_before_all(environment: Environment) -> tuple[int, tuple[Step, ...]]:
    """A free position before all rules of the environment, and the rules that were moved to make room for it."""
    rules = AccessRule.objects.filter(environment=environment)
    lowest: int | None = rules.aggregate(lowest=models.Min("position"))["lowest"]
    if lowest is None or lowest > 1:
        return POSITION_STEP if lowest is None else lowest // 2, ()
    before = {row.pk: rule_state(row).draft for row in rule_list(environment_key=environment.key)}
    # Over all others and back, because a position is one rule's at every moment.
    rules.update(position=models.F("position") + FAR)
    rules.update(position=models.F("position") - FAR + POSITION_STEP)
    return lowest, tuple(
        Step(
            EditSubject.RULE,
            pk,
            draft.as_json(),
            replace(draft, position=(draft.position or 0) + POSITION_STEP).as_json(),
        )
        for pk, draft in before.items()
    )


def _rule_problems(writing: _Writing, draft: RuleDraft) -> tuple[Finding, ...]:
    return rule_findings(draft, writing.group_ids.keys(), writing.environment.key, _limits())


def _limits() -> Limits:
    limits: Limits = settings.PARLEY.limits
    return limits
