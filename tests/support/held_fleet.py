"""Clients of real engine sessions whose facts go into a real database; no sockets."""

from dataclasses import dataclass, field

from adsserver.engine.events import DeltaRequest, Nack, Respond, Variant
from adsserver.engine.session import Session
from adsserver.ports import StreamInfo
from adsserver.store.facts import FactBuffer
from controlplane.clients.identity import client_id
from tests.protocol.engine.world import World, session_of
from tests.support.facts import NothingSecret, stream
from xdscore.resource_types import CLUSTER, ResourceType


@dataclass
class Member:
    """One stream of a client."""

    info: StreamInfo
    session: Session
    kind: ResourceType
    unanswered: list[Respond] = field(default_factory=list)

    @property
    def client(self) -> str:
        return client_id(environment=self.info.environment, identity="", node_id=self.info.node_id)


class Fleet:
    """Delta clients of one world. `now`: the clock of the facts, moved by the test."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now = 100.0
        self.buffer = FactBuffer(clock=lambda: self.now, contents=NothingSecret())
        self.members: list[Member] = []

    def join(self, *names: str, kind: ResourceType = CLUSTER, node_id: str = "", speaks: bool = True) -> Member:
        """A new stream that asks for these names, or for everything; it does not answer yet."""
        info = stream(len(self.members) + 1, node_id=node_id)
        member = Member(info, session_of(self.world, Variant.DELTA), kind)
        self.members.append(member)
        self.buffer.opened(info)
        self._request(member, DeltaRequest(kind, subscribe=names or ("*",)), speaks=speaks)
        return member

    def publish(self) -> None:
        publication = self.world.publish()
        for member in self.members:
            member.session.offer(publication, self.now)
            self._compose(member)

    def ack(self, *members: Member) -> None:
        """These clients, or all, acknowledge everything that they were sent."""
        for member in members or self.members:
            while member.unanswered:
                self.ack_first(member)

    def ack_first(self, member: Member) -> None:
        """The client acknowledges what it was sent first."""
        self._request(member, DeltaRequest(member.kind, nonce=member.unanswered.pop(0).nonce))

    def nack(self, member: Member, message: str) -> None:
        """The client refuses what it was sent first, and leaves the rest unanswered."""
        nonce = member.unanswered.pop(0).nonce
        self._request(member, DeltaRequest(member.kind, nonce=nonce, nack=Nack(3, message)))

    def leave(self, member: Member) -> None:
        self.members.remove(member)
        self.buffer.closed(member.info, "it went")

    def write(self) -> None:
        """What the thread does each second, on this thread's connection; a second later."""
        self.now += 1.0
        self.buffer._take()
        self.buffer._flush()
        assert self.buffer._failing_since is None

    def _request(self, member: Member, request: DeltaRequest, *, speaks: bool = True) -> None:
        for fact in member.session.receive(request, self.now):
            self.buffer.learnt(member.info, fact, member.session.holdings(member.kind) if speaks else None)
        self._compose(member)

    def _compose(self, member: Member) -> None:
        while (response := member.session.compose(self.now)) is not None:
            member.unanswered.append(response)
            self.buffer.sent(member.info, response)
