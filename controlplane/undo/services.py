"""The undo of any change: one new change that says which one it takes back."""

from dataclasses import dataclass

from controlplane.access.selectors import access_undo_way
from controlplane.access.services import access_undo, default_effect_check
from controlplane.access.together import access_back
from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.models import Change
from controlplane.catalog.rollbacks import undone_by
from controlplane.catalog.selectors import change_get
from controlplane.catalog.services import (
    ALONE,
    resources_undo,
    resources_undo_way,
    settings_before,
    settings_undo,
    settings_undo_way,
)
from controlplane.catalog.undoing import CREATED, Undoes, Way, columns_of, quarantines_of, wrote_both
from controlplane.common.errors import Conflict
from controlplane.incidents.services import quarantine_undo, quarantine_undo_way
from controlplane.undo.rights import OF_RESOURCES, undo_require
from xdscore.findings import Finding


@dataclass(frozen=True, slots=True)
class Undone:
    """The result of an undo. `change`: the public id of the change that took the other one back; `already`: whether
    that was made before, so that nothing was changed now.
    """

    change: str
    already: bool = False
    findings: tuple[Finding, ...] = ()


def change_undo(
    *, public_id: str, reason: str, actor: Principal, request_id: str = "", consent: Consent = NO_CONSENT
) -> Undone:
    """Take the change with this id back, by a new change. Where that was done before, the earlier undo is returned.

    Raises NotFound; Forbidden; Conflict when something that the change wrote was written again since (with every such
    thing, by whom and in which change) or the change is of a sort that cannot be undone; LossRefused; and InputInvalid
    when today's rules refuse what was there before.
    """
    change = change_get(public_id=public_id)
    undo_require(actor, change)
    if (before := _undo_of(change)) is not None:
        return before
    try:
        made = _take_back(change, Undoes(str(change.public_id), reason), actor, request_id, consent)
    except Conflict:
        # Somebody else may have taken it back at the same moment.
        if (before := _undo_of(change)) is not None:
            return before
        raise
    if not made.change:
        raise Conflict(
            f"Nothing of change {public_id[:8]} is left to take back: everything is what it was before it. "
            "Nothing was changed."
        )
    return made


def undo_way(*, change: Change) -> Way:
    """What undoing the change would do now, or every reason why it cannot be undone now. Raises Conflict for a change
    of a sort that can never be undone.
    """
    if change.kind in OF_RESOURCES:
        way = resources_undo_way(change=change)
        return way.beside(access_undo_way(change=change)) if wrote_both(change.undo) else way
    if change.kind == ChangeKind.ACCESS.value:
        return access_undo_way(change=change)
    if moved := quarantines_of(change.undo):
        return quarantine_undo_way(environment_key=change.environment.key, moved=moved)
    if (columns := columns_of(change.undo)) is not None:
        return settings_undo_way(change=change, columns=columns)
    raise _never(change)


def _take_back(change: Change, undoes: Undoes, actor: Principal, request_id: str, consent: Consent) -> Undone:
    if change.kind in OF_RESOURCES:
        through = actor.may(Role.OPERATOR, change.environment.key)  # who may release a hold may go through it
        made = resources_undo(
            change=change,
            undoes=undoes,
            actor=actor,
            through_hold=through,
            beside=access_back(change=change, actor=actor, request_id=request_id) if wrote_both(change.undo) else ALONE,
            request_id=request_id,
            consent=consent,
        )
        return Undone(made.change_id, findings=made.findings)
    if change.kind == ChangeKind.ACCESS.value:
        written = access_undo(change=change, undoes=undoes, actor=actor, request_id=request_id, consent=consent)
        return Undone(written.change_id, findings=written.findings)
    if moved := quarantines_of(change.undo):
        key = change.environment.key
        made = quarantine_undo(
            environment_key=key, moved=moved, undoes=undoes, actor=actor, request_id=request_id, consent=consent
        )
        return Undone(made.change_id)
    if (columns := columns_of(change.undo)) is not None:
        now, before = settings_before(change=change, columns=columns)
        if now.default_effect is not before.default_effect:
            default_effect_check(environment_key=change.environment.key, default=before.default_effect)
        made = settings_undo(
            change=change, columns=columns, undoes=undoes, actor=actor, request_id=request_id, consent=consent
        )
        return Undone(made.change_id)
    raise _never(change)


def _undo_of(change: Change) -> Undone | None:
    """The undo that took the change back and is still in force; None where the change is in force."""
    by = undone_by(environment_key=change.environment.key, changes=[change]).get(change.generation)
    return Undone(str(by.public_id), already=True) if by is not None and by.undoes == str(change.public_id) else None


def _never(change: Change) -> Conflict:
    name, key = str(change.public_id)[:8], change.environment.key
    if change.undo == CREATED:
        return Conflict(
            f"Change {name} made environment '{key}'. Without it the environment and its history would be gone: delete "
            "the environment if that is meant. Nothing was changed."
        )
    if change.kind == ChangeKind.ROLLBACK.value:
        return Conflict(
            f"Change {name} is what a rollout took back, because clients refused it. Release the quarantine of what a "
            "later rollout is to try again, or write it anew. Nothing was changed."
        )
    if change.kind == ChangeKind.QUARANTINE.value:
        return Conflict(
            f"Change {name} does not say what it found: it follows from what clients answered, or is older than such "
            "notes. Quarantine or release the revision in its incident. Nothing was changed."
        )
    return Conflict(
        f"Change {name} does not say what it found: it is older than such notes. Set the policy you want on the "
        f"environment's page; the audit log has what it was. Nothing was changed."
    )
