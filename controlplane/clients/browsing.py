"""Answers which clients there are, those that need attention first. Values only, never rows. For the pages.

Everything is counted and cut by the database; only who refuses, is silent or is denied is looked up before.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.db import connection
from django.db.models import Case, Count, Exists, IntegerField, Max, OuterRef, Q, Value, When, Window
from django.db.models.expressions import RawSQL

from controlplane.clients.models import Client, Nack, Stream
from controlplane.clients.selectors import ClientSummary, NackView, StreamView, client_rows, client_summaries, nacks_get
from controlplane.clients.troubles import Troubles, troubles_of
from xdscore.client_kinds import ClientFamily


class Standing(StrEnum):
    """The state of a client as a whole; the one that needs attention most comes first."""

    REFUSING = "refusing"  # its last answer to some type was a NACK, or it refused what is published now
    SILENT = "silent"  # it was sent something 30 s ago or longer and has not answered
    DENIED = "denied"  # it asks by name for what it may not read, and is told so
    CONNECTED = "connected"
    GONE = "gone"  # no stream is open; forgotten a day after the last one


@dataclass(frozen=True, slots=True)
class ClientLine:
    """One client in the list: its state as a whole, its newest open stream, and when it last refused something."""

    client: ClientSummary
    standing: Standing
    stream: StreamView | None
    refused_at: datetime | None


def client_page(
    *,
    environment_keys: Collection[str],
    text: str = "",
    standing: Standing | None = None,
    family: ClientFamily | None = None,
    clients: Collection[str] | None = None,
    offset: int = 0,
    limit: int = 50,
    troubles: Troubles | None = None,
) -> tuple[tuple[ClientLine, ...], int]:
    """One page of the clients of these environments, those that need attention first, and how many there are in all.
    Some fifteen queries.

    `text`: only those whose node id, identity, cluster or address contains it, or whose id it is. `clients`: only those
    of these ids. `troubles`: those of these environments, for who has asked already.
    """
    rows = Client.objects.filter(environment__key__in=list(environment_keys)).annotate(
        standing=_standing(troubles or troubles_of(environment_keys=environment_keys))
    )
    if text:
        # Where a stream comes from is looked up apart: a join would count clients once for each stream.
        there = Stream.objects.filter(client=OuterRef("pk"), closed_at=None, peer__contains=text)
        rows = rows.filter(
            Q(node_id__icontains=text)
            | Q(identity__icontains=text)
            | Q(node_cluster__icontains=text)
            | Q(pk=text)
            | Exists(there)
        )
    if clients is not None:
        rows = rows.filter(pk__in=_listed(clients))
    if standing is not None:
        rows = rows.filter(standing=_ORDER.index(standing))
    if family is not None:
        rows = rows.filter(family=family.value)
    # Whether a row is one of these takes longest to find out, so the page brings along how many there are; how many
    # there are of all costs nothing to count.
    total = Window(Count("pk")) if text or standing is not None else Value(rows.count())
    page = rows.annotate(total=total).order_by("standing", "node_id", "pk").values_list("pk", "standing", "total")
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


def standing_counts(
    *, environment_keys: Collection[str], troubles: Troubles | None = None
) -> Mapping[str, Mapping[Standing, int]]:
    """The number of clients in each state, by environment. Some fifteen queries at most."""
    rows = Client.objects.filter(environment__key__in=list(environment_keys)).annotate(
        standing=_standing(troubles or troubles_of(environment_keys=environment_keys))
    )
    counts = {key: dict.fromkeys(_ORDER, 0) for key in environment_keys}
    for key, place, count in rows.values_list("environment__key", "standing").annotate(count=Count("pk")):
        counts[key][_ORDER[place]] = count
    return counts


def client_standings(*, clients: Collection[ClientSummary]) -> Mapping[str, Standing]:
    """The state of each of these clients, by id, as the list shows it. As many queries as `troubles_of` makes."""
    only = next(iter(clients)).id if len(clients) == 1 else ""
    troubles = troubles_of(environment_keys={each.environment for each in clients}, client=only)
    return {each.id: _standing_of(each, troubles) for each in clients}


def _standing_of(client: ClientSummary, troubles: Troubles) -> Standing:
    """The state of one client, by the same rule as the database expression of `_standing`."""
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
    """A database expression for the place of a client's state in `_ORDER`."""
    connected = Exists(Stream.objects.filter(client=OuterRef("pk"), closed_at=None))
    places = {standing: Value(place) for place, standing in enumerate(_ORDER)}
    return Case(
        When(pk__in=_listed(troubles.refusing), then=places[Standing.REFUSING]),
        When(pk__in=_listed(troubles.silent), then=places[Standing.SILENT]),
        When(pk__in=_listed(troubles.denied), then=places[Standing.DENIED]),
        When(connected, then=places[Standing.CONNECTED]),
        default=places[Standing.GONE],
        output_field=IntegerField(),
    )


def _listed(ids: Collection[str]) -> RawSQL:
    """The ids as one parameter of a statement: writing a statement with thousands of them takes longer than answering
    it.
    """
    elements = "json_each(%s)" if connection.vendor == "sqlite" else "json_array_elements_text(%s::json) AS each(value)"
    return RawSQL(f"SELECT value FROM {elements}", [json.dumps(sorted(ids))])  # noqa: S608, S611 - of two literals


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
