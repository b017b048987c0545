"""A stream after its first request: the parts that this fixes."""

from dataclasses import dataclass

from adsserver.engine.session import Session
from adsserver.ports import Facts, StreamInfo
from adsserver.wire.discovery import NodeFacts
from xdscore.environment_choice import ClientFacts
from xdscore.sides import Side


@dataclass(frozen=True, slots=True)
class Begun:
    """The parts of a stream that are fixed by its first request."""

    node: NodeFacts
    client: ClientFacts
    info: StreamInfo
    session: Session

    def said(self, facts: Facts) -> None:
        """Note, after other facts of the stream, that a rollout's judge waits for them: if the client is on the
        candidate side.
        """
        if self.session.audience.side is Side.CANDIDATE:
            facts.awaited(self.info)
