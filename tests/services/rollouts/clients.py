"""Clients in miniature: real engine sessions of one ADS process, whose facts go into a real database; no sockets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from django.db.models import F

from adsserver.engine.events import DeltaRequest, Nack, Respond, Variant
from adsserver.engine.publication import Publication
from adsserver.engine.session import Session
from adsserver.ports import Directory, StreamInfo
from adsserver.servicers.ends import CLIENT_ENDED
from adsserver.store.contents import ContentMemory
from adsserver.store.facts import FactBuffer
from adsserver.store.last_good import LastGood
from adsserver.store.loader import Loader
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import build
from controlplane.catalog.models import Environment
from controlplane.catalog.rollout_settings import settings_from_json, settings_to_store
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Delete, Put
from controlplane.clients.identity import client_id
from controlplane.rollouts.models import Rollout, RolloutPick
from controlplane.rollouts.selectors import rollout_get
from controlplane.rollouts.services import rollout_tick
from controlplane.rollouts.values import RolloutView
from tests.protocol.engine.world import SETTINGS
from tests.support.facts import NothingSecret, stream
from tests.support.manifests import Tree, parsed
from tests.support.principals import somebody
from xdscore.client_kinds import kind_of
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import CLUSTER, ResourceType

DANA = somebody("dana", ADMIN_SCOPES)
OPAL = somebody("opal", ADMIN_SCOPES)
ENVOY = ("envoy", "1.40.0")
GO = ("gRPC Go linux", "1.66.0")


def switch_on(**settings: object) -> None:
    """Let changes of the default environment go by rollouts."""
    read = settings_from_json({"mode": "pilot", **settings})
    Environment.objects.filter(key="default").update(rollout=settings_to_store(read))


def environment_id() -> int:
    return Environment.objects.get(key="default").pk


def write(*trees: Tree, delete: tuple[str, ...] = ()) -> str:
    """Write resources; the id of the change."""
    edits: list[Put | Delete] = [Put(parsed(tree)) for tree in trees]
    edits.extend(Delete(CLUSTER, name) for name in delete)
    return change_apply(environment_key="default", edits=edits, actor=DANA, message="why").change_id


@dataclass
class Member:
    """A client with one stream. `refuses`: the names of which it refuses every content but those that it took before;
    `dies`: those whose new content ends its process; `answers`: whether it answers at all.
    """

    info: StreamInfo
    session: Session
    kind: ResourceType
    refuses: frozenset[str] = frozenset()
    dies: frozenset[str] = frozenset()
    answers: bool = True
    has: dict[str, str] = field(default_factory=dict)
    took: set[tuple[str, str]] = field(default_factory=set)
    seen: set[tuple[str, str]] = field(default_factory=set)
    unanswered: list[Respond] = field(default_factory=list)

    @property
    def client(self) -> str:
        return client_id(environment="default", identity=self.info.identity, node_id=self.info.node_id)


class Fleet:
    """Delta clients of one ADS process. `now`: the clock of the facts."""

    def __init__(self, folder: Path) -> None:
        self._directories: list[Directory] = []
        self._loader = Loader(
            contents=ContentMemory(), last_good=LastGood(folder), on_directory=self._directories.append
        )
        self._publication: Publication | None = None
        self.now = 100.0
        self.buffer = FactBuffer(clock=lambda: self.now, contents=NothingSecret())
        self.members: dict[str, Member] = {}
        self._streams = 0
        build(environment_id=environment_id())
        self.look()

    def join(
        self,
        node_id: str,
        *names: str,
        identity: str = "",
        agent: tuple[str, str] = ENVOY,
        refuses: tuple[str, ...] = (),
        answers: bool = True,
        kind: ResourceType = CLUSTER,
    ) -> Member:
        """A new client that asks for these names, or for everything."""
        self._streams += 1
        info = stream(
            self._streams, node_id=node_id, identity=identity, user_agent=agent[0], user_agent_version=agent[1]
        )
        facts = ClientFacts(identity, node_id, "demo", kind=kind_of(*agent))
        session = Session(Variant.DELTA, facts, SETTINGS, self._publication)
        member = Member(info, session, kind, frozenset(refuses), answers=answers)
        self.members[node_id] = member
        self.buffer.opened(info)
        self._request(member, DeltaRequest(kind, subscribe=names or ("*",)))
        self.settle()
        return member

    def leave(self, node_id: str, cause: str = CLIENT_ENDED.cause) -> None:
        """The client's process ends, its stream with it; or the ADS process ended the stream for this cause."""
        member = self.members.pop(node_id)
        self.buffer.closed(member.info, cause)

    def look(self) -> None:
        """The ADS process takes in what was published."""
        self._loader._look()
        snapshot = self._directories[-1].snapshots.get("default") if self._directories else None
        if snapshot is None or (self._publication is not None and snapshot is self._publication.snapshot):
            return
        self._publication = Publication(snapshot, self._publication)
        for member in self.members.values():
            member.session.offer(self._publication, self.now)
            self._compose(member)
        for node_id, member in list(self.members.items()):
            sent = {(each.name, each.content.version) for some in member.unanswered for each in some.resources}
            if any(name in member.dies for name, _ in sent - member.took):
                self.leave(node_id)  # before anything of it was written

    def settle(self) -> None:
        """Everybody answers, until nobody has anything to answer any more."""
        self.write()
        while any(member.unanswered for member in self.members.values() if member.answers):
            for member in list(self.members.values()):
                while member.answers and member.unanswered:
                    self._answer(member, member.unanswered.pop(0))
        self.write()

    def write(self) -> None:
        """What the thread does each second, on this thread's connection."""
        self.now += 0.001  # facts are as old as this clock says, and must not be older than what they are about
        self.buffer._take(everything=True)
        self.buffer._flush()
        assert self.buffer._failing_since is None

    def has(self, name: str) -> dict[str, str]:
        """What each client goes on with of a name, by node id."""
        return {node_id: member.has[name] for node_id, member in self.members.items() if name in member.has}

    def saw(self, name: str, version: str) -> set[str]:
        """Who was ever sent this content."""
        return {node_id for node_id, member in self.members.items() if (name, version) in member.seen}

    def _answer(self, member: Member, response: Respond) -> None:
        sent = {each.name: each.content.version for each in response.resources}
        bad = sorted(name for name in sent.keys() & member.refuses if (name, sent[name]) not in member.took)
        if bad:
            places = [(place, each.name) for place, each in enumerate(response.resources) if each.name in bad]
            said = "; ".join(f"[resource index {place}: {name}: INVALID]" for place, name in places)
            nack = Nack(3, f"xDS response validation errors: {said}")
            self._request(member, DeltaRequest(member.kind, nonce=response.nonce, nack=nack))
            return
        member.has |= sent
        member.took |= set(sent.items())
        for name in response.removed:
            member.has.pop(name, None)
        self._request(member, DeltaRequest(member.kind, nonce=response.nonce))

    def _request(self, member: Member, request: DeltaRequest) -> None:
        for fact in member.session.receive(request, self.now):
            self.buffer.learnt(member.info, fact, member.session.holdings(member.kind))
        self._compose(member)

    def _compose(self, member: Member) -> None:
        while (response := member.session.compose(self.now)) is not None:
            member.unanswered.append(response)
            member.seen |= {(each.name, each.content.version) for each in response.resources}
            self.buffer.sent(member.info, response)


def later(seconds: float) -> None:
    """Let this time pass since clients were asked."""
    back = timedelta(seconds=seconds)
    Rollout.objects.update(evidence_at=F("evidence_at") - back)
    RolloutPick.objects.update(asked_at=F("asked_at") - back)


def deliver(fleet: Fleet) -> None:
    """A worker builds, ADS loads, clients answer."""
    build(environment_id=environment_id())
    fleet.look()
    fleet.settle()


def rollout_now() -> RolloutView:
    """The newest rollout."""
    return rollout_get(public_id=str(Rollout.objects.latest("pk").public_id))


def go_on(fleet: Fleet, *, until: Callable[[], bool] = lambda: False, turns: int = 20) -> None:
    """Let everybody do what it does: workers look and build, ADS loads, clients answer; until nothing moves."""
    for _ in range(turns):
        before = _mark()
        rollout_tick(environment_id=environment_id())
        build(environment_id=environment_id())
        fleet.look()
        fleet.settle()
        if until() or _mark() == before:
            return
    raise AssertionError("it never comes to rest")


def _mark() -> tuple[object, ...]:
    row = Rollout.objects.order_by("-pk").first()
    generations = Environment.objects.values_list("generation", "built_generation").get(key="default")
    return (*generations, *((row.pk, row.state, row.step, row.evidence_at, row.counts) if row is not None else ()))
