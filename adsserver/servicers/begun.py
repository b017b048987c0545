"""A stream, or a subscription that is polled, after its first request: the parts that this fixes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from adsserver.engine.events import Fact, Variant
from adsserver.engine.session import Session
from adsserver.engine.settings import EngineSettings
from adsserver.identity.identification import Caller
from adsserver.ports import Facts, StreamInfo
from adsserver.servicers.ends import StreamEndError, not_as, not_in
from adsserver.servicers.shared import Shared, stream_id
from adsserver.wire.discovery import NodeFacts
from xdscore.client_kinds import kind_of
from xdscore.environment_choice import ClientFacts
from xdscore.sides import Side


@dataclass(frozen=True, slots=True)
class Begun:
    """The parts of a stream that are fixed by its first request."""

    node: NodeFacts
    client: ClientFacts
    info: StreamInfo
    session: Session

    @classmethod
    def of(
        cls,
        shared: Shared,
        caller: Caller,
        node: NodeFacts,
        variant: Variant,
        peer: str,
        *,
        settings: EngineSettings,
        polls: bool = False,
        phase_s: float = 0.0,
    ) -> Self:
        """What begins with this node, in the environment that is chosen for it. Who `polls` is told of no ttl: nothing
        could be renewed. `phase_s`: as `Session` has it. Raises StreamEndError where the caller may not be served
        there.
        """
        kind = kind_of(node.user_agent, node.user_agent_version)
        client = ClientFacts(caller.identity, node.id, node.cluster, node.metadata, kind)
        environment = shared.hub.choose(client)
        if caller.environment not in {"", environment}:
            raise StreamEndError(not_in(caller.environment, caller.identity))
        if not shared.hub.takes(client, environment):
            raise StreamEndError(not_as(node.id, caller.identity))
        info = StreamInfo(
            id=stream_id(),
            environment=environment,
            identity=caller.identity,
            node_id=node.id,
            node_cluster=node.cluster,
            user_agent=node.user_agent,
            user_agent_version=node.user_agent_version,
            variant=variant,
            peer=peer,
            polls=polls,
        )
        session = Session(
            variant,
            client,
            settings,
            shared.hub.publication(environment),
            takes_ttls=node.takes_ttls and not polls,
            phase_s=phase_s,
        )
        return cls(node, client, info, session)

    def said(self, facts: Facts, said: Iterable[Fact]) -> None:
        """Note, after the facts `said` of the stream, that a rollout's judge waits for them, if it does."""
        if self.session.judged_by(said):
            facts.awaited(self.info)

    def left(self, facts: Facts) -> None:
        """Note, after the end of the stream, that a rollout's judge waits for that, if it does: who is lost before the
        answer says something, too (rollouts.md R9).
        """
        if self.session.audience.side is Side.CANDIDATE:
            facts.awaited(self.info)
