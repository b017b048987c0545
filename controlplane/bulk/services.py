"""Does one thing with many resources: all of them or none, by one change."""

from controlplane.accounts.principal import Principal, Role
from controlplane.bulk.values import QUARANTINES, Bulk, BulkAct, bulk_check, keys_of
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.limiting import write_check
from controlplane.catalog.marking import Mark
from controlplane.catalog.rights import require
from controlplane.catalog.services import change_apply, change_plan, earlier_parsed
from controlplane.catalog.standing import heads_of
from controlplane.catalog.values import ChangeMade, ChangePlanned, Edit, Put
from controlplane.common.errors import InputInvalid, PreconditionFailed
from controlplane.incidents.services import revisions_quarantine, revisions_release
from xdscore.findings import Finding, Severity


def bulk_apply(
    *,
    environment_key: str,
    bulk: Bulk,
    actor: Principal,
    message: str = "",
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade:
    """Do it. `message`: of the change; empty: what is done, in words.

    Raises Forbidden (with each resource that the actor may not write), NotFound, PreconditionFailed (with each that was
    written since it was chosen), InputInvalid, InputTooLarge, LossRefused, WriteFrozen, WriteUnreviewed and Conflict.
    """
    if bulk.act in QUARANTINES:
        return _quarantine(environment_key, bulk, actor, request_id, consent)
    return change_apply(
        environment_key=environment_key,
        edits=bulk_edits(environment_key=environment_key, bulk=bulk, actor=actor),
        marks=_marks(bulk),
        actor=actor,
        message=message or bulk.words,
        request_id=request_id,
        consent=consent,
    )


def bulk_plan(*, environment_key: str, bulk: Bulk, actor: Principal) -> ChangePlanned:
    """What `bulk_apply` would do now, without doing it. Raises what that raises, except LossRefused, WriteFrozen and
    WriteUnreviewed; and InputInvalid for quarantine and release, of which nothing is known beforehand.
    """
    if bulk.act in QUARANTINES:
        raise InputInvalid(f"The act '{bulk.act.value}' cannot be tried without doing it. Nothing was changed.")
    return change_plan(
        environment_key=environment_key,
        edits=bulk_edits(environment_key=environment_key, bulk=bulk, actor=actor),
        marks=_marks(bulk),
        asker=actor,
    )


def bulk_edits(*, environment_key: str, bulk: Bulk, actor: Principal) -> tuple[Edit, ...]:
    """The edits of contents by which it is done; none for owners and labels. Raises Forbidden, NotFound, InputInvalid
    and InputTooLarge.
    """
    bulk_check(bulk)
    if bulk.act is BulkAct.DELETE:
        return bulk.deletions
    if bulk.act is not BulkAct.RESTORE:
        return ()
    # Before anything is told of their revisions.
    write_check(actor, environment_key, (Role.EDITOR,), writes=dict.fromkeys(keys_of(bulk.chosen)))
    earlier = earlier_parsed(environment_key=environment_key, keys=keys_of(bulk.chosen))
    return tuple(Put(earlier[each.key], each.expect) for each in bulk.chosen)


def _quarantine(environment_key: str, bulk: Bulk, actor: Principal, request_id: str, consent: Consent) -> ChangeMade:
    """Put the newest revision of each resource into quarantine, or release it."""
    bulk_check(bulk)
    require(actor, Role.OPERATOR, environment_key)
    revisions = _newest(environment_key, bulk)
    if bulk.act is BulkAct.RELEASE:
        return revisions_release(
            environment_key=environment_key,
            revisions=revisions,
            reason=bulk.reason,
            actor=actor,
            request_id=request_id,
        )
    return revisions_quarantine(
        environment_key=environment_key,
        revisions=revisions,
        reason=bulk.reason,
        actor=actor,
        request_id=request_id,
        consent=consent,
    )


def _newest(environment_key: str, bulk: Bulk) -> list[tuple[str, str, int]]:
    """The newest revision of each resource, which is the one that was seen. Raises PreconditionFailed with each that is
    another by now, and NotFound. What is written between this look and the lock is found there.
    """
    keys = keys_of(bulk.chosen)
    heads = heads_of(environment_key=environment_key, keys=keys)
    found, wrong = [], []
    for each in bulk.chosen:
        head = heads.get(each.key)
        if head is not None and each.revision in (None, head.revision):
            found.append((*each.key, head.revision))
            continue
        now = "is not there" if head is None else f"is at r{head.revision} by now"
        said = f"The {each.kind.word} '{each.name}' {now}."
        wrong.append(Finding(PreconditionFailed.code, Severity.ERROR, said).about(*each.key))
    if wrong:
        raise PreconditionFailed(
            f"{len(wrong)} of {len(keys)} resources are not as they were when they were chosen. Nothing was changed.",
            etag="",
            findings=tuple(wrong),
        )
    return found


def _marks(bulk: Bulk) -> tuple[Mark, ...]:
    return bulk.marks if bulk.act in (BulkAct.OWNER, BulkAct.LABELS) else ()
