"""Writes the audit log. Called inside the transaction of what it describes: neither exists without the other."""

from collections.abc import Mapping

from controlplane.journal.models import AuditEvent


def audit_record(
    *,
    actor: str,
    verb: str,
    subject: str,
    environment: str = "",
    request_id: str = "",
    detail: Mapping[str, object] | None = None,
) -> None:
    """Append one event. `verb` is `noun.past-tense-verb`, e.g. `quarantine.opened`; `detail` must hold no secret."""
    AuditEvent.objects.create(
        actor=actor,
        verb=verb,
        subject=subject[:1200],
        environment=environment,
        request_id=request_id[:64],
        detail=dict(detail or {}),
    )
