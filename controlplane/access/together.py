"""Rules and groups that one change writes together with resources: what a change set holds of them, and the undo of
such a change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from controlplane.access.planning import AccessPlan, access_planned, table_of
from controlplane.access.review import rules_shadowed
from controlplane.access.rows import edits_record, rows_write
from controlplane.access.selectors import access_state, access_undo_way, edits_of_change
from controlplane.access.steps import AccessState
from controlplane.access.trying import broken_refuse, cases_tried
from controlplane.access.undoing import restored_by
from controlplane.access.values import Wish
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.services import Aside, Beside, Tables
from controlplane.common.errors import InputInvalid
from controlplane.common.principal_ids import Actor
from xdscore.access import Effect
from xdscore.findings import Finding, has_errors
from xdscore.limits import Limits


@dataclass(frozen=True, slots=True)
class AccessForeseen:
    """What wishes about rules and groups would do now. `tables`: the rules before and after them; None where they
    change nothing, or cannot be, which an ERROR among the findings tells.
    """

    tables: Tables | None
    findings: tuple[Finding, ...]


def access_foresee(*, environment_key: str, wishes: Sequence[Wish], default: Effect) -> AccessForeseen:
    """What these wishes would do now; stores nothing. `default`: the environment's default effect."""
    if not wishes:
        return AccessForeseen(None, ())
    now = access_state(environment_key=environment_key)
    planned = access_planned(wishes, now, _limits())
    if planned.findings or not planned.steps:
        return AccessForeseen(None, planned.findings)
    before, after = table_of(now, default), table_of(planned.after, default)
    tried = cases_tried(before, after, environment_key, planned.rule_called)
    findings = (*tried, *(said for _, said in rules_shadowed(after, planned.rule_called)))
    return AccessForeseen(None if has_errors(findings) else (before, after), findings)


def access_beside(*, wishes: Sequence[Wish], actor: Actor, request_id: str = "") -> Beside:
    """What a change writes beside resources where it is to do what these wishes say. Once the environment is locked,
    raises InputInvalid with everything that speaks against them, and Conflict where a blocking case would break.
    """

    def beside(environment: Environment) -> Aside | None:
        now = access_state(environment_key=environment.key)
        planned = access_planned(wishes, now, _limits())
        if planned.findings:
            raise InputInvalid(
                "Access rules or client groups cannot become what is asked. Nothing was changed.",
                findings=planned.findings,
            )
        return _aside(environment, now, planned, actor, request_id)

    return beside


def access_back(*, change: Change, actor: Actor, request_id: str = "") -> Beside:
    """What the undo of this change writes beside resources: each rule and group that it wrote becomes what it was. Once
    the environment is locked, raises Conflict naming everything that stands in the way, or the blocking cases that
    would break.
    """

    def beside(environment: Environment) -> Aside | None:
        access_undo_way(change=change).go(str(change.public_id))
        now = access_state(environment_key=environment.key)
        steps = restored_by(edits_of_change(change_id=str(change.public_id)))
        return _aside(environment, now, AccessPlan(steps, (), now.after(steps), {}), actor, request_id)

    return beside


def _aside(
    environment: Environment, now: AccessState, planned: AccessPlan, actor: Actor, request_id: str
) -> Aside | None:
    if not planned.steps:
        return None
    default = Effect(environment.default_effect)
    before, after = table_of(now, default), table_of(planned.after, default)
    tried = broken_refuse(before, after, environment.key, planned.rule_called)

    def store(change: Change) -> None:
        edits_record(change, rows_write(environment, planned.steps), actor=actor, request_id=request_id)

    shadowed = (said for _, said in rules_shadowed(after, planned.rule_called))
    return Aside((before, after), store, (*tried, *shadowed))


def _limits() -> Limits:
    limits: Limits = settings.PARLEY.limits
    return limits
