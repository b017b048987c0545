"""Answers that are kept, so that a request sent twice is not carried out twice (texts.md section 4, "Conventions").

A key belongs to one principal, by its id and never by a name, and to one request. While the request is being answered
the key is taken; the database decides who has it, so that two processes never both carry it out. A process may die at
any moment: that a request had its effect is stored in the transaction of the effect, so that whoever sends it again
learns that it was done, and it is not done twice.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, models, transaction
from django.utils import timezone

from controlplane.common.errors import Conflict
from controlplane.common.principal_ids import PrincipalId
from controlplane.journal.models import KeptAnswer

KEPT_FOR: Final = timedelta(hours=24)
# Longer than any request takes: whoever had the key is dead. If the request had no effect it may be tried again.
_ABANDONED_AFTER: Final = timedelta(minutes=2)
_SWEPT_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class Claim:
    """An Idempotency-Key that a request has taken, and when. Another request may take it over later; then this claim no
    longer counts.
    """

    principal: PrincipalId
    key: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Kept:
    """The answer that an equal request was given before. `body`: encrypted by whoever stored it; empty where it was not
    stored.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Lost:
    """The request was carried out before, and its answer was not kept: the process ended, or failed, before that.
    `change`: the id of the change that the request made; empty where it made none.
    """

    change: str


# Under which claim the request that is being carried out in this context has its effects.
_current: ContextVar[Claim | None] = ContextVar("idempotency_claim", default=None)


def effects_under(claim: Claim | None) -> None:
    """Count what is done in this context (thread or task) from now on as an effect of the claim's request; None: as one
    of no request with a claim.
    """
    _current.set(claim)


def effect_note(*, change: str = "") -> None:
    """Note, in the transaction of an effect, that the request that is being answered had it; `change`: the id of the
    change that it made, if it made one. Does nothing where the request has no claim.
    """
    claim = _current.get()
    if claim is not None:
        _row(claim).update(done=True, **({"change": change} if change else {}))


def answer_claim(*, principal: PrincipalId, key: str, digest: str) -> Claim | Kept | Lost:
    """Take the Idempotency-Key for the request with this digest (Claim), or return the answer that the same request had
    before (Kept), or that it was carried out and its answer is not known (Lost).

    Raises Conflict when the key belongs to a different request, or the same one is being answered at this moment;
    TypeError when `principal` is no PrincipalId but a name.
    """
    if not isinstance(principal, PrincipalId):
        raise TypeError("a key belongs to a principal's id")
    now = timezone.now()
    old = KeptAnswer.objects.filter(at__lt=now - KEPT_FOR).values_list("pk", flat=True)[:_SWEPT_AT_ONCE]
    KeptAnswer.objects.filter(pk__in=list(old)).delete()
    try:
        with transaction.atomic():
            KeptAnswer.objects.create(actor=str(principal), key=key, digest=digest, at=now)
        return Claim(principal, key, now)
    except IntegrityError:
        return _taken(principal, key, digest)


def answer_keep(*, claim: Claim, answer: Kept) -> None:
    """Store the answer under the key of the claim. Does nothing where another request has taken the key over."""
    _row(claim).update(status=answer.status, headers=dict(answer.headers), body=answer.body)


def answer_forget(*, claim: Claim) -> None:
    """Free the key of the claim, so that the request may be sent again with it. Where the request had its effect all
    the same, and only its answer failed, the key stays taken: whoever sends it again is told so (Lost).
    """
    _row(claim).filter(done=False).delete()
    _row(claim).update(at=claim.at - _ABANDONED_AFTER)


def _taken(principal: PrincipalId, key: str, digest: str) -> Claim | Kept | Lost:
    row = KeptAnswer.objects.filter(actor=str(principal), key=key).first()
    if row is None:  # given back between the two looks
        raise Conflict("The request with this Idempotency-Key failed a moment ago. Send it again.")
    if row.digest != digest:
        raise Conflict("This Idempotency-Key was used for another request. Use a new key. Nothing was changed.")
    if row.status is not None:
        return Kept(row.status, row.headers, bytes(row.body))
    now = timezone.now()
    stale = KeptAnswer.objects.filter(pk=row.pk, status=None, at=row.at, at__lt=now - _ABANDONED_AFTER)
    if row.done and stale.exists():
        return Lost(row.change)
    if stale.filter(done=False).update(at=now):
        return Claim(principal, key, now)
    raise Conflict("The request with this Idempotency-Key is being answered. Send it again in a moment.")


def _row(claim: Claim) -> models.QuerySet[KeptAnswer]:
    return KeptAnswer.objects.filter(actor=str(claim.principal), key=claim.key, at=claim.at, status=None)
