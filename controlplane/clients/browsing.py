"""Answers which clients there are, those that need attention first. Values only, never rows. For the pages.

Everything is counted and cut by the database; only who refuses, is silent or is denied is looked up before.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.db.models import Case, Count, IntegerField, Max, QuerySet, Value, When, Window

from controlplane.clients.filtering import EVERY_CLIENT, ClientFilter, is_connected, listed, with_seen
from controlplane.clients.models import Client, Nack, Stream
from controlplane.clients.selectors import ClientSummary, NackView, StreamView, client_rows, client_summaries, nacks_get
from controlplane.clients.troubles import Troubles, troubles_of


class Standing(StrEnum):
    """How a client stands, in one word. Where several apply, the first in this order is given."""

    REFUSING = "refusing"  # its last answer to some type was a NACK, or it refused what is published now
    SILENT = "silent"  # it was sent something 30 s ago or longer and has not answered
    DENIED = "denied"  # it asks by name for what it may not read, and is told so
    CONNECTED = "connected"
    GONE = "gone"  # no stream is open; forgotten a day after the last one


# By the word of an order: the columns, the last of which no two rows have in common.
CLIENT_ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "state": ("standing", "node_id", "pk"),
    "name": ("node_id", "pk"),
    "family": ("family", "user_agent_version", "node_id", "pk"),
    "seen": ("seen", "pk"),
    "first": ("first_seen", "pk"),
}


@dataclass(frozen=True, slots=True)
class ClientLine:
    """One line in the list of clients: how the client stands, its newest open stream (None: no stream is open), and
    when it last refused something (None: not known to have).
    """

    client: ClientSummary
    standing: Standing
    stream: StreamView | None
    refused_at: datetime | None


def client_page(
    *,
    environment_keys: Collection[str],
    wanted: ClientFilter = EVERY_CLIENT,
    standing: Standing | None = None,
    order: str = "state",
    falls: bool = False,
    offset: int = 0,
    limit: int = 50,
    troubles: Troubles | None = None,
) -> tuple[tuple[ClientLine, ...], int]:
    """One page of the clients of these environments that meet a filter and stand so (None: anyhow), those that need
    attention first or in the order with this word in CLIENT_ORDERS, and the number of clients on all pages. Some
    fifteen queries. `troubles`: the result of `troubles_of` for these environments, where the caller has it already.
    """
    rows = clients_wanted(environment_keys=environment_keys, wanted=wanted, standing=standing, troubles=troubles)
    if order == "seen":
        rows = with_seen(rows)
    # Whether a row is one of these takes longest to find out, so the page brings along how many there are; how many
    # there are of all costs nothing to count.
    total = Window(Count("pk")) if wanted.text or standing is not None else Value(rows.count())
    columns = [f"-{each}" if falls else each for each in CLIENT_ORDERS[order]]
    page = rows.annotate(total=total).order_by(*columns).values_list("pk", "standing", "total")
    kept = list(page[offset : offset + limit])
    # Behind the last page there is no row that could tell.
    count = kept[0][2] if kept else rows.count()
    standings = {pk: _ORDER[place] for pk, place, _ in kept}
    found = {each.id: each for each in client_summaries(client_rows().filter(pk__in=standings))}
    streams, refused = _newest_streams(standings), _last_refusals(standings)
    lines = tuple(
        ClientLine(found[pk], standings[pk], streams.get(pk), refused.get(pk)) for pk, *_ in kept if pk in found
    )
    return lines, count


def clients_wanted(
    *,
    environment_keys: Collection[str],
    wanted: ClientFilter,
    standing: Standing | None = None,
    troubles: Troubles | None = None,
) -> QuerySet[Client]:
    """The rows of all clients of which `client_page` shows a page, each with `standing`, in no order."""
    of_all = Client.objects.filter(environment__key__in=list(environment_keys))
    stand = _standing(troubles or troubles_of(environment_keys=environment_keys))
    rows = of_all.annotate(standing=stand)
    return wanted.applied(rows if standing is None else rows.filter(standing=_ORDER.index(standing)))


def standing_counts(
    *, environment_keys: Collection[str], troubles: Troubles | None = None
) -> Mapping[str, Mapping[Standing, int]]:
    """The number of clients with each standing, by environment key. Some fifteen queries at most. `troubles`: the
    result of `troubles_of` for these environments, where the caller has it already.
    """
    rows = Client.objects.filter(environment__key__in=list(environment_keys)).annotate(
        standing=_standing(troubles or troubles_of(environment_keys=environment_keys))
    )
    counts = {key: dict.fromkeys(_ORDER, 0) for key in environment_keys}
    for key, place, count in rows.values_list("environment__key", "standing").annotate(count=Count("pk")):
        counts[key][_ORDER[place]] = count
    return counts


def client_standings(*, clients: Collection[ClientSummary]) -> Mapping[str, Standing]:
    """How each of these clients stands, by client id, as the list of clients shows it. As many queries as `troubles_of`
    makes.
    """
    only = next(iter(clients)).id if len(clients) == 1 else ""
    troubles = troubles_of(environment_keys={each.environment for each in clients}, client=only)
    return {each.id: _standing_of(each, troubles) for each in clients}


def _standing_of(client: ClientSummary, troubles: Troubles) -> Standing:
    """How one client stands. The rule is that of `_standing`, which is the same as a database expression."""
    if client.id in troubles.refusing:
        return Standing.REFUSING
    if client.id in troubles.silent:
        return Standing.SILENT
    if client.id in troubles.denied:
        return Standing.DENIED
    return Standing.CONNECTED if client.connected else Standing.GONE


def client_refusals(*, public_id: str, limit: int = 50) -> tuple[NackView, ...]:
    """The NACKs of a client on any of its streams, newest first."""
    return nacks_get(
        ids=list(Nack.objects.filter(client=public_id).order_by("-id").values_list("pk", flat=True)[:limit])
    )


_ORDER: Final = tuple(Standing)


def _standing(troubles: Troubles) -> Case:
    """A database expression for how a client stands, as a number: the place of the standing in `_ORDER`."""
    places = {standing: Value(place) for place, standing in enumerate(_ORDER)}
    return Case(
        When(pk__in=listed(troubles.refusing), then=places[Standing.REFUSING]),
        When(pk__in=listed(troubles.silent), then=places[Standing.SILENT]),
        When(pk__in=listed(troubles.denied), then=places[Standing.DENIED]),
        When(is_connected(), then=places[Standing.CONNECTED]),
        default=places[Standing.GONE],
        output_field=IntegerField(),
    )


def _newest_streams(clients: Collection[str]) -> dict[str, StreamView]:
    rows = Stream.objects.filter(client__in=clients, closed_at=None).select_related("replica").order_by("opened_at")
    return {
        row.client_id: StreamView(
            row.pk, str(row.replica), row.variant, row.peer, row.opened_at, row.closed_at, row.cause
        )
        for row in rows
    }


def _last_refusals(clients: Collection[str]) -> dict[str, datetime]:
    return dict(Nack.objects.filter(client__in=clients).values_list("client").annotate(last=Max("at")))
