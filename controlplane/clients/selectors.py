"""Answers who is connected, what each client was sent, and what waits to be digested. Values only, never rows.

For the REST API (interfaces.md section 4): `GET /clients` is `client_list` (keyset pages: pass the last id as `after`),
one `ClientSummary` each; `GET /clients/{id}` is `client_get` with `client_streams`; `GET /clients/{id}/subscriptions`
is `client_subscriptions`, one `SubscriptionView` per open stream and type, with the names. `{id}` is the opaque public
id. Lists are limited to environments the caller may read (`environment_keys`); `ClientSummary.environment` lets the
caller check a single client. For the front page: `connected_counts` and `replica_list`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Count, Q
from django.db.models.functions import RowNumber

from controlplane.catalog.values import ProvenContent
from controlplane.clients.clock import database_now
from controlplane.clients.facts import SubscriptionState, unpack_contents, unpack_names
from controlplane.clients.filtering import EVERY_CLIENT, ClientFilter, with_labels
from controlplane.clients.foreign_text import one_line
from controlplane.clients.models import Client, ContentProbe, ContentProof, Nack, NameSet, Replica, Stream, Subscription
from controlplane.clients.open_streams import streams_open
from controlplane.common.errors import NotFound
from xdscore.client_kinds import UNKNOWN_KIND, ClientFamily, kind_of
from xdscore.environment_choice import ClientFacts
from xdscore.evidence import Evidence
from xdscore.labels import Labels, label_words, unpacked
from xdscore.names import name_problem
from xdscore.shares import accountable
from xdscore.snapshot import client_mark

_OPEN = Q(closed_at=None)
_NAME_CHARS = 1_024


@dataclass(frozen=True, slots=True)
class TypeState:
    """The subscriptions of a client to one type, over all its open streams: the state that needs most attention,
    whether one has a wildcard, and how many names they ask for.
    """

    type: str
    state: SubscriptionState
    wildcard: bool
    names: int


@dataclass(frozen=True, slots=True)
class ClientSummary:
    """A client as a list shows it. `streams`: how many are open; `last_seen`: the time now while one is open; `labels`:
    what people gave it to be found by.
    """

    id: str
    environment: str
    identity: str
    node_id: str
    node_cluster: str
    family: ClientFamily
    user_agent: str
    user_agent_version: str
    streams: int
    first_seen: datetime
    last_seen: datetime
    types: tuple[TypeState, ...]
    labels: Labels = field(default_factory=dict)

    @property
    def label_words(self) -> tuple[str, ...]:
        """The labels of the client as people write them, by key."""
        return label_words(self.labels)

    @property
    def connected(self) -> bool:
        """Whether the client has an open stream."""
        return self.streams > 0

    @property
    def facts(self) -> ClientFacts:
        """The facts about the client by which rules and selectors judge it, without its metadata, which is not kept."""
        kind = kind_of(self.user_agent, self.user_agent_version)
        return ClientFacts(self.identity, self.node_id, self.node_cluster, kind=kind)


@dataclass(frozen=True, slots=True)
class StreamView:
    """One stream of a client, open or closed lately."""

    id: str
    replica: str
    variant: str
    peer: str
    opened_at: datetime
    closed_at: datetime | None
    cause: str


@dataclass(frozen=True, slots=True)
class SubscriptionView:
    """The subscription of a stream to one type. `sent`, `acked`: the versions on the wire that were last sent and last
    acknowledged; empty where there is none.
    """

    stream: str
    type: str
    wildcard: bool
    names: tuple[str, ...]
    state: SubscriptionState
    sent: str
    sent_at: datetime | None
    acked: str
    acked_at: datetime | None


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One ADS process that reported within the last day. `stopped`: whether it said that it ends."""

    id: str
    host: str
    pid: int
    started_at: datetime
    seen_at: datetime
    stopped: bool
    streams: int
    nacks_dropped: int


def client_list(
    *,
    environment_keys: Collection[str],
    wanted: ClientFilter = EVERY_CLIENT,
    after: str = "",
    limit: int = 100,
) -> tuple[ClientSummary, ...]:
    """Clients of these environments that meet a filter, ordered by id, beginning after the id `after`."""
    rows = client_rows().filter(environment__key__in=list(environment_keys), pk__gt=after)
    return client_summaries(wanted.applied(rows).order_by("pk")[:limit])


def client_get(*, public_id: str) -> ClientSummary:
    """The client with this id. Raises NotFound."""
    found = client_summaries(client_rows().filter(pk=public_id))
    if not found:
        raise NotFound(f"There is no client '{public_id[:64]}'. A client is forgotten a day after its last stream.")
    return found[0]


def client_facts(*, environment_key: str) -> tuple[ClientFacts, ...]:
    """The facts about every client of an environment, by which it is decided to which groups they belong; without their
    metadata, which is not kept.
    """
    rows = Client.objects.filter(environment__key=environment_key).order_by("pk")
    return tuple(
        ClientFacts(identity, node_id, node_cluster)
        for identity, node_id, node_cluster in rows.values_list("identity", "node_id", "node_cluster")
    )


def client_streams(*, public_id: str) -> tuple[StreamView, ...]:
    """The streams of a client, newest first, at most 100."""
    rows = Stream.objects.filter(client=public_id).select_related("replica").order_by("-opened_at")[:100]
    return tuple(
        StreamView(row.pk, str(row.replica), row.variant, row.peer, row.opened_at, row.closed_at, row.cause)
        for row in rows
    )


def client_subscriptions(*, public_id: str, at: datetime | None = None) -> tuple[SubscriptionView, ...]:
    """The subscriptions of a client's open streams, with every name; with `at`, as they were last of the streams that
    were open then. Raises NotFound.
    """
    found = _views(Subscription.objects.filter(stream__in=streams_open(public_id, at)))
    if not found and not Client.objects.filter(pk=public_id).exists():
        raise NotFound(f"There is no client '{public_id[:64]}'. A client is forgotten a day after its last stream.")
    return found


def client_subscriptions_last(*, public_id: str) -> tuple[SubscriptionView, ...]:
    """The subscriptions of that stream of the client which ended last; empty where no ended stream is stored."""
    ended = Stream.objects.filter(client=public_id, closed_at__isnull=False).order_by("-closed_at")
    return _views(Subscription.objects.filter(stream__in=list(ended.values_list("pk", flat=True)[:1])))


def _views(rows: models.QuerySet[Subscription]) -> tuple[SubscriptionView, ...]:
    return tuple(
        SubscriptionView(
            stream=row.stream_id,
            type=row.type,
            wildcard=row.wildcard,
            names=tuple(map(name_shown, unpack_names(bytes(row.name_set.names)))),
            state=SubscriptionState(row.state),
            sent=row.sent,
            sent_at=row.sent_at,
            acked=row.acked,
            acked_at=row.acked_at,
        )
        for row in rows.select_related("name_set").order_by("stream_id", "type")
    )


def name_shown(name: str) -> str:
    """The name as it is shown: unchanged where a resource may have it, else on one line and escaped."""
    return one_line(name, max_chars=_NAME_CHARS) if name_problem(name) else name


def connected_counts() -> Mapping[str, int]:
    """The number of clients with an open stream, by environment."""
    rows = Stream.objects.filter(_OPEN).values_list("client__environment__key")
    return dict(rows.annotate(count=Count("client", distinct=True)))


def subscription_counts() -> Mapping[SubscriptionState, int]:
    """The number of subscriptions of open streams in each state, over all types and environments."""
    rows = Subscription.objects.filter(stream__closed_at=None).values_list("state")
    counts = dict(rows.annotate(count=Count("stream_id")))
    return {state: counts.get(state.value, 0) for state in SubscriptionState}


def replica_list() -> tuple[ReplicaView, ...]:
    """The ADS processes that reported within the last day, those that reported last first."""
    seen = Replica.objects.filter(seen_at__gte=database_now() - timedelta(days=1))
    rows = seen.annotate(open_streams=Count("streams", filter=Q(streams__closed_at=None))).order_by("-seen_at")
    return tuple(
        ReplicaView(
            row.pk,
            row.host,
            row.pid,
            row.started_at,
            row.seen_at,
            row.stopped_at is not None,
            row.open_streams,
            row.nacks_dropped,
        )
        for row in rows
    )


def sent_before(moment: datetime) -> Mapping[int, frozenset[datetime]]:
    """The times, up to `moment`, at which connected clients were sent the responses that they still run, by environment
    id.
    """
    old = Subscription.objects.filter(stream__closed_at=None, sent_at__lt=moment)
    found: dict[int, set[datetime]] = {}
    for environment, sent_at in old.values_list("stream__client__environment_id", "sent_at").distinct():
        if sent_at is not None:
            found.setdefault(environment, set()).add(sent_at)
    return {environment: frozenset(moments) for environment, moments in found.items()}


ClientKey = tuple[str, str]
"""The identity and node id of a client."""


def clients_asking(*, environment_key: str, word: str, names: Collection[str]) -> Mapping[str, ClientKey]:
    """The connected clients, by id, that ask for one of these names of a type (empty: for any name of it)."""
    rows = Subscription.objects.filter(stream__closed_at=None)
    columns = ("stream__client_id", "stream__client__identity", "stream__client__node_id")
    found = covering(rows, environment_key, word, names).values_list(*columns).distinct()
    return {public_id: (identity, node_id) for public_id, identity, node_id in found}


def covering(
    rows: models.QuerySet[Subscription], environment_key: str, word: str, names: Collection[str]
) -> models.QuerySet[Subscription]:
    """The rows among `rows` of subscriptions to this type that ask for one of these names (empty: for any name of
    it).
    """
    rows = rows.filter(stream__client__environment__key=environment_key, type=word)
    if not names:
        return rows
    wanted = frozenset(names)
    sets = NameSet.objects.filter(pk__in=rows.filter(wildcard=False).values("name_set").distinct())
    asking = [
        pk for pk, packed in sets.values_list("pk", "names") if not wanted.isdisjoint(unpack_names(bytes(packed)))
    ]
    return rows.filter(Q(wildcard=True) | Q(name_set__in=asking))


@dataclass(frozen=True, slots=True)
class NackView:
    """A stored NACK. `text` is the client's, without secrets and harmless to show; `code` its status code.

    `resources`, `suspects`: the (name, version) of what the response held, and of the suspects among them.
    `evidence`: on what ground these are suspects.
    `repeats`: how many equal NACKs it stands for.
    `kept`: the (name, version) of what the client had acknowledged of the suspects; None where that was not stored.
    `healing`: whether the client was sent again what is in `kept`.
    `accountable`: the key of whoever is accountable for it when incidents are limited per party (`xdscore.shares`).
    """

    id: int
    environment: str
    client: str
    identity: str
    node_id: str
    family: ClientFamily
    type: str
    version: str
    code: int
    text: str
    resources: tuple[tuple[str, str], ...]
    suspects: tuple[tuple[str, str], ...]
    evidence: Evidence
    repeats: int
    at: datetime
    kept: tuple[tuple[str, str], ...] | None = None
    healing: bool = False
    accountable: str = ""


def nacks_pending(*, limit: int) -> tuple[NackView, ...]:
    """The NACKs that no incident has counted yet, oldest first. Where more than `limit` wait, each party that is
    accountable for some gets an equal share, its oldest ones, so that nobody waits for another's flood.
    """
    waiting = Nack.objects.filter(digested_at=None)
    oldest = list(waiting.order_by("id").values_list("id", flat=True)[: limit + 1])
    if len(oldest) > limit:
        turn = models.Window(RowNumber(), partition_by=["client__environment_id", "accountable"], order_by=["id"])
        oldest = list(waiting.annotate(turn=turn).order_by("turn", "id").values_list("id", flat=True)[:limit])
    return _nacks(Nack.objects.filter(pk__in=oldest).order_by("id")) if oldest else ()


def nacks_get(*, ids: Collection[int]) -> tuple[NackView, ...]:
    """The NACKs with these ids that are still kept, newest first."""
    return _nacks(Nack.objects.filter(pk__in=list(ids)).order_by("-id"))


def client_nacks(
    *, public_id: str, word: str = "", at: datetime | None = None, limit: int = 20
) -> tuple[NackView, ...]:
    """The NACKs of a client for a type (empty: for any) on its open streams, newest first; with `at`, those until then
    on the streams that were open then.
    """
    rows = Nack.objects.filter(client=public_id, stream__in=streams_open(public_id, at).values("pk"))
    if at is not None:
        rows = rows.filter(at__lte=at)
    if word:
        rows = rows.filter(type=word)
    return _nacks(rows.order_by("-id")[:limit])


def nacks_of(
    *, clients: Collection[str], words: Collection[str], until: datetime | None, limit: int
) -> tuple[NackView, ...]:
    """The NACKs of these clients for these types, newest first; with `until`, only those until then. One query."""
    rows = Nack.objects.filter(client__in=list(clients), type__in=list(words))
    if until is not None:
        rows = rows.filter(at__lte=until)
    return _nacks(rows.order_by("-id")[:limit])


@dataclass(frozen=True, slots=True)
class PendingProof:
    """A content that a client acknowledged and that the catalogue was not told of yet. `at`: when it was last
    reported.
    """

    content: ProvenContent
    at: datetime


def proofs_pending(*, limit: int) -> tuple[PendingProof, ...]:
    """The first `limit` contents that clients acknowledged and that the catalogue was not told of yet."""
    rows = ContentProof.objects.values_list("environment", "type", "name", "version", "at")[:limit]
    return tuple(PendingProof(ProvenContent(*content), at) for *content, at in rows)


@dataclass(frozen=True, slots=True)
class PendingProbe:
    """A content that a client acknowledged when it was sent it as a trial (probe), and that the catalogue was not told
    of yet.

    `kind`: the client's kind; `mark`: a hash that stands for the client.
    `verified`: whether the client proved who it is. Others can invent node ids, so that their word counts for little.
    """

    id: int
    content: ProvenContent
    kind: str
    mark: str
    verified: bool


def probes_pending(*, limit: int) -> tuple[PendingProbe, ...]:
    """The oldest `limit` contents that clients acknowledged when they were sent them as a trial (probe), and that the
    catalogue was not told of yet.
    """
    rows = ContentProbe.objects.select_related("client__environment").order_by("pk")[:limit]
    return tuple(
        PendingProbe(
            row.pk,
            ProvenContent(row.client.environment.key, row.type, row.name, row.version),
            str(kind_of(row.client.user_agent, row.client.user_agent_version)),
            client_mark(facts := ClientFacts(row.client.identity, row.client.node_id)),
            facts.verified,
        )
        for row in rows
    )


def marks_by_kind(clients: Mapping[str, ClientKey]) -> Mapping[str, frozenset[str]]:
    """For each kind of client, the marks (hashes that stand for clients) of those among `clients`, which are given by
    id. A client that is not stored any more counts as of unknown kind.
    """
    rows = Client.objects.filter(pk__in=list(clients)).values_list("pk", "user_agent", "user_agent_version")
    kinds = {pk: str(kind_of(user_agent, version)) for pk, user_agent, version in rows}
    found: dict[str, set[str]] = {}
    for pk, (identity, node_id) in clients.items():
        mark = client_mark(ClientFacts(identity, node_id))
        found.setdefault(kinds.get(pk, str(UNKNOWN_KIND)), set()).add(mark)
    return {kind: frozenset(marks) for kind, marks in found.items()}


def client_rows() -> models.QuerySet[Client]:
    """The database rows of all clients, with every column that `client_summaries` needs."""
    return with_labels(Client.objects.select_related("environment")).annotate(
        open_streams=Count("streams", filter=Q(streams__closed_at=None))
    )


# Which state of several streams a list shows: the one that needs attention.
_ATTENTION = (SubscriptionState.NACKED, SubscriptionState.SENT, SubscriptionState.REQUESTED, SubscriptionState.ACKED)


def client_summaries(rows: models.QuerySet[Client]) -> tuple[ClientSummary, ...]:
    """The summaries of the clients in `rows`, which begin with `client_rows`. Two queries."""
    clients = list(rows)
    types = _types_of([row.pk for row in clients])
    now = database_now()
    return tuple(
        ClientSummary(
            id=row.pk,
            environment=row.environment.key,
            identity=row.identity,
            node_id=row.node_id,
            node_cluster=row.node_cluster,
            family=ClientFamily(row.family),
            user_agent=row.user_agent,
            user_agent_version=row.user_agent_version,
            streams=(streams := int(getattr(row, "open_streams", 0))),
            first_seen=row.first_seen,
            last_seen=now if streams else row.last_seen,
            types=types.get(row.pk, ()),
            labels=unpacked(str(getattr(row, "labels", ""))),
        )
        for row in clients
    )


def _types_of(clients: list[str]) -> dict[str, tuple[TypeState, ...]]:
    rows = Subscription.objects.filter(stream__client__in=clients, stream__closed_at=None).values_list(
        "stream__client_id", "type", "state", "wildcard", "name_set__count"
    )
    found: dict[str, dict[str, TypeState]] = {}
    for client, word, text, wildcard, names in rows:
        state = SubscriptionState(text)
        other = found.setdefault(client, {}).get(word)
        if other is None:
            found[client][word] = TypeState(word, state, wildcard, names)
        else:
            worse = min(state, other.state, key=_ATTENTION.index)
            found[client][word] = TypeState(word, worse, wildcard or other.wildcard, max(names, other.names))
    return {client: tuple(states[word] for word in sorted(states)) for client, states in found.items()}


def _nacks(rows: models.QuerySet[Nack]) -> tuple[NackView, ...]:
    read: dict[str, tuple[tuple[str, str], ...]] = {}

    def contents(pk: str, packed: bytes) -> tuple[tuple[str, str], ...]:
        # Many NACKs answer one response: its list is read once.
        return read.setdefault(pk, unpack_contents(packed)) if pk not in read else read[pk]

    return tuple(
        NackView(
            id=row.pk,
            environment=row.client.environment.key,
            client=row.client_id,
            identity=row.client.identity,
            node_id=row.client.node_id,
            family=ClientFamily(row.client.family),
            type=row.type,
            version=row.version,
            code=row.code,
            text=row.text,
            resources=contents(row.resources_id, bytes(row.resources.contents)),
            suspects=contents(row.suspects_id, bytes(row.suspects.contents)),
            evidence=Evidence(row.evidence),
            repeats=row.repeats,
            at=row.at,
            kept=contents(row.kept.pk, bytes(row.kept.contents)) if row.kept is not None else None,
            healing=row.healing,
            # A process of the version before wrote none.
            accountable=row.accountable or accountable(identity=row.client.identity, peer=""),
        )
        for row in rows.select_related("client__environment", "resources", "suspects", "kept")
    )
