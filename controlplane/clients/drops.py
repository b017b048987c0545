"""Finds environments whose fleet shrank at a stroke: many clients went away within a minute and are not back."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.clients.clock import database_now
from controlplane.clients.models import Stream

WINDOW: Final = timedelta(minutes=1)
# Who reconnects is back by then: a server that restarts, or a stream that reached its age, is no event.
PATIENCE: Final = timedelta(seconds=15)
_AT_LEAST: Final = 2
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Drop:
    """The loss of `clients` of the `of` clients that an environment had.

    `node_ids`: the first few clients that went.
    `cause`: the most frequent reason why their streams ended.
    """

    clients: int
    of: int
    node_ids: tuple[str, ...]
    cause: str


def is_drop(before: int, after: int, *, percent: int) -> bool:
    """Whether an environment that went from `before` to `after` clients lost more than `percent` of them, and more than
    a single client.
    """
    lost = before - after
    return lost >= _AT_LEAST and lost * 100 > before * percent


def fleets_dropped(*, percent: int) -> Mapping[str, Drop]:
    """The environments, by key, that had over `percent` % fewer clients connected at the end of a minute than at its
    start. The minute ended `PATIENCE` ago, so that clients had time to come back before anybody is told.

    Counts are compared, not node ids: processes that come back under other node ids are no loss.
    """
    lately = database_now() - PATIENCE
    then = lately - WINDOW
    found: dict[str, Drop] = {}
    for environment, ends in _gone(then, lately).items():
        before = _clients(_open_at(then).filter(client__environment__key=environment))
        after = _clients(_open_at(lately).filter(client__environment__key=environment))
        if is_drop(before, after, percent=percent):
            causes = Counter(cause for _, cause in ends.values())
            names = sorted(node_id for node_id, _ in ends.values())[:_NAMED]
            found[environment] = Drop(before - after, before, tuple(names), causes.most_common(1)[0][0])
    return found


def _gone(then: datetime, lately: datetime) -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """The clients that had an open stream at `then` and none at `lately`, by environment key and client id, each with
    its node id and the reason why its last stream ended.
    """
    back = Exists(_open_at(lately).filter(client=OuterRef("client")))
    rows = _open_at(then).filter(closed_at__lte=lately).exclude(back).order_by("closed_at")
    found: dict[str, dict[str, tuple[str, str]]] = {}
    columns = ("client__environment__key", "client_id", "client__node_id", "cause")
    for environment, client, node_id, cause in rows.values_list(*columns):
        found.setdefault(environment, {})[client] = (node_id, cause)
    return found


def _open_at(moment: datetime) -> QuerySet[Stream]:
    return Stream.objects.filter(Q(closed_at=None) | Q(closed_at__gt=moment), opened_at__lte=moment)


def _clients(streams: QuerySet[Stream]) -> int:
    return streams.values("client").distinct().count()
