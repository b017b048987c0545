"""What the status service reads back of the fleet, from facts that real sessions reported to a real database."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.db import connection
from envoy.config.cluster.v3 import cluster_pb2
from envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from adsserver.engine.events import DeltaRequest, Nack, Respond, SotwRequest, Variant
from adsserver.engine.publication import Publication
from adsserver.engine.session import EngineSettings, Session
from adsserver.ports import Directory, FleetClient, FleetUnavailableError, ResourceStatus, StreamInfo, SyncState
from adsserver.store.facts import FactBuffer
from adsserver.store.fleet import Fleet
from adsserver.store.fleet_status import GONE, NEWER, NO_SNAPSHOT
from controlplane.accounts.models import ApiToken, RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.accounts.selectors import user_principal
from controlplane.accounts.services import api_token_create, api_token_revoke
from controlplane.catalog.services import environment_default_ensure
from controlplane.clients.holding_words import NOT_SAID, SENTENCES
from controlplane.clients.identity import client_id
from controlplane.clients.models import Subscription
from controlplane.database.aliases import READER
from tests.support.ads import Catalogue, MemoryContents
from tests.support.ads_client import cluster, endpoints
from tests.support.facts import NothingSecret, stream
from tests.support.principals import somebody
from xdscore.access import AccessTable, Effect, Rule
from xdscore.client_groups import ClientGroup
from xdscore.client_kinds import kind_of
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.holdings import HoldingState
from xdscore.resource_types import CLUSTER, ENDPOINT, SECRET, ResourceType
from xdscore.sides import RolloutTable, client_digest

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER])]

URL = "http://parley.example"
DANA = somebody("dana", ADMIN_SCOPES)
CANARY = "hunter2hunter2"
Status = dict[str, ResourceStatus]


class World:
    """Publications, the facts of streams on them, and the fleet as an operator asks for it."""

    def __init__(self) -> None:
        self.contents = MemoryContents()
        self.catalogue = Catalogue(self.contents)
        self.facts = FactBuffer(contents=NothingSecret())
        self.now = 0.0
        self.fleet = Fleet(self.contents, clock=lambda: self.now)
        self.publication: Publication | None = None
        self.streams: list[FactStream] = []

    def publish(self, *messages: Message, access: AccessTable | None = None, told: bool = True) -> Directory:
        """Publish; the streams are told at once unless they are slow."""
        directory = self.catalogue.publish(*messages, access=access)
        self.publication = Publication(directory.snapshots["default"], self.publication)
        self.fleet.observe(directory)
        for each in self.streams if told else ():
            each.offer(self.publication)
        return directory

    def client(
        self,
        number: int = 1,
        variant: Variant = Variant.SOTW,
        metadata: Mapping[str, str] | None = None,
        **more: str,
    ) -> "FactStream":
        info = replace(stream(number, **more), variant=variant)
        self.streams.append(FactStream(self, info, metadata or {}))
        return self.streams[-1]

    def status(self, client: StreamInfo, *, contents: bool = False) -> Status:
        """By name, what is said of this client; a moment later than before."""
        self.facts._take(everything=True)
        self.facts._flush()
        self.now += 60
        (one,) = [each for each in self.fleet.clients() if each.node_id == client.node_id]
        ((_, statuses),) = self.fleet.resources([one], contents=contents)
        return {each.name: each for each in statuses}


class FactStream:
    """A real session whose facts go where those of streams go."""

    def __init__(self, world: World, info: StreamInfo, metadata: Mapping[str, str]) -> None:
        self.info = info
        self._facts = world.facts
        client = ClientFacts(
            info.identity,
            info.node_id,
            info.node_cluster,
            metadata,
            kind=kind_of(info.user_agent, info.user_agent_version),
        )
        self._session = Session(info.variant, client, EngineSettings(public_url=URL), world.publication)
        self.unanswered: list[Respond] = []
        self._names: dict[ResourceType, tuple[str, ...]] = {}
        self._facts.opened(info)

    def ask(self, kind: ResourceType, *names: str) -> "FactStream":
        self._names[kind] = names
        self._receive(SotwRequest(kind, names) if self._sotw else DeltaRequest(kind, names))
        return self

    def answer(self, nack: str = "") -> "FactStream":
        """Answer every response that came so far."""
        responses, self.unanswered = self.unanswered, []
        for each in responses:
            error = Nack(13, nack) if nack else None
            if self._sotw:
                self._receive(SotwRequest(each.kind, self._names[each.kind], each.nonce, nack=error))
            else:
                self._receive(DeltaRequest(each.kind, nonce=each.nonce, nack=error))
        return self

    def offer(self, publication: Publication) -> None:
        self._session.offer(publication, 0.0)
        self._write()

    @property
    def _sotw(self) -> bool:
        return self.info.variant is Variant.SOTW

    def _receive(self, request: SotwRequest | DeltaRequest) -> None:
        facts = self._session.receive(request, 0.0)
        for fact in facts:
            self._facts.learnt(self.info, fact, self._session.holdings(request.kind))
        self._write()

    def _write(self) -> None:
        while (response := self._session.compose(0.0)) is not None:
            self._facts.sent(self.info, response)
            self.unanswered.append(response)


@pytest.fixture
def world(database: str) -> World:
    return World()


@pytest.fixture
def quick(transactional_db: None) -> World:
    environment_default_ensure()
    return World()


@pytest.mark.parametrize("variant", Variant)
def test_status__sent_acknowledged_and_changed__is_told_per_resource(world: World, variant: Variant) -> None:
    world.publish(cluster("a"), cluster("b"))
    client = world.client(variant=variant).ask(CLUSTER, "a", "b", "none")

    assert {name: each.state for name, each in world.status(client.info).items()} == {
        "a": SyncState.STALE,
        "b": SyncState.STALE,
        "none": SyncState.NOT_SENT,
    }

    client.answer()
    after = world.status(client.info)
    assert [after[name].state for name in "ab"] == [SyncState.SYNCED] * 2
    assert after["none"].details.startswith("NOT_FOUND [XDS2101]")
    assert after["a"].updated_at is not None

    world.publish(cluster("a", 2), cluster("b"), told=False)
    later = world.status(client.info)
    had = after["a"].version
    assert (later["a"].state, later["a"].details) == (SyncState.NOT_SENT, NEWER.format(version=had))
    # In SotW it will have the version of a response that was not made yet.
    assert later["a"].version != had
    assert bool(later["a"].version) == (variant is Variant.DELTA)
    assert later["b"].state is SyncState.SYNCED


def test_status__in_sotw__has_the_version_of_the_response_that_the_client_knows(world: World) -> None:
    world.publish(cluster("a"), cluster("b"))
    client = world.client(variant=Variant.SOTW).ask(CLUSTER)
    (first,) = client.unanswered
    sent = world.status(client.info)
    had = world.status(client.answer().info)
    world.publish(cluster("a", 2), cluster("b"))
    (second,) = client.unanswered
    refused = world.status(client.answer(nack="no such thing").info)

    # K1, as Envoy's config_dump: contents have no version of their own there.
    assert [each["a"].version for each in (sent, had)] == [first.version] * 2
    assert (refused["a"].state, refused["a"].version) == (SyncState.ERROR, second.version)
    assert (refused["b"].state, refused["b"].version) == (SyncState.SYNCED, first.version)
    assert first.version not in {world.contents.add(cluster(name)).version for name in "ab"}


def test_status__rejected__is_an_error_with_the_client_s_words_and_its_neighbour_is_in_sync(world: World) -> None:
    world.publish(cluster("a"), cluster("b"))
    client = world.client().ask(CLUSTER).answer()
    before = world.status(client.info)
    world.publish(cluster("a", 2), cluster("b"))

    client.answer(nack="no such thing")
    status = world.status(client.info)

    had = before["a"].version
    assert status["a"].state is SyncState.ERROR
    assert status["a"].details == f"no such thing. It goes on with version {had}."
    assert status["b"].state is SyncState.SYNCED


def test_status__rejected_by_a_client_that_is_healed__says_so_and_its_neighbours_are_in_sync(world: World) -> None:
    world.publish(cluster("a"), cluster("b"))
    client = world.client(user_agent="gRPC C-core linux Python").ask(CLUSTER).answer()
    before = world.status(client.info)
    world.publish(cluster("a", 2), cluster("b"))

    client.answer(nack="no such thing").answer()
    status = world.status(client.info)

    had = before["a"].version
    assert status["a"].state is SyncState.ERROR
    assert status["a"].details == f"no such thing. It was given version {had} again."
    assert status["b"].state is SyncState.SYNCED


def test_status__two_streams_of_one_client__show_what_needs_attention(quick: World) -> None:
    quick.publish(endpoints("a"))
    first = quick.client(1, node_id="n").ask(ENDPOINT, "a").answer()
    quick.client(2, node_id="n").ask(ENDPOINT, "a")

    (a,) = quick.status(first.info).values()

    assert (a.state, a.details) == (
        SyncState.STALE,
        f"{SENTENCES[HoldingState.SENT]} This is so on 1 of its 2 streams.",
    )  # protocol.md K3


def test_status__rules_of_groups__each_client_has_its_own_view(quick: World) -> None:
    groups = (ClientGroup("edge", (Selector(node_cluster="edge"),)),)
    rules = (Rule(1, Effect.ALLOW, "a*", frozenset({"edge"})),)
    access = AccessTable(Effect.DENY, groups, rules)
    quick.publish(cluster("a1"), cluster("b1"), access=access)
    edge = quick.client(1, node_cluster="edge").ask(CLUSTER).answer()
    other = quick.client(2, node_cluster="core").ask(CLUSTER, "a1").answer()

    assert {name: each.state for name, each in quick.status(edge.info).items()} == {"a1": SyncState.SYNCED}
    (denied,) = quick.status(other.info).values()
    assert denied.state is SyncState.NOT_SENT
    assert denied.details.startswith("PERMISSION_DENIED [XDS2103]")

    had = quick.status(edge.info)["a1"].version
    quick.publish(cluster("a1", 2), cluster("b1", 2), access=access, told=False)
    assert quick.status(edge.info)["a1"].details == NEWER.format(version=had)


def test_status__rules_by_metadata__each_client_has_what_its_stream_was_told(quick: World) -> None:
    groups = (ClientGroup("blue", (Selector(metadata={"colour": "blue"}),)),)
    rules = (Rule(1, Effect.ALLOW, "*", frozenset({"blue"})),)
    quick.publish(cluster("a"), access=AccessTable(Effect.DENY, groups, rules))
    blue = quick.client(1, metadata={"colour": "blue"}).ask(CLUSTER, "a").answer()
    other = quick.client(2).ask(CLUSTER, "a").answer()

    (allowed,), (denied,) = quick.status(blue.info).values(), quick.status(other.info).values()

    assert (allowed.state, allowed.details) == (SyncState.SYNCED, "")
    assert (denied.state, denied.details[:27]) == (SyncState.NOT_SENT, "PERMISSION_DENIED [XDS2103]")


def test_status__nothing_of_the_name_is_published_any_more__was_not_told_so_yet(quick: World) -> None:
    quick.publish(cluster("a"), cluster("b"))
    client = quick.client().ask(CLUSTER).answer()
    had = quick.status(client.info)["a"].version
    quick.publish(cluster("b"), told=False)

    status = quick.status(client.info)

    assert (status["a"].state, status["a"].version) == (SyncState.NOT_SENT, "")
    assert status["a"].details == GONE.format(version=had)
    assert status["b"].state is SyncState.SYNCED


def test_status__one_of_several_was_refused_and_nobody_knows_which__is_unknown_for_these_alone(quick: World) -> None:
    quick.publish(cluster("a"), cluster("b"), cluster("c"))
    client = quick.client().ask(CLUSTER).answer()
    quick.publish(cluster("a", 2), cluster("b", 2), cluster("c"))

    client.answer(nack="no")
    status = quick.status(client.info)

    assert {name: each.state for name, each in status.items()} == {
        "a": SyncState.STALE,  # it was sent again by itself
        "b": SyncState.UNKNOWN,
        "c": SyncState.SYNCED,
    }
    assert status["b"].details == SENTENCES[HoldingState.UNKNOWN]


def test_status__by_the_word_of_a_process_of_the_version_before__is_unknown_and_says_why(quick: World) -> None:
    quick.publish(cluster("a"))
    client = quick.client().ask(CLUSTER, "a").answer()
    quick.status(client.info)
    Subscription.objects.update(holding_set=None, held_at=None)

    (a,) = quick.status(client.info).values()

    assert (a.state, a.details) == (SyncState.UNKNOWN, NOT_SAID)


def test_status__nothing_loaded_here__what_was_acknowledged_is_told_and_whether_it_is_published_is_not(
    quick: World,
) -> None:
    directory = quick.publish(cluster("a"))
    client = quick.client().ask(CLUSTER, "a", "none").answer()
    version = quick.status(client.info)["a"].version
    quick.fleet.observe(replace(directory, snapshots={}))

    status = quick.status(client.info)

    assert (status["a"].state, status["a"].version, status["a"].details) == (SyncState.UNKNOWN, version, NO_SNAPSHOT)
    assert status["none"].details.startswith("NOT_FOUND [XDS2101]")


def test_contents__secrets__are_never_shown(quick: World) -> None:
    secret = secret_pb2.Secret(name="key")
    secret.tls_certificate.private_key.inline_string = CANARY
    secret.tls_certificate.certificate_chain.inline_string = "public"
    hidden = cluster("tls")
    context = hidden.transport_socket
    context.name = "tls"
    context.typed_config.Pack(secret)
    quick.publish(secret, hidden, cluster("plain"), access=AccessTable(Effect.ALLOW, rules=(SECRETS,)))
    client = quick.client().ask(SECRET, "key").ask(CLUSTER, "tls", "plain")

    status = quick.status(client.info, contents=True)

    assert all(status[name].config for name in ("key", "tls", "plain"))
    assert not any(CANARY.encode() in each.config for each in status.values())  # reliability S5
    assert b"public" in status["key"].config
    shown = AnyMessage.FromString(status["plain"].config)
    assert cluster_pb2.Cluster.FromString(shown.value) == cluster("plain")


SECRETS = Rule(1, Effect.ALLOW, "*", types=frozenset({"secret"}))


def test_contents__not_asked_for__are_not_read(quick: World) -> None:
    quick.publish(cluster("a"))
    client = quick.client().ask(CLUSTER)
    before = dict(quick.contents.asked)

    assert quick.status(client.info)["a"].config == b""
    assert quick.contents.asked == before


def test_clients__closed_streams__are_not_connected(quick: World) -> None:
    quick.publish(cluster("a"))
    open_one, closed = quick.client(1).ask(CLUSTER), quick.client(2).ask(CLUSTER)
    quick.status(open_one.info)
    quick.facts.closed(closed.info, "the client ended the stream")
    quick.status(open_one.info)

    assert [each.node_id for each in quick.fleet.clients()] == [open_one.info.node_id]
    (only,) = quick.fleet.clients()
    assert only == FleetClient(
        client_id(environment="default", identity="", node_id="node-1"),
        "default",
        "",
        "node-1",
        "demo",
        "envoy",
        "1.40.0",
    )


def test_status__rollout_open__each_client_is_held_against_its_own_side(quick: World) -> None:
    quick.publish(cluster("a", 1), cluster("b", 1))
    picked, other = quick.client(1, Variant.DELTA), quick.client(2, Variant.DELTA)
    for each in (picked, other):
        each.ask(CLUSTER, "a", "b").answer()
    digest = client_digest("default", ClientFacts(node_id=picked.info.node_id))
    directory = quick.catalogue.roll(RolloutTable("r1", 0, frozenset({digest}), (), 0, "seed"), cluster("a", 2))
    quick.publication = Publication(directory.snapshots["default"], quick.publication)
    quick.fleet.observe(directory)

    behind = quick.status(picked.info)["a"]
    picked.offer(quick.publication)
    picked.answer()
    has, stable = quick.status(picked.info)["a"], quick.status(other.info)["a"]

    candidate = quick.contents.add(cluster("a", 2)).version
    assert behind.version != candidate
    assert (has.state, has.version, has.details) == (SyncState.SYNCED, candidate, "")
    assert (stable.state, stable.version) == (SyncState.SYNCED, behind.version)


@pytest.fixture
def token(quick: World) -> Callable[..., tuple[ApiToken, str]]:
    quick.publish(cluster("a"))

    def issue(*scopes: Scope) -> tuple[ApiToken, str]:
        return api_token_create(name="t", scopes=scopes, actor=DANA)

    return issue


def test_reader__token_of_a_role__reads_the_environments_it_may_see(
    quick: World, token: Callable[..., tuple[ApiToken, str]]
) -> None:
    _, everywhere = token(Scope(Role.VIEWER, None))
    _, here = token(Scope(Role.VIEWER, "default"))
    _, elsewhere = token(Scope(Role.VIEWER, "prod"))

    readers = [quick.fleet.reader(text) for text in (everywhere, here, elsewhere)]

    assert [each.environments if each else None for each in readers] == [
        frozenset({"default"}),
        frozenset({"default"}),
        frozenset(),
    ]


def test_reader__token_that_is_revoked__reads_nothing_from_then_on(
    quick: World, token: Callable[..., tuple[ApiToken, str]]
) -> None:
    row, text = token(Scope(Role.VIEWER, None))
    assert quick.fleet.reader(text) is not None

    api_token_revoke(token=row, actor=DANA)

    assert quick.fleet.reader(text) is None
    assert quick.fleet.reader("") is None
    assert quick.fleet.reader("x" * 10_000) is None


def test_reader__token_of_a_person__reads_what_that_person_may_see_at_that_moment(quick: World) -> None:
    user = User.objects.create_user("paula")
    grant = RoleGrant.objects.create(user=user, role="admin", environment="default")
    paula = user_principal(user)
    assert paula is not None
    quick.publish(cluster("a"))
    _row, text = api_token_create(name="t", scopes=(Scope(Role.VIEWER, "default"),), actor=paula)

    def sees() -> frozenset[str] | None:
        reader = quick.fleet.reader(text)
        return reader.environments if reader is not None else None

    seen = [sees()]
    grant.delete()
    seen.append(sees())
    User.objects.filter(pk=user.pk).update(is_active=False)

    assert [*seen, sees()] == [frozenset({"default"}), frozenset(), None]


def test_reader__tokens_of_one_name_in_two_environments__each_reads_its_own(quick: World) -> None:
    quick.publish(cluster("a"))
    texts = [
        api_token_create(name="deploy", scopes=(Scope(Role.ADMIN, key),), actor=DANA)[1] for key in ("default", "prod")
    ]

    readers = [quick.fleet.reader(text) for text in texts]

    assert [each.environments if each else None for each in readers] == [frozenset({"default"}), frozenset()]
    assert len({each.name for each in readers if each}) == 2  # as the log calls them


@pytest.fixture
def database_away(quick: World) -> Iterator[World]:
    quick.publish(cluster("a"))
    where = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = "/nowhere/db.sqlite3"
    yield quick
    connection.close()
    connection.settings_dict["NAME"] = where


def test_fleet__database_away__says_so_and_guesses_nothing(database_away: World) -> None:
    for ask in (lambda: database_away.fleet.reader("parley_x"), database_away.fleet.clients):
        with pytest.raises(FleetUnavailableError, match="database does not answer"):
            ask()


def test_fleet__nothing_loaded__nobody_is_known_yet(quick: World) -> None:
    with pytest.raises(FleetUnavailableError, match="loaded nothing"):
        quick.fleet.reader("parley_x")
