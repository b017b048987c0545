"""What every write of the catalogue starts and ends with: the environment's lock, its next generation, the hint that a
build is due.
"""

from collections.abc import Mapping

import structlog
from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.broker.hints import hint_build
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.guarding import NOTHING_LOST, Loss
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.undoing import Undoes
from controlplane.common.errors import NotFound
from controlplane.journal.services import audit_record

log = structlog.get_logger(__name__)

_MAX_MESSAGE_CHARS = 1_000  # the column


def environment_lock(*, key: str) -> Environment:
    """Lock the environment's row and read it: always the first lock a write takes, so that writes never deadlock.
    Raises NotFound.

    On SQLite the transaction itself is the lock (IMMEDIATE, dependencies.md 6).
    """
    environment = Environment.objects.select_for_update().filter(key=key).first()
    if environment is None:
        raise NotFound(f"There is no environment '{key}'.")
    return environment


def change_start(  # noqa: PLR0913 - what a change says of itself
    *,
    environment: Environment,
    kind: ChangeKind,
    actor: Principal,
    message: str,
    reason: str = "",
    owner: str = "",
    back_to: int | None = None,
    undo: Mapping[str, object] | None = None,
    undoes: Undoes | None = None,
    request_id: str = "",
    loss: Loss = NOTHING_LOST,
) -> Change:
    """Start the change that the following writes belong to, at the environment's next generation; once it is committed
    it is in the log, and the builder is hinted. `back_to`: the generation that a rollback goes back to. `undo`: what
    takes it back, where its revisions and access edits do not tell (`catalog.undoing`). `undoes`: the change that it
    takes back, which its message names. `loss`: what connected clients lose by it. `reason`: why, in the words of
    whoever writes; it stands behind `message`, which says what was written and gives way where both are too long.
    """
    environment.generation += 1
    environment.save(update_fields=["generation"])
    environment_id = environment.pk
    transaction.on_commit(lambda: hint_build(environment_id))
    change = Change.objects.create(
        environment=environment,
        generation=environment.generation,
        kind=kind.value,
        author=actor.name,
        principal=str(actor.id),
        message=undoes.message if undoes is not None else _message(message, reason),
        owner=owner,
        back_to=back_to,
        undo=dict(undo) if undo else None,
        undoes=undoes.change if undoes is not None else "",
        request_id=request_id,
        loss=(loss.own or loss).as_json() if loss.clients else None,
    )
    transaction.on_commit(lambda: _tell(change, environment.key))
    if undoes is not None:
        audit_record(
            actor=actor,
            verb="change.undone",
            subject=undoes.change,
            environment=environment.key,
            request_id=request_id,
            detail={"by": str(change.public_id), "reason": undoes.reason},
        )
    return change


def _message(what: str, why: str) -> str:
    """The message of a change, for lists of changes: what was written, then why, within the longest message."""
    if not why:
        return what
    room = max(_MAX_MESSAGE_CHARS - len(why) - 2, 0)
    return f"{what[:room]}: {why}"[-_MAX_MESSAGE_CHARS:]


def _tell(change: Change, environment_key: str) -> None:
    """Log that the change was saved, with the ids by which later log lines name it."""
    log.info(
        "change.saved",
        environment=environment_key,
        change=str(change.public_id),
        request_id=change.request_id,
        generation=change.generation,
        kind=change.kind,
        principal=change.principal,
    )
