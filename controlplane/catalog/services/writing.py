"""What every write of the catalogue starts and ends with: the environment's lock, its next generation, the hint that a
build is due.
"""

from collections.abc import Mapping, Sequence

import structlog
from django.db import transaction

from controlplane.broker.hints import hint_build
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.guarding import NOTHING_LOST, Loss
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.undoing import Undoes
from controlplane.catalog.values import finding_to_json
from controlplane.common.errors import NotFound
from controlplane.common.principal_ids import Actor
from controlplane.journal.answers import effect_note
from controlplane.journal.services import audit_record
from xdscore.findings import Finding

log = structlog.get_logger(__name__)

_MAX_MESSAGE_CHARS = 1_000  # the column
_MAX_FINDINGS = 1_000


def environment_lock(*, key: str) -> Environment:
    """Lock the environment's row and read it: the first lock of every write, so that two writes never wait for each
    other. Raises NotFound.

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
    actor: Actor,
    message: str,
    reason: str = "",
    owner: str = "",
    back_to: int | None = None,
    undo: Mapping[str, object] | None = None,
    undoes: Undoes | None = None,
    request_id: str = "",
    loss: Loss = NOTHING_LOST,
    findings: Sequence[Finding] = (),
) -> Change:
    """Create the change that the following writes belong to, at the environment's next generation. Once the transaction
    commits, the change is logged and workers are hinted to build.

    `message`: what is written; `reason`: why, in the words of whoever writes. Together they are the change's message,
    in which `message` is cut where both are too long.
    `back_to`: of a rollback, the generation to go back to.
    `undo`: the values that take the change back, where revisions and access edits do not hold them (`catalog.undoing`).
    `undoes`: the change that this one takes back.
    `loss`: what connected clients lose by it.
    `findings`: what is to be known of it that no revision says; the first 1,000 are kept.
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
        findings=[finding_to_json(each) for each in findings[:_MAX_FINDINGS]],
    )
    effect_note(change=str(change.public_id))
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
    """The message of a change, for lists of changes: what was written, then why; cut to the most characters that a
    message may have.
    """
    if not why:
        return what
    room = max(_MAX_MESSAGE_CHARS - len(why) - 2, 0)
    return f"{what[:room]}: {why}"[-_MAX_MESSAGE_CHARS:]


def _tell(change: Change, environment_key: str) -> None:
    """Log that the change was saved, with the ids of the change and its request."""
    log.info(
        "change.saved",
        environment=environment_key,
        change=str(change.public_id),
        request_id=change.request_id,
        generation=change.generation,
        kind=change.kind,
        principal=change.principal,
    )
