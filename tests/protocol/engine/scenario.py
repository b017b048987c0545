"""One stream driven by hand, for scenarios: requests in, responses out, ACKs on demand."""

from adsserver.engine.events import DeltaRequest, Fact, Nack, Respond, SotwRequest, Variant
from adsserver.engine.session import EngineSettings
from tests.protocol.engine.world import CLIENT, SETTINGS, World, session_of
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import ResourceType


class Wire:
    """The client's end of one stream. `now` is moved by the test."""

    def __init__(
        self,
        world: World,
        variant: Variant,
        settings: EngineSettings = SETTINGS,
        client: ClientFacts = CLIENT,
    ) -> None:
        self.world = world
        self.session = session_of(world, variant, settings, client)
        self.now = 100.0
        self.facts: tuple[Fact, ...] = ()

    def sotw(
        self, kind: ResourceType, *names: str, nonce: str = "", nack: str = "", version: str = ""
    ) -> list[Respond]:
        return self._send(SotwRequest(kind, names, nonce, version, Nack(3, nack) if nack else None))

    def delta(
        self,
        kind: ResourceType,
        *subscribe: str,
        unsubscribe: tuple[str, ...] = (),
        has: dict[str, str] | None = None,
        nonce: str = "",
        nack: str = "",
    ) -> list[Respond]:
        return self._send(DeltaRequest(kind, subscribe, unsubscribe, has or {}, nonce, Nack(3, nack) if nack else None))

    def _send(self, request: SotwRequest | DeltaRequest) -> list[Respond]:
        self.facts = self.session.receive(request, self.now)
        return self.written()

    def publish(self) -> list[Respond]:
        self.session.offer(self.world.publish(), self.now)
        return self.written()

    def written(self) -> list[Respond]:
        responses = []
        while (response := self.session.compose(self.now)) is not None:
            responses.append(response)
            assert len(responses) < 100
        return responses
