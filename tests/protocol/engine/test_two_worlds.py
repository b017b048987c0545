"""T11: what a client may not read leaves no trace on its stream; I11: both variants converge to the same.

Two worlds differ only in names that are denied or hidden: in one they exist and change, in the other they never did.
"""

from hypothesis import given
from hypothesis import strategies as st

from adsserver.engine.events import DeltaRequest, SotwRequest, Variant
from tests.protocol.engine.model import ModelClient
from tests.protocol.engine.profile import EXAMPLES, STEPS
from tests.protocol.engine.world import World, session_of
from xdscore.access import Effect
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, by_word

Step = tuple[str, str, str, int | bool]
KINDS = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
NAMES = ("a", "b", "c")
SECRET_NAMES = ("p", "q")

words = st.sampled_from([kind.word for kind in KINDS])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("serve"), words, st.sampled_from(NAMES), st.integers(1, 3)),
        st.tuples(st.just("remove"), words, st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.just("secret"), words, st.sampled_from(SECRET_NAMES), st.integers(0, 3)),
        st.tuples(st.just("want"), words, st.sampled_from([*NAMES, *SECRET_NAMES]), st.booleans()),
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


def play(world: World, clients: list[ModelClient], step: Step) -> None:
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
def test_variants__with_the_same_subscriptions__converge_to_the_same(script: list[Step]) -> None:
    world = World()
    clients = [ModelClient(world, variant, KINDS) for variant in Variant]

    for step in script:
        play(world, clients, step)
    publication = world.publish()
    for client in clients:
        client.session.offer(publication, client.now)
        client.rest()

    sotw, delta = clients
    for kind in KINDS:
        if kind.full_state:
            assert sotw.view()[kind.word] == delta.view()[kind.word]
        else:
            # SotW cannot take a copy away (D1); what is served is the same.
            served = {name for name, _ in delta.served(delta.halves[kind])}
            assert {n: v for n, v in sotw.view()[kind.word].items() if n in served} == delta.view()[kind.word]
        assert sotw.halves[kind].errors == delta.halves[kind].errors
