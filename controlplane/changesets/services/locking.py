"""What every write of a change set starts and ends with: its locks, how it stands, and the note in the audit log."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.catalog.models import Environment
from controlplane.catalog.services import environment_lock
from controlplane.changesets.machine import Act, Standing, after, check, is_done
from controlplane.changesets.models import ChangeSet
from controlplane.changesets.reading import holds_of, row_of, standings_of
from controlplane.changesets.rights import contents_check
from controlplane.changesets.values import SetState
from controlplane.clients.clock import database_now
from controlplane.common.errors import Conflict, NotFound
from controlplane.common.principal_ids import Actor
from controlplane.journal.services import audit_record, event_append

PAST: Final = {
    Act.EDIT: "edited",
    Act.SUBMIT: "submitted",
    Act.APPROVE: "approved",
    Act.REJECT: "rejected",
    Act.SCHEDULE: "scheduled",
    Act.PUBLISH: "published",
    Act.CANCEL: "cancelled",
    Act.DELETE: "deleted",
    Act.COMMENT: "commented",
}


@dataclass(slots=True)
class Locked:
    """A change set while its environment and its row are locked, and how it stands."""

    environment: Environment
    row: ChangeSet
    standing: Standing

    @property
    def name(self) -> str:
        """What people call it, at the beginning of a sentence."""
        return f"{str(self.row).capitalize()} ('{self.row.title}')"

    def read_again(self) -> None:
        """Find out anew how it stands, after something of it was written."""
        self.standing = standing_of(self.row)


def standing_of(row: ChangeSet) -> Standing:
    """How this change set stands now, by the clock of the database server."""
    return standings_of([row], database_now())[row.pk]


def lock(public_id: str) -> Locked:
    """Lock the environment of a change set, then the change set, and see how it stands. Called within a transaction.
    Raises NotFound.
    """
    environment = environment_lock(key=row_of(public_id).environment.key)
    row = ChangeSet.objects.select_for_update().filter(public_id=public_id).first()
    if row is None:
        raise NotFound(f"There is no change set '{public_id}' any more.")
    row.environment = environment
    return Locked(environment, row, standing_of(row))


def act_upon(
    public_id: str,
    act: Act,
    do: Callable[[Locked], bool],
    *,
    actor: Principal,
    reason: str,
    request_id: str,
    version: int | None = None,
) -> bool:
    """Do something with a change set under its locks, and note it; returns whether that changed anything. `do` writes
    what the act needs beside the new state, and returns False where nothing is to change after all. `version`: the
    version that the caller looked at; None: any.

    Raises NotFound, Forbidden, and Conflict where the act is not possible now or the change set was edited since.
    """
    with transaction.atomic(durable=True):
        locked = lock(public_id)
        check_rights(locked, act, actor)
        if is_done(act, locked.standing):
            return False
        check_version(locked, version)
        check(act, locked.standing, locked.name)
        if not do(locked):
            return False
        locked.read_again()
        state_set(locked.row, after(act, locked.standing))
        note(locked, PAST[act], actor=actor, reason=reason, request_id=request_id)
    return True


def check_rights(locked: Locked, act: Act, actor: Principal) -> None:
    """Raise Forbidden unless the actor's roles reach all that the change set holds."""
    contents_check(actor, act, locked.environment.key, holds_of(locked.row))


def check_version(locked: Locked, version: int | None) -> None:
    """Raise Conflict where a change set was edited or submitted since the caller looked at this version of it."""
    if version is not None and version != locked.row.version:
        raise Conflict(
            f"{locked.name} is at version {locked.row.version}, and this is about version {version}. Look at it again. "
            "Nothing was changed."
        )


def state_set(row: ChangeSet, state: SetState) -> None:
    """Save the row with this state; what it waited for is over, and no schedule outlives its state."""
    row.state, row.waits_for = state.value, ""
    if state is not SetState.SCHEDULED:
        row.scheduled_by, row.scheduler, row.accept_loss = "", "", 0
    row.save()


def note(locked: Locked, what: str, *, actor: Actor, reason: str = "", request_id: str, **more: object) -> None:
    """Note in the audit log what was done with a change set, in a verb's past tense such as `approved`."""
    row = locked.row
    audit_record(
        actor=actor,
        verb=f"change_set.{what}",
        subject=f"change_set/{row.public_id}",
        environment=locked.environment.key,
        request_id=request_id,
        detail={"title": row.title, "version": row.version, **({"reason": reason} if reason else {}), **more},
    )


def tell(locked: Locked, what: str, *, actor: str, reason: str = "") -> None:
    """Append an event about a change set, of which channels are told. `what`: the event's kind after the dot."""
    row = locked.row
    event_append(
        kind=f"change_set.{what}",
        environment=locked.environment.key,
        subject=f"change_set/{row.public_id}",
        payload={"change_set": str(row.public_id), "title": row.title, "actor": actor, "reason": reason},
    )
