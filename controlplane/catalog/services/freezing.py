"""Refuses writes while the environment is frozen, and those that its review forbids; and tells everybody of one that
breaks the freeze or goes past the review.
"""

from django.utils import timezone

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.freezes import Frozen, WriteFrozen, freezes_stored, frozen_at
from controlplane.catalog.guarding import Consent
from controlplane.catalog.models import Environment
from controlplane.catalog.review import REVIEWED, WriteUnreviewed, review_stored
from controlplane.common.errors import Forbidden
from controlplane.journal.services import audit_record, event_append
from xdscore.findings import Finding, Severity


def frozen_now(environment: Environment) -> Frozen | None:
    """The freeze that holds in the environment, as this process's clock says; None where none holds."""
    return frozen_at(freezes_stored(environment.freezes), timezone.now()) if environment.freezes else None


def freeze_pass(environment: Environment, actor: Principal, consent: Consent, *, request_id: str) -> str:
    """Let a write go on where no freeze holds, or where it is to break one; returns what the message of the change says
    of that, empty for nothing. Called within the transaction of the write, with the environment locked.

    Raises WriteFrozen, and Forbidden where the writer may not break a freeze.
    """
    frozen = frozen_now(environment) if consent.asked else None
    if frozen is None:
        return ""
    role = review_stored(environment.review).break_glass_role
    reason = consent.break_glass.strip()
    if not reason:
        raise WriteFrozen(environment.key, frozen, role)
    _require(actor, role, environment, f"is frozen {frozen.words}")
    _tell("freeze.broken", environment, actor, reason, frozen, request_id=request_id)
    return f"broke the freeze: {reason}"


def review_pass(environment: Environment, actor: Principal, consent: Consent, *, request_id: str) -> str:
    """Let a write of resources, rules or groups go on where the environment asks for no review, where the write is that
    of a change set, or where it is to go past the review; returns and is called as `freeze_pass`.

    Raises WriteUnreviewed, and Forbidden where the writer may not go past the review.
    """
    review = review_stored(environment.review)
    if not review.required or not consent.asked or consent.reviewed:
        return ""
    reason = consent.break_glass.strip()
    if not reason:
        raise WriteUnreviewed(environment.key, review.break_glass_role)
    _require(actor, review.break_glass_role, environment, f"takes {REVIEWED} by a reviewed change set only")
    _tell("review.broken", environment, actor, reason, request_id=request_id)
    return f"went past the review: {reason}"


def barriers_pass(environment: Environment, actor: Principal, consent: Consent, *, request_id: str) -> str:
    """Let a write go on past a freeze and the review, as far as it may; returns and is called as `freeze_pass`. Raises
    what `freeze_pass` and `review_pass` raise.
    """
    passed = (
        freeze_pass(environment, actor, consent, request_id=request_id),
        review_pass(environment, actor, consent, request_id=request_id),
    )
    return "; ".join(filter(None, passed))


def _require(actor: Principal, role: Role, environment: Environment, why: str) -> None:
    if not actor.may(role, environment.key):
        raise Forbidden(
            f"Environment '{environment.key}' {why}. To write nevertheless needs the role {role.value}; {actor.name} "
            "does not have it. Nothing was changed."
        )


def _tell(
    kind: str,
    environment: Environment,
    actor: Principal,
    reason: str,
    frozen: Frozen | None = None,
    *,
    request_id: str,
) -> None:
    """Note in the audit log, and for every channel, that somebody broke a rule of the environment, and why."""
    audit_record(
        actor=actor,
        verb=kind,
        subject=environment.key,
        environment=environment.key,
        request_id=request_id,
        detail={"reason": reason, **({"freeze": frozen.as_json()} if frozen else {})},
    )
    event_append(
        kind=kind,
        environment=environment.key,
        subject=f"environment/{environment.key}",
        payload={"actor": actor.name, "reason": reason, **({"freeze": frozen.freeze.reason} if frozen else {})},
    )


def frozen_findings(environment: Environment) -> tuple[Finding, ...]:
    """A warning for a dry run where the write itself would be refused by a freeze."""
    frozen = frozen_now(environment)
    if frozen is None:
        return ()
    return (Finding(code=WriteFrozen.code, severity=Severity.WARNING, detail=f"It is frozen {frozen.words}."),)


def barrier_findings(environment: Environment) -> tuple[Finding, ...]:
    """Warnings for a dry run of a write of resources, rules or groups where the write itself would be refused by a
    freeze, or by the review.
    """
    frozen = frozen_findings(environment)
    if not review_stored(environment.review).required:
        return frozen
    detail = f"It takes {REVIEWED} by a reviewed change set only: propose this as one."
    return (*frozen, Finding(code=WriteUnreviewed.code, severity=Severity.WARNING, detail=detail))
