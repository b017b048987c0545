"""Answers when clients refused something, for pictures: of one client, or of one resource.

By the NACKs that are still kept, which are the newest few of each client and type (reliability (e)); what was counted
of all of them is in `history`.
"""

from datetime import datetime
from typing import Final

from django.db.models import Max

from controlplane.clients.facts import unpack_contents
from controlplane.clients.models import Nack
from controlplane.history.series import Sum

# Lists of suspects that are looked through for one name, the newest: a storm about a few changes makes a few.
_MAX_LISTS: Final = 200
_MAX_ROWS: Final = 10_000


def nack_times_of_client(*, public_id: str, since: datetime) -> tuple[Sum, ...]:
    """When this client refused something since then, by type."""
    rows = Nack.objects.filter(client=public_id, at__gte=since).order_by("-id")
    return tuple(Sum(at, word, repeats) for at, word, repeats in rows.values_list("at", "type", "repeats")[:_MAX_ROWS])


def nack_times_of_name(*, environment_key: str, word: str, name: str, since: datetime) -> tuple[Sum, ...]:
    """When clients refused a response since then in which this resource of the type `word` was a suspect, by the
    family of the client. Two queries.
    """
    rows = Nack.objects.filter(client__environment__key=environment_key, type=word, at__gte=since)
    lists = rows.order_by().values_list("suspects", "suspects__contents").annotate(newest=Max("id"))
    naming = [pk for pk, packed, _ in lists.order_by("-newest")[:_MAX_LISTS] if _names(bytes(packed), name)]
    named = rows.filter(suspects__in=naming).order_by("-id").values_list("at", "client__family", "repeats")
    return tuple(Sum(at, family, repeats) for at, family, repeats in named[:_MAX_ROWS])


def _names(packed: bytes, name: str) -> bool:
    return any(suspect == name for suspect, _ in unpack_contents(packed))
