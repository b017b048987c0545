"""T11: what a client may not read leaves no trace on its stream; I11: both variants converge to the same.

Two worlds differ only in names that are denied or hidden: in one they exist and change, in the other they never did.
"""

from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.any_pb2 import Any
from hypothesis import given
from hypothesis import strategies as st

from adsserver.engine.events import DeltaRequest, Respond, SotwRequest, Variant
from adsserver.wire.discovery import Encoder
from tests.protocol.engine.half import Half
from tests.protocol.engine.model import ModelClient
from tests.protocol.engine.profile import EXAMPLES, STEPS
from tests.protocol.engine.world import World, names_of, session_of
from xdscore.access import Effect
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType, by_word
from xdscore.snapshot import Content

Step = tuple[str, str, str, int | bool]
KINDS = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
COLLECTION = "xdstp://x/t/d/*"
NAMES = ("a", "b", "c", "xdstp://x/t/d/a")
SECRET_NAMES = ("p", "q", "xdstp://x/t/d/p")

words = st.sampled_from([kind.word for kind in KINDS])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("serve"), words, st.sampled_from(NAMES), st.integers(1, 3)),
        st.tuples(st.just("remove"), words, st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.just("secret"), words, st.sampled_from(SECRET_NAMES), st.integers(0, 3)),
        st.tuples(st.just("want"), words, st.sampled_from([*NAMES, *SECRET_NAMES, COLLECTION]), st.booleans()),
        st.tuples(st.just("acknowledge"), words, st.just(""), st.just(0)),
    ),
    max_size=STEPS,
)


class Watched:
    """A stream and everything that was written on it, with the step at which it was."""

    def __init__(self, variant: Variant, effect: Effect, *, with_secrets: bool) -> None:
        self.world = World()
        self.with_secrets = with_secrets
        for kind in KINDS:
            for name in SECRET_NAMES:
                self.world.rule(kind, name, effect)
        self.session = session_of(self.world, variant)
        self.variant = variant
        self.wanted: dict[str, tuple[str, ...]] = {}
        self.last: dict[str, str] = {}
        self.transcript: list[object] = []

    def take(self, step: Step, at: int) -> None:
        what, word, name, value = step
        match what:
            case "serve":
                self.world.serve(by_word[word], name, f"{word}-{name}-{value}")
            case "remove":
                self.world.remove(by_word[word], name)
            case "secret" if self.with_secrets:
                self._secret(word, name, int(value))
            case "want":
                self._want(word, name, wildcard=bool(value))
            case "acknowledge":
                self._send(word, self.last.get(word, ""))
        self.session.offer(self.world.publish(), float(at))
        while (response := self.session.compose(float(at))) is not None:
            self.last[response.kind.word] = response.nonce
            self.transcript.append((at, response))
        self.transcript.append(self.session.wake_at())

    def _secret(self, word: str, name: str, value: int) -> None:
        kind = by_word[word]
        if value == 0:
            self.world.remove(kind, name)
        elif value == 3:
            self.world.withhold(kind, name)
        else:
            self.world.serve(kind, name, f"{word}-{name}-{value}", proven=f"{word}-{name}-0")

    def _want(self, word: str, name: str, *, wildcard: bool) -> None:
        star = ("*",) if wildcard and by_word[word].wildcard else ()
        self.wanted[word] = tuple(dict.fromkeys((*self.wanted.get(word, ()), name, *star)))
        if self.variant is Variant.DELTA:
            self.session.receive(DeltaRequest(by_word[word], (name, *star)), 0.0)
        else:
            self._send(word, self.last.get(word, ""))

    def _send(self, word: str, nonce: str) -> None:
        if word not in self.wanted:
            return
        if self.variant is Variant.DELTA:
            self.session.receive(DeltaRequest(by_word[word], nonce=nonce), 0.0)
        else:
            self.session.receive(SotwRequest(by_word[word], self.wanted[word], nonce), 0.0)


@EXAMPLES
@given(variant=st.sampled_from(Variant), effect=st.sampled_from([Effect.DENY, Effect.HIDE]), script=steps)
def test_stream__names_it_may_not_read__are_as_if_they_did_not_exist(
    variant: Variant, effect: Effect, script: list[Step]
) -> None:
    existing, absent = (Watched(variant, effect, with_secrets=with_secrets) for with_secrets in (True, False))

    for at, step in enumerate(script):
        existing.take(step, at)
        absent.take(step, at)

    assert existing.transcript == absent.transcript


class Contents:
    """Serialised messages: of each content an Any that holds its version."""

    def any_bytes(self, content: Content) -> bytes:
        data: bytes = Any(type_url="type.googleapis.com/example.Content", value=content.blob).SerializeToString()
        return data


class Reader(ModelClient):
    """A client that reads what is written on the wire, and keeps the bytes of what it holds."""

    def __init__(self, world: World, variant: Variant, *, wrapped: bool) -> None:
        super().__init__(world, variant, KINDS)
        self.wrapped = wrapped
        self.encoder = Encoder(Contents(), "test")
        self.bytes: dict[ResourceType, dict[str, bytes]] = {kind: {} for kind in KINDS}

    def _apply(self, half: Half, response: Respond, bad: set[str]) -> None:
        super()._apply(half, response, bad)
        data = self.encoder.encode(self.variant, response, wrapped=self.wrapped)
        known = self.bytes[half.kind] | self._read(data, names_of(response))
        self.bytes[half.kind] = {name: known[name] for name in half.held}

    def _read(self, data: bytes, names: list[str]) -> dict[str, bytes]:
        if self.variant is Variant.DELTA:
            wrappers = list(discovery_pb2.DeltaDiscoveryResponse.FromString(data).resources)
        elif self.wrapped:
            anys = discovery_pb2.DiscoveryResponse.FromString(data).resources
            wrappers = [discovery_pb2.Resource.FromString(each.value) for each in anys]
        else:
            plain = discovery_pb2.DiscoveryResponse.FromString(data).resources
            return {name: each.SerializeToString() for name, each in zip(names, plain, strict=True)}
        return {each.name: each.resource.SerializeToString() for each in wrappers}


def play(world: World, clients: list[Reader], step: Step) -> None:
    what, word, name, value = step
    kind = by_word[word]
    match what:
        case "serve" | "secret":
            world.serve(kind, name, f"{word}-{name}-{value}")
        case "remove":
            world.remove(kind, name)
        case "want":
            for client in clients:
                half = client.halves[kind]
                client.want(kind, half.names ^ {name}, wildcard=bool(value) and kind.wildcard)
        case "acknowledge":
            publication = world.publish()
            for client in clients:
                client.session.offer(publication, client.now)
                client.write()


@EXAMPLES
@given(script=steps)
def test_variants__with_the_same_subscriptions__converge_to_equal_bytes(script: list[Step]) -> None:
    world = World()
    delta = Reader(world, Variant.DELTA, wrapped=True)
    sotw = [Reader(world, Variant.SOTW, wrapped=wrapped) for wrapped in (True, False)]
    clients = [delta, *sotw]

    for step in script:
        play(world, clients, step)
    publication = world.publish()
    for client in clients:
        client.session.offer(publication, client.now)
        client.rest()

    for kind in KINDS:
        served = {name for name, _ in delta.served(delta.halves[kind])}
        for client in sotw:
            held = client.bytes[kind]
            if not kind.full_state:
                # SotW cannot take a copy away (D1); what is served is the same.
                held = {name: data for name, data in held.items() if name in served}
            assert held == delta.bytes[kind]  # I11
            # That of a collection ends without a word, with its first member.
            due = delta.due_errors(delta.halves[kind])
            told = [{name: each.halves[kind].errors.get(name) for name in due} for each in (client, delta)]
            assert told[0] == told[1]
