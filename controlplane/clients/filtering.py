"""Which clients somebody wants to see: for the pages, the API, files and acts upon many of them alike."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.utils import timezone

from controlplane.clients.models import Client, Stream
from controlplane.database.labels import labelled
from xdscore.client_kinds import ClientFamily
from xdscore.labels import Requirement


@dataclass(frozen=True, slots=True)
class ClientFilter:
    """The conditions of a filtered list of clients; an empty one is met by every client.

    `text`: the id, or a part of the node id, identity, cluster or address.
    `clients`: the ids of the only ones.
    `labels`: a selector of what people gave it, all of which holds.
    `since`, `until`: it was seen last then or later, or then or earlier; whoever is connected is seen now.
    `node_id`, `identity`: exactly these. `connected`: it has an open stream.
    """

    text: str = ""
    family: ClientFamily | None = None
    clients: Collection[str] | None = None
    labels: tuple[Requirement, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    node_id: str = ""
    identity: str = ""
    connected: bool = False

    def applied(self, rows: QuerySet[Client]) -> QuerySet[Client]:
        """The rows among `rows` that meet every condition."""
        same = {"node_id": self.node_id, "identity": self.identity}
        same |= {"family": self.family.value} if self.family is not None else {}
        rows = rows.filter(Q(**{column: value for column, value in same.items() if value}))
        if self.text:
            rows = rows.filter(_holds(self.text))
        if self.clients is not None:
            rows = rows.filter(pk__in=listed(self.clients))
        if self.labels:
            rows = with_labels(rows).filter(labelled(self.labels))
        if self.connected:
            rows = rows.filter(is_connected())
        if self.since is not None or self.until is not None:
            rows = with_seen(rows).filter(self._seen)
        return rows

    @property
    def _seen(self) -> Q:
        within = Q(seen__gte=self.since) if self.since is not None else Q()
        return within & Q(seen__lte=self.until) if self.until is not None else within


EVERY_CLIENT: Final = ClientFilter()


def clients_in(*, environment_keys: Collection[str], wanted: ClientFilter) -> QuerySet[Client]:
    """The rows of the clients of these environments that meet a filter, in no order."""
    return wanted.applied(Client.objects.filter(environment__key__in=list(environment_keys)))


def with_labels(rows: QuerySet[Client]) -> QuerySet[Client]:
    """The rows with `labels`: what people gave each client to be found by, packed; empty where that is nothing."""
    return rows.annotate(labels=Coalesce("given__labels", Value(""), output_field=TextField()))


def with_seen(rows: QuerySet[Client]) -> QuerySet[Client]:
    """The rows with `seen`: when each client was seen last, which is now while it is connected."""
    return rows.annotate(seen=Case(When(is_connected(), then=Value(timezone.now())), default="last_seen"))


def is_connected() -> Exists:
    """A database condition: a stream of the client is open."""
    return Exists(Stream.objects.filter(client=OuterRef("pk"), closed_at=None))


def listed(ids: Collection[str]) -> RawSQL:
    """SQL for a list of ids that is one parameter of the statement: with thousands of parameters, writing the statement
    takes longer than answering it.
    """
    elements = "json_each(%s)" if connection.vendor == "sqlite" else "json_array_elements_text(%s::json) AS each(value)"
    return RawSQL(f"SELECT value FROM {elements}", [json.dumps(sorted(ids))])  # noqa: S608, S611 - of two literals


def _holds(text: str) -> Q:
    # Where a stream comes from is looked up apart: a join would count clients once for each stream.
    there = Stream.objects.filter(client=OuterRef("pk"), closed_at=None, peer__contains=text)
    return (
        Q(node_id__icontains=text)
        | Q(identity__icontains=text)
        | Q(node_cluster__icontains=text)
        | Q(pk=text)
        | Q(Exists(there))
    )
