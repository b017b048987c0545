"""What people say of a change set before it is published: submit, approve, reject, comment, and take a step back."""

from dataclasses import dataclass

from controlplane.accounts.principal import Principal
from controlplane.accounts.whose import in_one_hand
from controlplane.changesets.machine import Act
from controlplane.changesets.models import ChangeSetRemark
from controlplane.changesets.reading import has_name
from controlplane.changesets.services.locking import Locked, act_upon, tell
from controlplane.changesets.values import MAX_REMARKS, SetState, Verdict
from controlplane.common.errors import Conflict, Forbidden, InputInvalid


@dataclass(frozen=True, slots=True)
class Place:
    """What a comment is about: a resource of the set, and a line of its manifest in YAML; empty and None: the whole."""

    type: str = ""
    name: str = ""
    line: int | None = None


WHOLE = Place()


def change_set_submit(
    *, public_id: str, reason: str = "", version: int | None = None, actor: Principal, request_id: str = ""
) -> bool:
    """Ask others to review a draft; from here on it has a version that they approve. Returns False where it is in
    review already. Raises NotFound and Conflict (it does nothing, it is no draft, it was edited since).
    """

    def submit(locked: Locked) -> bool:
        if not (locked.row.entries.exists() or locked.row.wishes.exists()):
            raise Conflict(
                f"{locked.name} does nothing yet. Add resources, rules or groups to write or to delete, then submit it."
            )
        locked.row.version += 1
        tell(locked, "submitted", actor=actor.name, reason=reason)
        return True

    return act_upon(public_id, Act.SUBMIT, submit, actor=actor, reason=reason, request_id=request_id, version=version)


def change_set_approve(
    *, public_id: str, reason: str = "", version: int | None = None, actor: Principal, request_id: str = ""
) -> bool:
    """Approve a change set as it is. `version`: the version that was looked at; None: the present one. Returns False
    where the same person approved it already. Raises NotFound, Conflict (it is not in review, it was edited since) and
    Forbidden (they made or edited it, and the environment does not let them approve it).
    """

    def approve(locked: Locked) -> bool:
        _check_other_eyes(locked, actor)
        given = ChangeSetRemark.objects.filter(
            change_set=locked.row, version=locked.row.version, verdict=Verdict.APPROVED.value
        )
        if any(in_one_hand(str(actor.id), principal) for principal in given.values_list("principal", flat=True)):
            return False
        _remark(locked, Verdict.APPROVED, actor, reason)
        locked.read_again()
        if locked.standing.stored is SetState.REVIEW and locked.standing.is_approved:
            tell(locked, "approved", actor=actor.name, reason=reason)
        return True

    return act_upon(public_id, Act.APPROVE, approve, actor=actor, reason=reason, request_id=request_id, version=version)


def change_set_reject(
    *, public_id: str, reason: str = "", version: int | None = None, actor: Principal, request_id: str = ""
) -> bool:
    """Say no to a change set, with why. Returns False where it is rejected already. Raises NotFound, Conflict and
    InputInvalid (without a reason).
    """
    if not reason:
        raise InputInvalid("Say why it is turned down: its author has to know what to mend. Nothing was changed.")

    def reject(locked: Locked) -> bool:
        _remark(locked, Verdict.REJECTED, actor, reason)
        tell(locked, "rejected", actor=actor.name, reason=reason)
        return True

    return act_upon(public_id, Act.REJECT, reject, actor=actor, reason=reason, request_id=request_id, version=version)


def change_set_cancel(
    *, public_id: str, reason: str = "", version: int | None = None, actor: Principal, request_id: str = ""
) -> bool:
    """Take the last step back: a schedule is dropped; what was submitted, approved or rejected becomes a draft. Returns
    False where it is a draft already. Raises NotFound, and Conflict where it is published.
    """
    return act_upon(
        public_id,
        Act.CANCEL,
        lambda _locked: True,
        actor=actor,
        reason=reason,
        request_id=request_id,
        version=version,
    )


def change_set_comment(
    *,
    public_id: str,
    reason: str,
    place: Place = WHOLE,
    version: int | None = None,
    actor: Principal,
    request_id: str = "",
) -> bool:
    """Say something about a change set. `version`: the version that was looked at; None: the present one. Raises
    NotFound, InputInvalid (no text; a resource that it does not have) and Conflict (too many were said; it was edited
    since).
    """
    if not reason:
        raise InputInvalid("A comment needs a text. Nothing was changed.")

    def comment(locked: Locked) -> bool:
        if place.name and not has_name(locked.row, (place.type, place.name)):
            raise InputInvalid(f"{locked.name} has no {place.type} '{place.name}'. Nothing was changed.")
        _remark(locked, Verdict.COMMENT, actor, reason, place)
        return True

    return act_upon(public_id, Act.COMMENT, comment, actor=actor, reason=reason, request_id=request_id, version=version)


def _remark(locked: Locked, verdict: Verdict, actor: Principal, text: str, place: Place = WHOLE) -> None:
    remarks = ChangeSetRemark.objects.filter(change_set=locked.row)
    if verdict is Verdict.COMMENT and remarks.count() >= MAX_REMARKS:
        raise Conflict(f"{locked.name} has {MAX_REMARKS:,} comments; no more are kept. Nothing was changed.")
    remarks.create(
        change_set=locked.row,
        version=locked.row.version,
        verdict=verdict.value,
        author=actor.name,
        principal=str(actor.id),
        text=text,
        type=place.type,
        name=place.name,
        line=place.line,
    )


def _check_other_eyes(locked: Locked, actor: Principal) -> None:
    """Raise Forbidden where the one who approves made or edited the set, unless the environment allows that."""
    if locked.standing.review.self_approval:
        return
    for author in locked.row.authors.all():
        if author.name == actor.name or in_one_hand(str(actor.id), author.principal):
            raise Forbidden(
                f"You made or edited {locked.row!s}, and environment '{locked.environment.key}' asks for other eyes: "
                "somebody else has to approve it. Nothing was changed."
            )
