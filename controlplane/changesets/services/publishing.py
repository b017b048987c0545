"""Publishes change sets: now, or at their time. Exactly once: the change and the state `published` are one transaction.

Whatever a process that dies leaves behind is what the database says; another one goes on from there. So a schedule is a
row that the sweeper looks at each second, and nothing else.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Q

from controlplane.access.together import access_beside, access_foresee
from controlplane.access.values import Wish
from controlplane.accounts.principal import SYSTEM, Principal
from controlplane.accounts.selectors import principal_by_id
from controlplane.catalog.freezes import WriteFrozen
from controlplane.catalog.guarding import NO_CONSENT, CasesBroken, Consent, LossRefused
from controlplane.catalog.services import ALONE, Prepared, Terms, change_plan, change_write, prepare
from controlplane.catalog.services.freezing import frozen_now
from controlplane.catalog.values import ChangeMade
from controlplane.changesets.machine import Act, check, is_done
from controlplane.changesets.models import ChangeSet, ChangeSetChange
from controlplane.changesets.reading import EntriesRead, entries_read, row_of
from controlplane.changesets.rights import may
from controlplane.changesets.services.locking import (
    PAST,
    Locked,
    act_upon,
    check_rights,
    check_version,
    lock,
    note,
    standing_of,
    state_set,
    tell,
)
from controlplane.changesets.values import OPEN_STATES, SetState
from controlplane.clients.clock import database_now
from controlplane.common.errors import Conflict, InputInvalid, OperatorError
from controlplane.common.principal_ids import Actor, Named, principal_id_of
from controlplane.database.failpoints import failpoint
from controlplane.oidc.sign_ins import principal_recheck
from xdscore.findings import has_errors

log = structlog.get_logger(__name__)

_NO_TERMS: Final = Terms()
_OVER_HOLD: Final = Terms(overrides_hold=True)
_TRIES: Final = 3
_MAX_WAITS_CHARS: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Ready:
    """What a change set does, the edits of resources prepared for the write, at the version at which it was read."""

    version: int
    prepared: tuple[Prepared, ...]
    wishes: tuple[Wish, ...]


def change_set_publish(
    *,
    public_id: str,
    reason: str = "",
    version: int | None = None,
    actor: Principal,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade | None:
    """Write what a change set holds, as one change; returns it, or None where the set was published already. `version`:
    the version that was looked at; None: any.

    Raises NotFound, Conflict (the set is stale, expired or waits for review; the environment is on hold), WriteFrozen,
    LossRefused, Forbidden and InputInvalid (contents that are not allowed today).
    """
    for _ in range(_TRIES):
        ready = _ready(row_of(public_id))
        with transaction.atomic(durable=True):
            locked = lock(public_id)
            check_rights(locked, Act.PUBLISH, actor)
            if is_done(Act.PUBLISH, locked.standing):
                return None
            check_version(locked, version)
            check(Act.PUBLISH, locked.standing, locked.name)
            if locked.row.version == ready.version:
                return _publish(locked, ready, actor, consent, reason=reason, request_id=request_id)
    raise Conflict("The change set is edited at this moment. Look at it again. Nothing was changed.")


def change_set_schedule(
    *,
    public_id: str,
    not_before: datetime | None = None,
    reason: str = "",
    version: int | None = None,
    actor: Principal,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> bool:
    """Let a change set be published by itself from `not_before` on, or from its own time on where that is None; by the
    rights that `actor` has then. Returns False where it is scheduled so already.

    Raises NotFound, InputInvalid (no time, contents that are not allowed), LossRefused (`consent` does not accept what
    clients would lose now), CasesBroken (route cases would not hold any more) and Conflict.
    """
    row = row_of(public_id)
    read = _valid(row)
    foreseen = access_foresee(
        environment_key=read.environment,
        wishes=[each.wish for each in read.wishes],
        default=read.policy.default_effect,
    )
    if has_errors(foreseen.findings):
        raise InputInvalid(
            "Rules or groups of the change set cannot become what it says. Nothing was changed.",
            findings=foreseen.findings,
        )
    planned = change_plan(
        environment_key=read.environment,
        edits=read.edits,
        asker=actor,
        terms=_OVER_HOLD,
        tables=foreseen.tables,
    )
    if planned.loss.asks and planned.loss.clients > consent.accept_loss:
        raise LossRefused(planned.loss, row.environment.key)
    if planned.broken:
        raise CasesBroken(planned.broken, planned.findings)

    def schedule(locked: Locked) -> bool:
        row = locked.row
        at = not_before or row.not_before
        if at is None:
            raise InputInvalid("Say from when on it may be published ('not_before'). Nothing was changed.")
        if row.expires is not None and row.expires <= at:
            raise InputInvalid(
                f"It expires at {row.expires:%Y-%m-%d %H:%M} UTC, which is not after that time. Nothing was changed."
            )
        wanted = (SetState.SCHEDULED.value, at, str(actor.id), consent.accept_loss, locked.environment.lineage)
        if wanted == (row.state, row.not_before, row.scheduler, row.accept_loss, row.lineage):
            return False
        row.not_before, row.accept_loss, row.lineage = at, consent.accept_loss, locked.environment.lineage
        row.scheduled_by, row.scheduler = actor.name, str(actor.id)
        return True

    return act_upon(
        public_id, Act.SCHEDULE, schedule, actor=actor, reason=reason, request_id=request_id, version=version
    )


def change_sets_tick() -> None:
    """Publish what is due, and say of what cannot be published why not. Called each second; any process may, also
    several at a time.
    """
    now = database_now()
    due = ChangeSet.objects.filter(
        Q(state=SetState.SCHEDULED.value, not_before__lte=now)
        | Q(state__in=[each.value for each in OPEN_STATES], expires__lte=now, ended_at=None)
    )
    for public_id in list(due.order_by("not_before", "pk").values_list("public_id", flat=True)):
        try:
            _tick(str(public_id))
        except Exception:  # one that cannot be handled holds up no other
            log.exception("change_set.failed", change_set=str(public_id))


def _tick(public_id: str) -> None:
    """Do what is due with one change set, once."""
    row = row_of(public_id)
    if not standing_of(row).is_over and _waits_as_before(row):
        return
    if (scheduler := principal_id_of(row.scheduler)) is not None:
        principal_recheck(scheduler)
    ready: _Ready | OperatorError
    try:
        ready = _ready(row)
    except OperatorError as error:  # any other may be over in a second
        ready = error
    failpoint("change_set.read")
    with transaction.atomic(durable=True):
        locked = lock(public_id)
        row = locked.row
        if locked.standing.is_over:
            _expire(locked)
        elif row.state == SetState.SCHEDULED.value and row.not_before and row.not_before <= database_now():
            _do_due(locked, ready)  # nobody else was here


def _do_due(locked: Locked, ready: _Ready | OperatorError) -> None:
    """Publish what is scheduled and due, let it wait, or drop its schedule."""
    row = locked.row
    if row.lineage != locked.environment.lineage:
        _stop(locked, "the database was restored since it was scheduled, which may have been before it was published")
    elif locked.standing.state is SetState.STALE:
        _stop(locked, "something of it was written since it was made")
    elif wait := _wait_of(row):
        _wait(locked, wait)
    elif isinstance(ready, OperatorError):
        _stop(locked, ready.detail)
    elif row.version == ready.version:
        _publish_due(locked, ready)


def _publish_due(locked: Locked, ready: _Ready) -> None:
    """Publish what is scheduled, by the rights of who scheduled it; where that is refused, drop the schedule and say
    why.
    """
    row = locked.row
    known = principal_id_of(row.scheduler)
    actor = principal_by_id(known) if known is not None else None
    if actor is None or not may(actor, Act.PUBLISH, locked.environment.key):
        _stop(locked, f"{row.scheduled_by}, who scheduled it, may not publish it any more")
        return
    try:
        check_rights(locked, Act.PUBLISH, actor)
        check(Act.PUBLISH, locked.standing, locked.name)
        with transaction.atomic():
            _publish(locked, ready, actor, Consent(accept_loss=row.accept_loss), reason="", request_id="")
    except OperatorError as error:
        row.refresh_from_db()
        row.environment = locked.environment
        if isinstance(error, WriteFrozen):  # it began since
            _wait(locked, f"the environment is frozen {error.frozen.words}")
        else:
            _stop(locked, error.detail)


def _publish(
    locked: Locked, ready: _Ready, actor: Principal, consent: Consent, *, reason: str, request_id: str
) -> ChangeMade:
    """Write the change and the state, in the transaction that holds the locks."""
    row = locked.row
    failpoint("change_set.locked")
    made = change_write(
        environment=locked.environment,
        prepared=ready.prepared,
        actor=actor,
        author=_author_of(row),
        message=row.message or row.title,
        beside=access_beside(wishes=ready.wishes, actor=actor, request_id=request_id) if ready.wishes else ALONE,
        request_id=request_id,
        consent=replace(consent, reviewed=True),
    )
    failpoint("change_set.written")
    if made.change is not None:
        ChangeSetChange.objects.create(change=made.change, change_set=row)
    row.published_by, row.ended_at = actor.name, database_now()
    state_set(row, SetState.PUBLISHED)
    note(locked, PAST[Act.PUBLISH], actor=actor, reason=reason, request_id=request_id, change=made.change_id)
    tell(locked, "published", actor=actor.name, reason=reason)
    return made


def _author_of(row: ChangeSet) -> Actor:
    """Who made the change set: they are the author of the change, whoever publishes it."""
    first = row.authors.order_by("pk").first()
    if first is None:
        raise RuntimeError(f"{row} has no author")
    return Named(first.name, principal_id_of(first.principal))


def _ready(row: ChangeSet) -> _Ready:
    read = _valid(row)
    prepared = prepare(read.edits, row.environment.key, _NO_TERMS)
    return _Ready(row.version, prepared, tuple(each.wish for each in read.wishes))


def _wait_of(row: ChangeSet) -> str:
    """What a change set waits for that ends by itself, or by whoever holds the environment; empty for nothing."""
    if row.environment.hold_reason:
        return f"the environment is on hold: {row.environment.hold_reason}"
    frozen = frozen_now(row.environment)
    return f"the environment is frozen {frozen.words}" if frozen is not None else ""


def _waits_as_before(row: ChangeSet) -> bool:
    """Whether a change set still waits for what it said that it waits for, so that nothing is to be done."""
    wait = _wait_of(row)
    return bool(wait) and row.waits_for == _waits_words(wait)


def _waits_words(what: str) -> str:
    return f"It is due, but {what}."[:_MAX_WAITS_CHARS]


def _wait(locked: Locked, what: str) -> None:
    said = _waits_words(what)
    if locked.row.waits_for == said:
        return
    locked.row.waits_for = said
    locked.row.save(update_fields=["waits_for"])
    tell(locked, "waiting", actor="", reason=said)


def _stop(locked: Locked, why: str) -> None:
    """Drop a schedule that cannot be kept, and tell everybody why."""
    said = f"It was not published at its time: {why}"[:_MAX_WAITS_CHARS]
    state_set(locked.row, locked.standing.rested)
    locked.row.waits_for = said
    locked.row.save(update_fields=["waits_for"])
    note(locked, "stopped", actor=SYSTEM, reason=said, request_id="")
    tell(locked, "stopped", actor="", reason=said)
    log.warning("change_set.stopped", change_set=str(locked.row.public_id), reason=said)


def _expire(locked: Locked) -> None:
    """Note that the time is over until which a change set could be published; its stored state stays (`Standing`)."""
    row = locked.row
    if row.ended_at is not None or row.state not in OPEN_STATES:
        return
    row.ended_at = row.expires
    state_set(row, locked.standing.rested if row.state == SetState.SCHEDULED.value else SetState(row.state))
    note(locked, "expired", actor=SYSTEM, request_id="")
    tell(locked, "expired", actor="")


def _valid(row: ChangeSet) -> EntriesRead:
    """What a change set does. Raises InputInvalid where its contents are not valid any more."""
    read = entries_read(row)
    if read.refused:
        raise InputInvalid(
            "Contents of the change set are not valid any more. Nothing was changed.", findings=read.refused
        )
    return read
