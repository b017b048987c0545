"""Hands on what waits: the digest says which NACKs and proofs it has taken in."""

from collections.abc import Iterable

from django.db import connection, transaction

from controlplane.clients.clock import database_now
from controlplane.clients.models import ContentProbe, Nack
from controlplane.clients.selectors import PendingProof

_DROP_PROOF = (
    "DELETE FROM clients_contentproof WHERE environment = %s AND type = %s AND name = %s AND version = %s AND at = %s"
)


@transaction.atomic
def nacks_mark_digested(*, ids: Iterable[int]) -> frozenset[int]:
    """Mark these NACKs as counted in incidents, and return the ids of those that were not marked before.

    Called inside the transaction that writes the incidents, so that no NACK counts twice and none is lost. Rows that
    another worker has locked at this moment are left to it (decisions D28).
    """
    waiting = Nack.objects.select_for_update(skip_locked=True).filter(pk__in=list(ids), digested_at=None)
    taken = frozenset(waiting.values_list("pk", flat=True))
    Nack.objects.filter(pk__in=taken).update(digested_at=database_now())
    return taken


def probes_drop(*, ids: Iterable[int]) -> None:
    """Delete the probes with these ids. The caller has told the catalogue of them: they are lost otherwise."""
    ContentProbe.objects.filter(pk__in=list(ids)).delete()


def proofs_drop(*, proofs: Iterable[PendingProof]) -> None:
    """Delete these proofs, because the catalogue has been told of them. One that was reported again meanwhile stays,
    for a later revision may need it.
    """
    rows = [
        (
            each.content.environment,
            each.content.word,
            each.content.name,
            each.content.version,
            connection.ops.adapt_datetimefield_value(each.at),
        )
        for each in proofs
    ]
    if rows:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            cursor.executemany(_DROP_PROOF, rows)
