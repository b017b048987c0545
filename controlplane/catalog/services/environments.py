"""Writes environments: their making, their policies, and the fence that lets exactly one build win (decisions D6)."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from django.conf import settings
from django.db import models, transaction

from controlplane.accounts.principal import SYSTEM, Principal
from controlplane.accounts.services import environment_forget
from controlplane.catalog.choices import ChangeKind, QuarantinePolicy
from controlplane.catalog.guarding import NO_CONSENT, OF_ITSELF, Consent, Loss, Prospect
from controlplane.catalog.models import Environment
from controlplane.catalog.review import DEFAULT_REVIEW
from controlplane.catalog.rollout_settings import settings_stored, settings_to_store
from controlplane.catalog.selectors import EnvironmentState, environment_list, environment_state
from controlplane.catalog.services.cases import CasesJudged, Rewriting, cases_judged
from controlplane.catalog.services.freezing import freeze_pass, frozen_findings
from controlplane.catalog.services.guarding import loss_accept
from controlplane.catalog.services.holding import hold_told, thaw_told
from controlplane.catalog.services.staging import waiting_promote
from controlplane.catalog.services.writing import change_start, environment_lock
from controlplane.catalog.undoing import CREATED, Columns, Undoes
from controlplane.catalog.values import ChangeMade, EnvironmentPolicy
from controlplane.common.errors import Conflict, InputInvalid
from controlplane.database.append_only import maintenance
from controlplane.journal.services import audit_record
from xdscore.access import Effect
from xdscore.environment_choice import DEFAULT_ENVIRONMENT, EnvironmentChoice
from xdscore.schema.content_policy import OPEN_POLICY, stances_of

# Of the settings these alone say what a client gets; a freeze refuses them as it refuses rules.
_DECIDES_WHO_READS = frozenset({"default_effect", "selectors", "node_ids"})


@transaction.atomic(durable=True)
def environment_create(
    *,
    key: str,
    policy: EnvironmentPolicy,
    actor: Principal,
    reason: str = "",
    request_id: str = "",
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
) -> ChangeMade:
    """Create an environment; clients are matched with it after all others. It denies by default unless the policy says
    otherwise. `dry_run`: return what would come of it and store nothing. Raises Conflict, and LossRefused where its
    selectors would take clients away from another environment.
    """
    if Environment.objects.filter(key=key).exists():
        raise Conflict(f"Environment '{key}' exists already.")
    last = Environment.objects.aggregate(last=models.Max("position"))["last"]
    choices = _choices()
    made = (*choices, EnvironmentChoice(key, policy.selectors, policy.node_ids))
    loss = _loss(Prospect(key, choices=(choices, made) if policy.selectors else None), consent, dry_run=dry_run)
    environment = Environment.objects.create(key=key, position=1 if last is None else last + 1, **_columns(policy))
    return _policy_change(
        environment,
        "environment.created",
        actor,
        request_id,
        message="environment created",
        reason=reason,
        undo=CREATED,
        loss=loss,
        dry_run=dry_run,
    )


@transaction.atomic(durable=True)
def environment_update(  # noqa: PLR0913 - what a change says of itself
    *,
    key: str,
    policy: EnvironmentPolicy,
    actor: Principal,
    before: EnvironmentPolicy | None = None,
    undoes: Undoes | None = None,
    reason: str = "",
    request_id: str = "",
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
) -> ChangeMade:
    """Give an environment this policy; a policy it already has makes no change.

    `before`: the policy that the caller read and derived `policy` from; Conflict where another is in force by now.
    `undoes`: the change that this write takes back. `dry_run`: return what would come of it and store nothing. Raises
    NotFound, WriteFrozen, LossRefused and CasesBroken.
    """
    environment = environment_lock(key=key)
    current = environment_state(environment).policy
    if before is not None and current != before:
        raise Conflict(
            f"Somebody else changed environment '{key}' at the same moment. Read it again. Nothing was changed."
        )
    # What holds, and not what is stored: a kind of content that is newer than the row is refused in both.
    columns, held = _columns(policy), _columns(current)
    changed = {column: value for column, value in columns.items() if held[column] != value}
    if not changed:
        return ChangeMade(key, None, environment.generation)
    if "rollout" in changed and changed["rollout"] is None:
        changed["rollout"] = policy.rollout.as_json()  # an environment that had rollouts may have something staged
    leads_back = undoes is not None or not changed.keys() & _DECIDES_WHO_READS
    broken = "" if leads_back or dry_run else freeze_pass(environment, actor, consent, request_id=request_id)
    warnings = frozen_findings(environment) if dry_run and not leads_back else ()
    loss = _loss(_prospect(key, current, policy), consent, dry_run=dry_run)
    rewriting = Rewriting(environment, default=_prospect(key, current, policy).default)
    cases = cases_judged(rewriting, consent, actor, request_id=request_id, dry_run=dry_run)
    hold_told(environment=key, before=environment.hold_reason, after=policy.hold, actor=actor)
    thaw_told(environment=key, before=current.freezes, after=policy.freezes, actor=actor)
    was = {column: held[column] for column in changed}
    for column, value in changed.items():
        setattr(environment, column, value)
    environment.save(update_fields=list(changed))
    if current.rollout.stages and not policy.rollout.stages:
        waiting_promote(environment, environment.generation + 1)  # that of the change, which comes next
    made = _policy_change(
        environment,
        "environment.updated",
        actor,
        request_id,
        message=", ".join(_words(column, was[column], value) for column, value in changed.items()),
        reason="; ".join(filter(None, (reason, broken))),
        detail={"before": was, "after": changed},
        loss=loss,
        dry_run=dry_run,
        undo=Columns(was, changed).as_json(),
        undoes=undoes,
    )
    _cases_store(cases, made, dry_run=dry_run)
    return replace(made, findings=(*warnings, *cases.findings))


@transaction.atomic(durable=True)
def environment_delete(
    *,
    key: str,
    actor: Principal,
    reason: str = "",
    request_id: str = "",
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
) -> Loss:
    """Delete an environment with everything in it; returns what connected clients lose. `dry_run`: only return that.
    Raises NotFound, WriteFrozen, LossRefused, and Conflict for the default environment, which must exist.
    """
    environment = environment_lock(key=key)
    if key == DEFAULT_ENVIRONMENT:
        raise Conflict("The environment 'default' takes every client that no selector claims, and cannot be deleted.")
    if not dry_run:
        freeze_pass(environment, actor, consent, request_id=request_id)
    choices = _choices()
    rest = tuple(choice for choice in choices if choice.key != key)
    loss = _loss(Prospect(key, choices=(choices, rest)), consent, dry_run=dry_run)
    if dry_run:
        return loss
    with maintenance():
        environment.delete()
    environment_forget(environment=key, actor=actor, request_id=request_id)
    audit_record(
        actor=actor,
        verb="environment.deleted",
        subject=key,
        environment=key,
        request_id=request_id,
        detail={
            **({"loss": loss.as_json()} if loss.clients else {}),
            **({"message": reason} if reason else {}),
        },
    )
    return loss


def quarantine_default() -> QuarantinePolicy:
    """The quarantine policy of a new environment: automatic where every client's identity is verified, else as an
    operator says. Unverified, one program could pass for two clients (decisions A7).
    """
    return QuarantinePolicy.AUTOMATIC if settings.PARLEY.ads_auth.facts.verified else QuarantinePolicy.SUGGEST


def environment_default_ensure() -> bool:
    """Create the environment `default`, which allows by default, unless it exists (decisions U1). Returns whether it
    was created now.
    """
    if Environment.objects.filter(key=DEFAULT_ENVIRONMENT).exists():
        return False
    policy = EnvironmentPolicy(default_effect=Effect.ALLOW, quarantine=quarantine_default(), content=OPEN_POLICY)
    environment_create(key=DEFAULT_ENVIRONMENT, policy=policy, actor=SYSTEM, consent=OF_ITSELF)
    return True


def environments_stay(*, keys: Collection[str]) -> None:
    """Lock these environments, so that none can be deleted until the transaction ends. Called before a role or token is
    given for them, which hold only an environment's key. Raises InputInvalid for one that does not exist.

    The order of locks is that of deletions: the person, then environments, then tokens.
    """
    known = environments_locked(keys=keys)
    for key in keys:
        if key not in known:
            raise InputInvalid(f"There is no environment '{key}'. Nothing was changed.")


def environments_locked(*, keys: Collection[str]) -> frozenset[str]:
    """Lock those of these environments that exist, as `environments_stay` does, and return their keys."""
    rows = Environment.objects.select_for_update().filter(key__in=keys).order_by("pk")
    return frozenset(rows.values_list("key", flat=True))


def environment_publish_lock(*, environment_id: int) -> EnvironmentState | None:
    """Lock the environment's row for a transaction that publishes a snapshot; returns the environment, None when it was
    deleted.
    """
    row = Environment.objects.select_for_update().filter(pk=environment_id).first()
    return environment_state(row) if row is not None else None


def environments_publish_lock() -> None:
    """Lock all environments, in one order, so that nobody publishes a snapshot until the transaction ends."""
    list(Environment.objects.select_for_update().order_by("pk").values_list("pk", flat=True))


def environment_publish_fence(*, environment_id: int, generation: int, new_epoch: bool) -> bool:
    """Record that a build of `generation` is published; returns False, and records nothing, where a later generation
    already is (reliability P2).

    Runs inside the transaction that writes the snapshot. `new_epoch`: also add one to the epoch, in the same statement.
    """
    changes: dict[str, object] = {"built_generation": generation}
    if new_epoch:
        changes["epoch"] = models.F("epoch") + 1
    return Environment.objects.filter(pk=environment_id, built_generation__lt=generation).update(**changes) == 1


def _words(column: str, before: object, after: object) -> str:
    """What became of one setting of a policy, in words for lists of changes; with its values before and after where
    they are words.
    """
    name = column.replace("_", " ")
    if column == "hold_reason":
        return f"on hold: {after}" if after else "hold released"
    if column == "freezes":
        return "freezes changed"
    if column == "rollout":
        modes = [settings_stored(value).mode.value for value in (before, after)]
        return f"rollouts: {' → '.join(modes)}" if modes[0] != modes[1] else "settings of rollouts changed"
    if isinstance(after, bool):
        return f"{name} turned {'on' if after else 'off'}"
    return f"{name}: {before} → {after}" if isinstance(after, str) else f"{name} changed"


def _policy_change(  # noqa: PLR0913 - what becomes of one change
    environment: Environment,
    verb: str,
    actor: Principal,
    request_id: str,
    *,
    message: str,
    reason: str,
    undo: Mapping[str, object],
    detail: Mapping[str, object] | None = None,
    loss: Loss,
    dry_run: bool,
    undoes: Undoes | None = None,
) -> ChangeMade:
    """Record the change of a policy that was just written. `verb`: the action's name in the audit log. `undo`: the
    values that take it back. `dry_run`: roll back the policy and the record.
    """
    change = change_start(
        environment=environment,
        kind=ChangeKind.POLICY,
        actor=actor,
        message=message[:1000],
        reason=reason,
        undo=undo,
        undoes=undoes,
        request_id=request_id,
        loss=loss,
    )
    audit_record(
        actor=actor,
        verb=verb,
        subject=environment.key,
        environment=environment.key,
        request_id=request_id,
        detail={**(detail or {}), **({"message": reason} if reason else {})},
    )
    if dry_run:
        transaction.set_rollback(True)
    return ChangeMade(environment.key, change, change.generation, loss=loss)


def _prospect(key: str, before: EnvironmentPolicy, after: EnvironmentPolicy) -> Prospect:
    """What clients could lose by giving the environment `key` the policy `after`: by what it allows by default, and by
    which clients it takes.
    """
    default = after.default_effect if after.default_effect is not before.default_effect else None
    if (before.selectors, before.node_ids) == (after.selectors, after.node_ids):
        return Prospect(key, default=default)
    choices = _choices()
    own = EnvironmentChoice(key, after.selectors, after.node_ids)
    changed = tuple(own if choice.key == key else choice for choice in choices)
    return Prospect(key, default=default, choices=(choices, changed))


def _choices() -> tuple[EnvironmentChoice, ...]:
    return tuple(state.choice for state in environment_list())


def _loss(prospect: Prospect, consent: Consent, *, dry_run: bool) -> Loss:
    """What clients lose by a write, after checking that `consent` accepts it; a dry run skips the check. Raises
    LossRefused.
    """
    return loss_accept(prospect, OF_ITSELF if dry_run else consent)


def _cases_store(cases: CasesJudged, made: ChangeMade, *, dry_run: bool) -> None:
    """Keep how route cases stand after the change; a dry run, which was rolled back by now, keeps nothing."""
    if made.change is not None and not dry_run:
        cases.store(made.change)


def _columns(policy: EnvironmentPolicy) -> dict[str, object]:
    return {
        "selectors": [selector.as_json() for selector in policy.selectors],
        "node_ids": list(policy.node_ids),
        "default_effect": policy.default_effect.value,
        "quarantine": policy.quarantine.value,
        "hold_reason": policy.hold,
        "content": stances_of(policy.content),
        "deep_validation": policy.deep_validation,
        "require_if_match": policy.require_if_match,
        "loss_access_clients": policy.loss_threshold.access_clients,
        "loss_other_percent": policy.loss_threshold.other_percent,
        "rollout": settings_to_store(policy.rollout),
        "freezes": [each.as_json() for each in policy.freezes],
        "review": policy.review.as_json() if policy.review != DEFAULT_REVIEW else {},
    }
