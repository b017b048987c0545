"""Refuses writes while the environment is frozen, and tells everybody of one that breaks the freeze."""

from django.utils import timezone

from controlplane.accounts.principal import Principal
from controlplane.catalog.freezes import Frozen, WriteFrozen, freezes_stored, frozen_at, review_stored
from controlplane.catalog.guarding import Consent
from controlplane.catalog.models import Environment
from controlplane.common.errors import Forbidden
from controlplane.journal.services import audit_record, event_append
from xdscore.findings import Finding, Severity


def frozen_now(environment: Environment) -> Frozen | None:
    """The freeze that holds in the environment, as this process's clock says; None where none holds."""
    return frozen_at(freezes_stored(environment.freezes), timezone.now()) if environment.freezes else None


def freeze_pass(environment: Environment, actor: Principal, consent: Consent, *, request_id: str) -> str:
    """Let a write go on where no freeze holds, or where it is to break one; returns the reason for which it breaks one,
    empty for none. Called within the transaction of the write, with the environment locked.

    Raises WriteFrozen, and Forbidden where the writer may not break a freeze.
    """
    frozen = frozen_now(environment) if consent.asked else None
    if frozen is None:
        return ""
    role = review_stored(environment.review).break_glass_role
    reason = consent.break_glass.strip()
    if not reason:
        raise WriteFrozen(environment.key, frozen, role)
    if not actor.may(role, environment.key):
        raise Forbidden(
            f"Environment '{environment.key}' is frozen {frozen.words}. To write nevertheless needs the role "
            f"{role.value}; {actor.name} does not have it. Nothing was changed."
        )
    audit_record(
        actor=actor,
        verb="freeze.broken",
        subject=environment.key,
        environment=environment.key,
        request_id=request_id,
        detail={"reason": reason, "freeze": frozen.as_json()},
    )
    event_append(
        kind="freeze.broken",
        environment=environment.key,
        subject=f"environment/{environment.key}",
        payload={"actor": actor.name, "reason": reason, "freeze": frozen.freeze.reason},
    )
    return reason


def broken_words(reason: str) -> str:
    """What the message of a change says of the freeze that it broke for this reason; empty for none."""
    return f"broke the freeze: {reason}" if reason else ""


def frozen_findings(environment: Environment) -> tuple[Finding, ...]:
    """A warning for a dry run where the write itself would be refused by a freeze."""
    frozen = frozen_now(environment)
    if frozen is None:
        return ()
    error = WriteFrozen(environment.key, frozen, review_stored(environment.review).break_glass_role)
    return (Finding(code=error.code, severity=Severity.WARNING, detail=f"It is frozen {frozen.words}."),)
