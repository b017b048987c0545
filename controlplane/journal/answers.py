"""Answers that are kept, so that a request sent twice is not carried out twice (texts.md section 4, "Conventions").

A key belongs to one principal, by its id and never by a name, and to one request. While the request is being answered
the key is taken; the database decides who has it, so that two processes never both carry it out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, models, transaction
from django.utils import timezone

from controlplane.common.errors import Conflict
from controlplane.common.principal_ids import PrincipalId
from controlplane.journal.models import KeptAnswer

KEPT_FOR: Final = timedelta(hours=24)
# Longer than any request takes: whoever had the key is dead, and the same request may be tried again.
_ABANDONED_AFTER: Final = timedelta(minutes=2)
_SWEPT_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class Claim:
    """An Idempotency-Key that a request has claimed, and when. Once another request has taken it over, the claim is
    void.
    """

    principal: PrincipalId
    key: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Kept:
    """The answer that the same request was given before. `body` is sealed by whoever kept it; empty: it is not kept."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def answer_claim(*, principal: PrincipalId, key: str, digest: str) -> Claim | Kept:
    """Claim the key for the request with this digest, or read the answer that the request had before.

    Raises Conflict when the key stands for another request, or this one is being answered at this moment; TypeError for
    somebody who is named and not identified.
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
    """Store the answer under the claimed key."""
    _row(claim).update(status=answer.status, headers=dict(answer.headers), body=answer.body)


def answer_forget(*, claim: Claim) -> None:
    """Free the claimed key: the request had no effect, and may be sent again under it."""
    _row(claim).delete()


def _taken(principal: PrincipalId, key: str, digest: str) -> Claim | Kept:
    row = KeptAnswer.objects.filter(actor=str(principal), key=key).first()
    if row is None:  # given back between the two looks
        raise Conflict("The request with this Idempotency-Key failed a moment ago. Send it again.")
    if row.digest != digest:
        raise Conflict("This Idempotency-Key was used for another request. Use a new key. Nothing was changed.")
    if row.status is not None:
        return Kept(row.status, row.headers, bytes(row.body))
    now = timezone.now()
    stale = KeptAnswer.objects.filter(pk=row.pk, status=None, at=row.at, at__lt=now - _ABANDONED_AFTER)
    if stale.update(at=now):
        return Claim(principal, key, now)
    raise Conflict("The request with this Idempotency-Key is being answered. Send it again in a moment.")


def _row(claim: Claim) -> models.QuerySet[KeptAnswer]:
    return KeptAnswer.objects.filter(actor=str(claim.principal), key=claim.key, at=claim.at, status=None)
