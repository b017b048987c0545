"""A stream after its first request: the parts that this fixes."""

from collections.abc import Iterable
from dataclasses import dataclass

from adsserver.engine.events import Fact
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
