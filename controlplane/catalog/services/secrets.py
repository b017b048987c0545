"""Keeps who looked at which secret: the audit log has every read of one, and never its value."""

from collections.abc import Sequence

from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.journal.services import audit_record

_SHOWN = 1_000


@transaction.atomic
def secrets_read_record(*, environment_key: str, names: Sequence[str], actor: Principal, request_id: str = "") -> None:
    """Record in the audit log that somebody was shown these secrets, without their values."""
    audit_record(
        actor=actor,
        verb="secret.read",
        subject=names[0] if len(names) == 1 else f"{len(names)} secrets",
        environment=environment_key,
        request_id=request_id,
        detail={"names": list(names[:_SHOWN])},
    )
