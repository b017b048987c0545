"""Clients in miniature.

What they are sent comes from the real catalogue, what they say goes through the real fact buffer.
"""

from dataclasses import replace

from adsserver.engine.body import EMPTY_BODY
from adsserver.engine.events import Fact, NamedContent, Respond
from adsserver.engine.holdings import BodyGround, Holdings
from adsserver.engine.holdings import acknowledged as taken
from adsserver.ports import StreamInfo
from adsserver.store.facts import FactBuffer
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import build
from controlplane.catalog.guarding import Consent
from controlplane.catalog.models import Environment, Resource, Revision
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Delete, Put
from controlplane.clients.facts import Serving
from tests.support.facts import NothingSecret, acknowledged, rejected, stream, subscribed
from tests.support.manifests import Tree, parsed
from tests.support.principals import somebody
from xdscore.holdings import REQUESTED, Holding, HoldingState
from xdscore.nacktext import attribute
from xdscore.resource_types import CLUSTER, ResourceType
from xdscore.snapshot import Content

DANA = somebody("dana", ADMIN_SCOPES)


def publish(*trees: Tree, delete: tuple[str, ...] = (), built: bool = True, losing: int = 0) -> str:
    """Apply and, unless said otherwise, build; the id of the change. `losing`: as many clients may lose something."""
    edits = [Put(parsed(tree)) for tree in trees] + [Delete(CLUSTER, name) for name in delete]
    consent = Consent(accept_loss=losing)
    made = change_apply(environment_key="default", edits=edits, actor=DANA, message="why", consent=consent)
    if built:
        rebuild()
    return made.change_id


def rebuild(environment: str = "default") -> None:
    """Build what is due."""
    build(environment_id=Environment.objects.get(key=environment).pk)


def revision(name: str, number: int) -> Revision:
    """A revision of a cluster."""
    return Revision.objects.get(resource__name=name, number=number)


def held(name: str, number: int) -> NamedContent:
    """What a response holds of a revision."""
    version = revision(name, number).version
    return NamedContent(name, Content(bytes(16), version, 1))


def proven(name: str) -> int:
    """The number of the revision a resource falls back to; 0 when there is none."""
    row = Resource.objects.get(name=name).proven
    return row.number if row is not None else 0


def _contents(response: Respond) -> dict[str, Content]:
    return {member.name: member.content for member in response.resources}


class Fleet:
    """Clients on one ADS process, each with a wildcard subscription to clusters. `identity`: what each can prove, the
    same for all of them unless it has `{number}` in it.
    """

    def __init__(
        self,
        count: int,
        *,
        identity: str = "",
        kind: ResourceType = CLUSTER,
        user_agent: str = "envoy",
        version: str = "1.40.0",
        first: int = 1,
        environment: str = "default",
        address: str = "127.0.0.1",
    ) -> None:
        self.kind = kind
        self.serves: dict[str, Serving] | None = None
        self.buffer = FactBuffer(serving=lambda: self.serves, contents=NothingSecret())
        agent = {"user_agent": user_agent, "user_agent_version": version}
        said = [
            stream(number, environment=environment, identity=identity.format(number=number), **agent)
            for number in range(first, first + count)
        ]
        self.streams = [replace(each, peer=f"ipv4:{address}:40000") for each in said]
        self._nonce = 0
        self._has: dict[str, dict[str, Holding]] = {each.id: {} for each in self.streams}
        for each in self.streams:
            self.buffer.opened(each)
            self.buffer.learnt(each, subscribed(wildcard=True, kind=kind))
            self._hold(each, {})
        self.write()

    def send(self, *contents: NamedContent, to: list[StreamInfo] | None = None) -> Respond:
        """Sent to everybody unless said otherwise; nobody answers yet."""
        self._nonce += 1
        response = Respond(self.kind, str(self._nonce), f"w{self._nonce}", contents)
        for each in self.streams if to is None else to:
            self.buffer.sent(each, response)
        self.write()
        return response

    def accept(self, *contents: NamedContent, who: slice = slice(None)) -> None:
        """Some acknowledge a response that holds these."""
        response = self.send(*contents)
        for each in self.streams[who]:
            self.buffer.learnt(each, acknowledged(response))
            self._hold(each, {name: taken(content.version) for name, content in _contents(response).items()})
        self.write()

    def refuse(
        self,
        response: Respond,
        message: str,
        *,
        suspects: tuple[NamedContent, ...],
        kept: tuple[NamedContent, ...] = (),
        who: slice = slice(None),
    ) -> None:
        """Some refuse a response they were sent; `kept` is what they had acknowledged of the suspects."""
        for each in self.streams[who]:
            self.buffer.learnt(each, replace(rejected(response, message, suspects=suspects), kept=kept))
            self._hold(each, self._refused(each, response, message, suspects, kept))
        self.write()

    def _refused(
        self,
        who: StreamInfo,
        response: Respond,
        message: str,
        suspects: tuple[NamedContent, ...],
        kept: tuple[NamedContent, ...],
    ) -> dict[str, Holding]:
        """What the engine would say of the names of this response: refused where it is certain, else unknown."""
        contents, had = _contents(response), self._has[who.id]
        named = attribute(message, type_url=self.kind.url, names=tuple(contents)).names
        blamed = {member.name for member in suspects}
        certain = {name for name in blamed if len(blamed) == 1 or name in named}
        copies = {member.name: member.content.version for member in kept}
        found = {}
        for name, content in contents.items():
            before = had.get(name, REQUESTED)
            if before.acked == content.version and name not in blamed:
                continue
            state = HoldingState.NACKED if name in certain else HoldingState.UNKNOWN
            found[name] = Holding(state, content.version, copies.get(name, before.acked))
        return found

    def _hold(self, who: StreamInfo, changed: dict[str, Holding]) -> None:
        has = self._has[who.id] = {**self._has[who.id], **changed}
        self.buffer.holds(who, self.kind, Holdings(BodyGround(EMPTY_BODY, tells=True), has))

    def learn(self, fact: Fact) -> None:
        """Everybody says this."""
        for each in self.streams:
            self.buffer.learnt(each, fact)
        self.write()

    def write(self) -> None:
        """What the fact thread does each second, on this thread's connection."""
        self.buffer._take(everything=True)
        self.buffer._flush()
        assert self.buffer._failing_since is None
