"""Clients in miniature.

What they are sent comes from the real catalogue, what they say goes through the real fact buffer.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adsserver.engine.body import EMPTY_BODY
from adsserver.engine.events import Acknowledged, Fact, NamedContent, Rejected, Respond, Subscribed, Violated
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
from controlplane.snapshots.selectors import snapshot_of_name, snapshot_of_names
from tests.support.facts import NothingSecret, acknowledged, rejected, stream, subscribed
from tests.support.manifests import Tree, parsed
from tests.support.principals import somebody
from xdscore.decision import decide
from xdscore.environment_choice import ClientFacts
from xdscore.errors import error_of
from xdscore.evidence import Evidence
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


class _Saying(FactBuffer):
    """A buffer that is also told what clients have, as an engine would tell it from what they say."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self._has: dict[tuple[str, ResourceType], dict[str, Holding]] = defaultdict(dict)

    def learnt(self, stream: StreamInfo, fact: Fact, holdings: Holdings | None = None) -> None:
        """Note the fact, and what the client has since."""
        assert holdings is None, "this buffer knows by itself"
        super().learnt(stream, fact)
        if isinstance(fact, Violated):
            return
        has = self._has[stream.id, fact.kind]
        if isinstance(fact, Subscribed):
            asked = _asked(stream, fact, has)
            has = self._has[stream.id, fact.kind] = {**has, **asked} if fact.wildcard else asked
        if isinstance(fact, Acknowledged):
            for name in fact.removed:
                has.pop(name, None)
            for name, version in ((member.name, member.content.version) for member in fact.resources):
                before = has.get(name, REQUESTED)
                stands_in = before.state is HoldingState.NACKED and _is_published(
                    stream, fact.kind, name, before.version
                )
                has[name] = before._replace(acked=version) if stands_in else taken(version)
        if isinstance(fact, Rejected):
            has.update(_refused(fact, has))
        self.holds(stream, fact.kind, Holdings(BodyGround(EMPTY_BODY, tells=True), dict(has)))


def _is_published(stream: StreamInfo, kind: ResourceType, name: str, version: str) -> bool:
    """Whether the name is served in this version; to who refused it, something else stands in for it."""
    snapshot = snapshot_of_name(environment_key=stream.environment, kind=kind, name=name)
    served = snapshot.type_state(kind).served.get(name) if snapshot is not None else None
    return served is not None and served.content.version == version


def _asked(stream: StreamInfo, fact: Subscribed, had: Mapping[str, Holding]) -> dict[str, Holding]:
    """What the client has of the names that it asks for by name: of what it is told an error, nothing."""
    keys = {(fact.kind.word, name) for name in fact.names}
    snapshot = snapshot_of_names(environment_key=stream.environment, keys=keys) if keys else None
    if snapshot is None:
        return {name: had.get(name, REQUESTED) for name in fact.names}
    audience = snapshot.audience(ClientFacts(stream.identity, stream.node_id, stream.node_cluster))
    found = {}
    for name in fact.names:
        decision = decide(audience, fact.kind, name, snapshot)
        error = error_of(decision, kind=fact.kind, name=name, environment=stream.environment, public_url="")
        before = had.get(name, REQUESTED)
        if error is not None:
            before = Holding(HoldingState.ERROR_SENT, "", before.acked, error.xds_code, error.text)
        found[name] = before
    return found


def _refused(fact: Rejected, had: Mapping[str, Holding]) -> dict[str, Holding]:
    """What the client has of the names of a response that it refused: the culprit is certain if it is the only suspect,
    or named.
    """
    names = tuple(member.name for member in fact.resources)
    named = attribute(fact.nack.message, type_url=fact.kind.url, names=names).names
    blamed = {member.name for member in fact.suspects}
    kept = {member.name: member.content.version for member in fact.kept}
    found = {}
    for name, version in ((member.name, member.content.version) for member in fact.resources):
        before = had.get(name, REQUESTED)
        if before.acked == version and name not in blamed:
            continue
        certain = name in blamed and (len(blamed) == 1 or name in named)
        state = HoldingState.NACKED if certain else HoldingState.UNKNOWN
        found[name] = Holding(state, version, kept.get(name, before.acked))
    return found


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
        self.buffer = _Saying(serving=lambda: self.serves, contents=NothingSecret())
        agent = {"user_agent": user_agent, "user_agent_version": version}
        said = [
            stream(number, environment=environment, identity=identity.format(number=number), **agent)
            for number in range(first, first + count)
        ]
        self.streams = [replace(each, peer=f"ipv4:{address}:40000") for each in said]
        self._nonce = 0
        for each in self.streams:
            self.buffer.opened(each)
            self.buffer.learnt(each, subscribed(wildcard=True, kind=kind))
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
        self.write()

    def refuse(
        self,
        response: Respond,
        message: str,
        *,
        suspects: tuple[NamedContent, ...],
        kept: tuple[NamedContent, ...] = (),
        who: slice = slice(None),
        evidence: Evidence | None = None,
    ) -> None:
        """Some refuse a response they were sent; `kept` is what they had acknowledged of the suspects. A single suspect
        is the only change, unless `evidence` says otherwise.
        """
        fact = replace(rejected(response, message, suspects=suspects), kept=kept)
        for each in self.streams[who]:
            self.buffer.learnt(each, replace(fact, evidence=evidence or fact.evidence))
        self.write()

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
