"""A client that keeps to no rule: it asks, answers and refuses in any order, while anything happens to what it is sent.

What it does is drawn by a seed, so that the same seed plays the same game.
"""

from dataclasses import replace
from random import Random

from adsserver.engine.events import DeltaRequest, Fact, Nack, Respond, SotwRequest, Variant
from adsserver.engine.session import EngineSettings
from tests.protocol.engine.world import CLIENT, GRPC_CLIENT, URL, World, session_of
from xdscore.access import Effect
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, SECRET, ResourceType

GLOB = "xdstp://x/t/d/*"
NAMES = ("a", "b", "xdstp://x/t/d/c", GLOB)
KINDS = (CLUSTER, ENDPOINT, LISTENER, SECRET)


class HostileClient:
    """One game: `play` makes moves, and gives back what was written and said of it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311  a game, not a secret
        self.world = World()
        self.kinds = self.random.sample(KINDS, self.random.choice([1, 1, 2]))
        # With few names, more happens to each.
        self.names = self.random.choice([("a", "b"), ("a", "b", *NAMES[2:]), ("a", *NAMES[2:])])
        for _ in range(4):
            self._edit()
        self.variant = self.random.choice(list(Variant))
        few = self.random.choice([1, 1_000])
        limits = Limits(
            names_per_step=few, errors_per_response=few, delta_response_bytes=self.random.choice([300, 9_999])
        )
        client = replace(self.random.choice([CLIENT, GRPC_CLIENT]), identity="spiffe://client-1")
        self.session = session_of(self.world, self.variant, EngineSettings(public_url=URL, limits=limits), client)
        self.now = 0.0
        self.wanted: dict[ResourceType, tuple[str, ...]] = dict.fromkeys(self.kinds, ())
        self.sent: dict[ResourceType, list[Respond]] = {kind: [] for kind in self.kinds}
        self.log: list[Respond | Fact] = []

    def play(self, moves: int) -> list[Respond | Fact]:
        """Make so many moves."""
        moves_there_are = (self._ask, self._answer, self._edit, self._publish, self._write, self._wait)
        for _ in range(moves):
            self.random.choices(moves_there_are, weights=(4, 6, 3, 2, 5, 1))[0]()
        return self.log

    def _ask(self) -> None:
        kind = self.random.choice(self.kinds)
        names = tuple(self.random.sample((*self.names, "*"), self.random.randint(0, 2)))
        if self.variant is Variant.SOTW:
            self.wanted[kind] = self.random.choice([names, self.wanted[kind]])
            last = self.sent[kind][-1].nonce if self.sent[kind] else ""
            self._receive(SotwRequest(kind, self.wanted[kind], self.random.choice(["", last])))
        else:
            left = tuple(self.random.sample((*self.names, "*"), self.random.choice([0, 0, 0, 1])))
            holds = {name: self._version(name) for name in self.random.sample(self.names, self.random.choice([0, 2]))}
            self._receive(DeltaRequest(kind, names, left, initial_versions=holds))

    def _answer(self) -> None:
        kind = self.random.choice(self.kinds)
        if not self.sent[kind]:
            return
        response = self.random.choice(self.sent[kind][-4:])
        blamed = [member for member in enumerate(response.resources) if self.random.random() < 0.4]
        text = "; ".join(f"resource index {index}: {member.name}: INVALID_ARGUMENT: bad" for index, member in blamed)
        words = self.random.choice(["no", f"xDS response validation errors: [{text}]"])
        nack = Nack(3, words) if blamed or self.random.random() < 0.1 else None
        if self.variant is Variant.SOTW:
            self._receive(SotwRequest(kind, self.wanted[kind], response.nonce, nack=nack))
        else:
            self._receive(DeltaRequest(kind, nonce=response.nonce, nack=nack))

    def _edit(self) -> None:
        kind, name = self.random.choice(self.kinds), self.random.choice(self.names)
        proven = self.random.choice(["", f"{name}-0"])
        match self.random.randrange(9):
            case 0:
                self.world.remove(kind, name)
            case 1:
                self.world.withhold(kind, name, self.random.choice(["one reason", "another"]))
            case 2:
                self.world.unread(kind, name)
            case 3:
                self.world.rule(kind, name, self.random.choice(list(Effect)))
            case _:
                self.world.serve(kind, name, self._version(name), proven=proven)

    def _publish(self) -> None:
        self.session.offer(self.world.publish(), self.now)

    def _write(self) -> None:
        for _ in range(self.random.choice([1, 9])):
            response = self.session.compose(self.now)
            if response is not None:
                self.sent[response.kind].append(response)
                self.log.append(response)

    def _wait(self) -> None:
        self.now += self.random.choice([1.0, 31.0])

    def _version(self, name: str) -> str:
        return f"{name}-{self.random.randint(1, 3)}"

    def _receive(self, request: SotwRequest | DeltaRequest) -> None:
        self.log += self.session.receive(request, self.now)
