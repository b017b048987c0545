"""Who is connected: the list, those that need attention first, and one client with what it has of each name."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import path

from controlplane.builder.selectors import change_progress
from controlplane.catalog.selectors import change_get, environment_list
from controlplane.clients.bootstraps import (
    UnreachableError,
    Variant,
    envoy_bootstrap,
    grpc_bootstrap,
    node_for,
)
from controlplane.clients.browsing import (
    ClientLine,
    Standing,
    client_page,
    client_refusals,
    clients_wanted,
    standing_counts,
)
from controlplane.clients.filtering import ClientFilter
from controlplane.clients.holdings import HeldSummary, client_summary
from controlplane.clients.labelling import LABELLER
from controlplane.clients.models import Client
from controlplane.clients.nack_times import nack_times_of_client
from controlplane.clients.reports import client_word, differing_counts
from controlplane.clients.selectors import (
    ClientSummary,
    NackView,
    StreamView,
    SubscriptionView,
    TypeState,
    client_get,
    client_streams,
    client_subscriptions,
)
from controlplane.clients.told import ToldCounts, told_of
from controlplane.clients.troubles import Troubles, troubles_of
from controlplane.common.errors import NotFound
from controlplane.config.loading import Config
from controlplane.console.bulk_words import LABELS as SET_LABELS
from controlplane.console.charts import DAY, Chart, kept_nacks_chart, recent
from controlplane.console.holding_lines import HoldingLine, Key, lines_of_client
from controlplane.console.lists import LABELS, ListPage, ListShown
from controlplane.console.live import shared
from controlplane.console.pages import Page
from controlplane.console.paging import SIZE, Paged, page_number
from controlplane.console.places import Place, Section
from controlplane.explain.memberships import memberships_of
from controlplane.explain.standings import client_status, client_statuses
from controlplane.incidents.settling import Answer, change_clients
from controlplane.listing.frames import Asked, Filter, Frame, Kind, Order, options
from controlplane.listing.runs import Run, runs
from controlplane.listing.tables import Column
from xdscore.client_kinds import ClientFamily
from xdscore.codes import shown
from xdscore.holdings import HoldingState
from xdscore.labels import selector_read
from xdscore.resource_types import RESOURCE_TYPES, ResourceType, by_word

_MAX_TEXT: Final = 200
_MAX_EVENTS: Final = 40
_MAX_ATTENTION: Final = 25
# Of one type; the page of its resources lists all.
_MAX_NAMES: Final = 100
_ANSWERS_OF_TYPE: Final = (HoldingState.NACKED, HoldingState.SENT, HoldingState.ACKED)
_ANSWERED: Final = {
    Answer.SENT: "were sent",
    Answer.ACKED: "acknowledged",
    Answer.NACKED: "refused",
    Answer.SILENT: "have said nothing for 30 s to",
    Answer.NOT_IN_USE: "acknowledged and do not use all of",
}
_OF_A_FILE: Final = 500  # of how many at once a file reads how they stand

_UNDERSTANDS: Final = {
    # texts.md F3, F4 and F7: nothing that a client sends tells; these are the implementations as they are released.
    ClientFamily.GRPC_CORE: "It reads the reasons Parley sends (xRFC TP3) where its environment says "
    "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING=true; else it reports 'does not exist' after about 15 s.",
    ClientFamily.ENVOY: "Envoy takes the reasons Parley sends without a word: look for them here, not in its log.",
}
# Whether a client reads the reasons, in one word: never "yes", for nothing that it sends says so (texts.md F4).
_READS: Final = {ClientFamily.GRPC_CORE: "if set up", ClientFamily.ENVOY: "unlikely"}
_UNDERSTANDS_UNKNOWN: Final = (
    "Whether it reads the reasons Parley sends (xRFC TP3) cannot be seen from here; "
    "where it does not, it reports 'does not exist'."
)


@dataclass(frozen=True, slots=True)
class Event:
    """An event in the life of a client. `state`: the key in `states.LOOKS` of its badge; `text`: what the client said,
    empty where it said nothing; `times`: how many equal ones it stands for.
    """

    at: datetime
    state: str
    label: str
    what: str
    text: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True)
class TypeShown:
    """What the page of a client shows of one type that it asks for.

    `asks`: how it asks, over all its open streams; `subscriptions`: one for each stream.
    `lines`: what it has of its first resources, by name; `count`: of how many it has something, or was told; `states`:
        in which states any of these is.
    """

    kind: ResourceType
    asks: TypeState
    subscriptions: tuple[SubscriptionView, ...]
    lines: tuple[HoldingLine, ...]
    count: int
    states: frozenset[HoldingState]

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge: how the client answered, by what it has of the resources. Where it
        has nothing, or does not say what, by its answer to the last response.
        """
        answered = next((each for each in _ANSWERS_OF_TYPE if each in self.states), None)
        return answered.value if answered is not None else self.asks.state.value.upper()


@dataclass(frozen=True, slots=True)
class Shown:
    """A client in the list.

    `told`: how many names it asks for and is told that it cannot have.
    `groups`: the keys of the client groups it belongs to.
    `differing`: on how many names its own report differs from what Parley believes.
    `reads`, `why`: whether it reads the reasons that Parley sends, in a word and in a sentence.
    """

    line: ClientLine
    told: ToldCounts
    groups: tuple[str, ...]
    differing: int
    reads: str
    why: str

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the client stands."""
        return client_status(self.line.standing, self.told).value


@dataclass(frozen=True, slots=True)
class OfChange:
    """A filter of the list of clients by what they did with a change: were sent it, or gave one answer (`answer`).
    `id`: the change's; `clients`: the ids of the clients that did.
    """

    id: str
    answer: Answer
    clients: frozenset[str]

    @property
    def says(self) -> str:
        """What the clients of this filter did, in words to which the change's name is added, such as "were sent"."""
        return _ANSWERED[self.answer]


class ClientsPage(ListPage):
    """The page with the clients of an environment."""

    template = "clients/list.html"
    frame = Frame(
        "clients",
        "clients",
        "clients",
        (
            Filter("q", "Node id, identity, cluster or address", width="wide"),
            Filter("state", "State", Kind.CHOICE, options(tuple(Standing)), hidden=True),
            Filter("family", "Family", Kind.CHOICE, options(tuple(ClientFamily))),
            LABELS,
            Filter("since", "Seen since", Kind.TIME, max_chars=40),
            Filter("until", "Not seen since", Kind.TIME, max_chars=40),
            Filter("change", "Change", max_chars=_MAX_TEXT, hidden=True),
            Filter("answer", "Answer", Kind.CHOICE, options(tuple(Answer)), hidden=True),
        ),
        (
            Order("name", "Client"),
            Order("state", "State"),
            Order("family", "Family"),
            Order("seen", "Last seen", falls=True),
            Order("first", "First seen", falls=True),
        ),
    )
    columns: ClassVar[Sequence[Column[Shown]]] = (
        Column("client", lambda each: each.line.client.id),
        Column("node_id", lambda each: each.line.client.node_id),
        Column("identity", lambda each: each.line.client.identity),
        Column("cluster", lambda each: each.line.client.node_cluster),
        Column("groups", lambda each: " ".join(each.groups)),
        Column("labels", lambda each: " ".join(each.line.client.label_words)),
        Column("state", lambda each: each.look),
        Column("denied", lambda each: each.told.denied),
        Column("not_there", lambda each: each.told.missing),
        Column("family", lambda each: each.line.client.family),
        Column("version", lambda each: each.line.client.user_agent_version),
        Column("connected_since", lambda each: each.line.stream.opened_at if each.line.stream else None),
        Column("last_seen", lambda each: each.line.client.last_seen),
        Column("last_nack", lambda each: each.line.refused_at),
    )

    def shown(self, asked: Asked) -> ListShown:
        """One page of the clients that fit the filters."""
        key, number = self.here.key, page_number(self.request)
        change, troubles = _of_change(asked, key), troubles_of(environment_keys=[key])
        lines, count = self._found(asked, change, troubles, offset=(number - 1) * SIZE, limit=SIZE)
        counts = standing_counts(environment_keys=[key], troubles=troubles)[key]
        context = {
            "page": Paged(_shown(key, lines), number, count),
            "node_ids": "\n".join(line.client.node_id for line in lines),
            "counts": tuple((each.value, how_many) for each, how_many in counts.items()),
            "change": change,
            "anybody": sum(counts.values()),
            "ads_address": str(settings.PARLEY.ads_public_address),
            "filters": list(asked.values.items()),
            "acts": [SET_LABELS] if self.may(LABELLER) else [],
        }
        return ListShown(context)

    def lines(self, asked: Asked, limit: int) -> Iterator[Shown]:
        """The first clients that fit the filters."""
        key = self.here.key
        change, troubles = _of_change(asked, key), troubles_of(environment_keys=[key])
        found, _ = self._found(asked, change, troubles, offset=0, limit=limit)
        for start in range(0, len(found), _OF_A_FILE):
            yield from _shown(key, found[start : start + _OF_A_FILE])

    def _found(
        self, asked: Asked, change: OfChange | None, troubles: Troubles, *, offset: int, limit: int
    ) -> tuple[tuple[ClientLine, ...], int]:
        return client_page(
            environment_keys=[self.here.key],
            wanted=_wanted(asked, change),
            standing=_standing(asked),
            order=asked.sort or "state",
            falls=asked.falls,
            offset=offset,
            limit=limit,
            troubles=troubles,
        )


def clients_asked(environment_key: str, asked: Asked) -> QuerySet[Client]:
    """The rows of all clients that fit the filters of the list, in no order."""
    wanted = _wanted(asked, _of_change(asked, environment_key))
    return clients_wanted(environment_keys=[environment_key], wanted=wanted, standing=_standing(asked))


def _wanted(asked: Asked, change: OfChange | None) -> ClientFilter:
    return ClientFilter(
        text=asked.text("q"),
        family=ClientFamily(asked.text("family")) if asked.text("family") else None,
        clients=change.clients if change is not None else None,
        labels=selector_read(asked.text("label")),
        since=asked.since,
        until=asked.until,
    )


def _standing(asked: Asked) -> Standing | None:
    return Standing(asked.text("state")) if asked.text("state") else None


def _of_change(given: Asked, environment_key: str) -> OfChange | None:
    """The filter by a change that is asked for; None where it asks for none. Raises NotFound for a change of
    another environment.
    """
    asked = given.text("change")
    if not asked:
        return None
    answer = Answer(given.text("answer") or Answer.SENT)
    try:
        change = change_get(public_id=str(UUID(asked)))
    except ValueError:
        raise NotFound(f"There is no change '{shown(asked)}'.") from None
    if change.environment.key != environment_key:
        raise NotFound(f"There is no change '{shown(asked)}' in '{environment_key}'.")
    public_id = str(change.public_id)
    progress = change_progress(public_id=public_id)
    return OfChange(public_id, answer, change_clients(change=change, progress=progress, answer=answer))


class PageOfClient(Page):
    """The base class of the pages about one client, whose environment the path does not name."""

    needs = {"GET": None}

    def client_seen(self, client_id: str) -> ClientSummary:
        """The client with this id. Raises NotFound, with one text, where there is none and where the user may not see
        it.
        """
        try:
            client = client_get(public_id=client_id)
            self.enter(client.environment)
        except NotFound:
            raise NotFound(
                f"There is no client '{shown(client_id, 64)}'. A client is forgotten a day after its last stream."
            ) from None
        return client


class ClientPage(PageOfClient):
    """The page of one client: who it is, what it asks for and has, its events, and the bootstrap file to start it
    with.
    """

    template = "clients/client.html"

    def get(self, request: HttpRequest, client_id: str) -> HttpResponse:
        """The page of the client; with `?part=tail`, only its latest events."""
        client = self.client_seen(client_id)
        if request.GET.get("part") == "tail":
            return self.part("clients/tail.html", {"events": shared(f"client/{client_id}", lambda: _tail(client_id))})
        streams, refusals = client_streams(public_id=client_id), client_refusals(public_id=client_id)
        subscriptions = client_subscriptions(public_id=client_id)
        held = client_summary(client=client, limit=_MAX_NAMES, attention=_MAX_ATTENTION)
        member = memberships_of(environment_key=client.environment, clients=[client])[client.id]
        lines = _lines(client, held)
        context = {
            "client": client,
            "groups": member.groups,
            "doubtful": member.doubtful,
            "types": _types(client, subscriptions, held, lines),
            "attention": [lines[each.type, each.name] for each in held.attention],
            "attention_count": held.attention_count,
            "standing": client_statuses(clients=[client])[client.id].value,
            "stream": next((each for each in streams if each.closed_at is None), None),
            "last_stream": streams[0] if streams else None,
            "events": _events(streams, refusals, subscriptions),
            "may_label": self.may(LABELLER),
            "understands": _UNDERSTANDS.get(client.family, _UNDERSTANDS_UNKNOWN),
            "bootstrap": _bootstrap(client),
            "bootstrap_family": "envoy" if client.family is ClientFamily.ENVOY else "grpc",
            "word": client_word(public_id=client_id),
            "all_types": RESOURCE_TYPES,
            "chart": _refused_chart(client_id),
        }
        return self.page(context)


def _refused_chart(client_id: str) -> Chart:
    """When the client refused something within a day, by type."""
    window = recent(DAY)
    return kept_nacks_chart(nack_times_of_client(public_id=client_id, since=window.since), window, label="type")


def _lines(client: ClientSummary, held: HeldSummary) -> Mapping[Key, HoldingLine]:
    """The line for each resource that the page of a client shows, by (type, name)."""
    rows = {(row.type, row.name): row for one in held.types.values() for row in one.rows}
    rows.update(((row.type, row.name), row) for row in held.attention)
    return dict(zip(rows, lines_of_client(client, tuple(rows.values())), strict=True))


def _types(
    client: ClientSummary,
    subscriptions: Sequence[SubscriptionView],
    held: HeldSummary,
    lines: Mapping[Key, HoldingLine],
) -> list[TypeShown]:
    found = []
    for each in client.types:
        of_type = held.types.get(each.type)
        found.append(
            TypeShown(
                by_word[each.type],
                each,
                tuple(one for one in subscriptions if one.type == each.type),
                tuple(lines[row.type, row.name] for row in of_type.rows) if of_type is not None else (),
                of_type.count if of_type is not None else 0,
                of_type.states if of_type is not None else frozenset(),
            )
        )
    return found


def _shown(environment_key: str, lines: Sequence[ClientLine]) -> list[Shown]:
    clients = [line.client for line in lines]
    told, member = told_of(clients=clients), memberships_of(environment_key=environment_key, clients=clients)
    differing = differing_counts(clients=[client.id for client in clients])
    return [
        Shown(line, told[key], member[key].groups, differing.get(key, 0), *_reads(line.client.family))
        for line, key in ((line, line.client.id) for line in lines)
    ]


def looks_of(lines: Sequence[ClientLine]) -> list[tuple[ClientLine, str]]:
    """Each of these clients with the key in `states.LOOKS` of the badge that shows how it stands."""
    told = told_of(clients=[line.client for line in lines])
    return [(line, client_status(line.standing, told[line.client.id]).value) for line in lines]


def _reads(family: ClientFamily) -> tuple[str, str]:
    return _READS.get(family, "unknown"), _UNDERSTANDS.get(family, _UNDERSTANDS_UNKNOWN)


def _tail(client_id: str) -> list[Run[Event]]:
    streams, refusals = client_streams(public_id=client_id), client_refusals(public_id=client_id)
    return _events(streams, refusals, client_subscriptions(public_id=client_id))


def _events(
    streams: tuple[StreamView, ...], refusals: tuple[NackView, ...], subscriptions: tuple[SubscriptionView, ...]
) -> list[Run[Event]]:
    """The stored events of a client, newest first, repeats folded. Of responses and ACKs, only the last of each type is
    stored.
    """
    events = [
        Event(each.sent_at, "SENT", "response", f"the last one of {each.type}")
        for each in subscriptions
        if each.sent_at is not None
    ]
    events += [
        Event(each.acked_at, "ACKED", "ACK", f"the last one of {each.type}")
        for each in subscriptions
        if each.acked_at is not None
    ]
    events += [
        Event(each.opened_at, "connected", "connected", f"from {each.peer} to {each.replica}, {each.variant}")
        for each in streams
    ]
    events += [
        Event(each.closed_at, "closed", "left", each.cause or "without a word")
        for each in streams
        if each.closed_at is not None
    ]
    events += [
        Event(
            each.at,
            "NACKED",
            "NACK",
            f"of {each.type}",
            each.text,
            each.repeats,
        )
        for each in refusals
    ]
    events.sort(key=lambda event: event.at, reverse=True)
    return runs(events, lambda event: (event.state, event.label, event.what, event.text))[:_MAX_EVENTS]


def _bootstrap(client: ClientSummary) -> str:
    """The bootstrap file to start this client with; empty where no selector leads a client with its node id to its
    environment.
    """
    config: Config = settings.PARLEY
    choices = tuple(state.choice for state in environment_list())
    try:
        node = node_for(config, client.node_id, client.environment, choices, cluster=client.node_cluster)
    except UnreachableError:
        return ""
    envoy = client.family is ClientFamily.ENVOY
    tree = envoy_bootstrap(config, node, Variant.SOTW) if envoy else grpc_bootstrap(config, node)
    return json.dumps(tree, indent=2)


urlpatterns = [
    path("e/<str:environment_key>/clients", ClientsPage.as_view(), name="clients"),
    path("clients/<str:client_id>", ClientPage.as_view(), name="client"),
]
PLACES = (Place(Section.NOW, 40, "Clients", "plug-connected", "clients", also=("client", "client-resources")),)
