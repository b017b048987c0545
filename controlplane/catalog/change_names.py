"""By what a change is found in the logs of every role: its id, and that of the request that made it.

A request has one id, which its lines in web carry. Later stages work on several changes at once: their lines list the
ids of all of them, the newest first, and no more than `LISTED_MAX`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet

from controlplane.catalog.models import Change

LISTED_MAX: Final = 20
"""The most changes that a log line names. A build may cover thousands; the newest ones are what somebody looks for."""


@dataclass(frozen=True, slots=True)
class ChangeName:
    """The public id of a change, and the id of the HTTP request that made it (empty where no request did)."""

    change: str
    request_id: str


def named_fields(names: Iterable[ChangeName]) -> dict[str, list[str]]:
    """The log fields `changes` and `request_ids`, with the ids of these changes and of the requests that made them."""
    listed = tuple(names)
    requests = dict.fromkeys(each.request_id for each in listed if each.request_id)
    return {"changes": [each.change for each in listed], "request_ids": list(requests)}


def changes_between(*, environment_key: str, after: int, until: int) -> tuple[ChangeName, ...]:
    """The ids of the changes that were written after the generation `after`, up to and including `until`; newest first.
    One query.
    """
    return _named(Change.objects.filter(environment__key=environment_key, generation__gt=after, generation__lte=until))


def change_named(*, public_id: str) -> tuple[ChangeName, ...]:
    """The ids of the change with this public id; an empty tuple where there is no such change, or the id is empty."""
    return _named(Change.objects.filter(public_id=public_id)) if public_id else ()


def _named(changes: QuerySet[Change]) -> tuple[ChangeName, ...]:
    rows = changes.order_by("-generation").values_list("public_id", "request_id")[:LISTED_MAX]
    return tuple(ChangeName(str(public_id), request_id) for public_id, request_id in rows)
