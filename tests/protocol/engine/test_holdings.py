"""What the server says that a client has of each name, situation by situation (truth.md H1, H2)."""

from collections.abc import Callable

import pytest

from adsserver.engine.events import DeltaRequest, NamedContent, Respond, Variant
from adsserver.engine.holdings import with_unanswered
from adsserver.engine.session import EngineSettings
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import URL, World, content
from xdscore.holdings import REQUESTED, Holding, HoldingState
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, ResourceType

Answer = Callable[..., list[Respond]]
# Full states, parts of a state, and delta: the three shapes of a response.
SHAPES = ((CLUSTER, Variant.SOTW), (ENDPOINT, Variant.SOTW), (CLUSTER, Variant.DELTA))
NAMES = ("a", "b", "c", "d")


class Asker:
    """A client that asks for the four names and answers as it is told."""

    def __init__(self, world: World, kind: ResourceType, variant: Variant, limits: Limits | None = None) -> None:
        settings = EngineSettings(public_url=URL, limits=limits or Limits())
        self.kind, self.world = kind, world
        self._names = NAMES if variant is Variant.SOTW else ()
        self.wire = Wire(world, variant, settings)
        self._answer: Answer = self.wire.sotw if variant is Variant.SOTW else self.wire.delta
        self.sent = self._answer(kind, *NAMES)

    def acknowledges(self) -> None:
        self._all("")

    def refuses(self, text: str = "bad") -> None:
        self._all(text)

    def _all(self, nack: str) -> None:
        waiting, self.sent = self.sent, []
        for response in waiting:
            self.sent += self._answer(self.kind, *self._names, nonce=response.nonce, nack=nack)

    def publish(self, **versions: str) -> None:
        for name, version in versions.items():
            self.world.serve(self.kind, name, version)
        self.sent += self.wire.publish()

    @property
    def says(self) -> dict[str, str]:
        """By name: the state, and the versions where there are any."""
        said = self.wire.session.holdings(self.kind)
        assert said is not None
        everything = {**dict(said.ground.everything()), **said.apart}
        found = {}
        for name, holding in sorted(everything.items()):
            assert holding is not None
            versions = f"{holding.version}/{holding.acked}" if holding.version or holding.acked else ""
            found[name] = f"{holding.state} {versions or holding.code}".rstrip()
        return found


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape[1].value}-{shape[0].word}")
def asker(request: pytest.FixtureRequest) -> Asker:
    kind, variant = request.param
    world = World()
    for name in "abc":
        world.serve(kind, name, f"{name}1")
    return Asker(world, kind, variant)


def test_holdings__response_not_answered__are_sent_and_the_error_is_told(asker: Asker) -> None:
    assert asker.says == {"a": "SENT a1/", "b": "SENT b1/", "c": "SENT c1/", "d": "ERROR_SENT XDS2101"}


def test_holdings__ack__proves_all_of_the_response(asker: Asker) -> None:
    asker.acknowledges()

    assert asker.says == {"a": "ACKED a1/a1", "b": "ACKED b1/b1", "c": "ACKED c1/c1", "d": "ERROR_SENT XDS2101"}


def test_holdings__change_on_its_way__is_sent_beside_what_it_goes_on_with(asker: Asker) -> None:
    asker.acknowledges()

    asker.publish(a="a2")

    assert asker.says["a"] == "SENT a2/a1"
    assert asker.says["b"] == "ACKED b1/b1"


def test_holdings__only_change_is_refused__it_alone_is_nacked(asker: Asker) -> None:
    asker.acknowledges()
    asker.publish(a="a2")

    asker.refuses()

    assert asker.says == {"a": "NACKED a2/a1", "b": "ACKED b1/b1", "c": "ACKED c1/c1", "d": "ERROR_SENT XDS2101"}


def test_holdings__refused_with_another__nobody_knows_until_they_were_sent_apart(asker: Asker) -> None:
    asker.acknowledges()
    asker.publish(a="a2", b="b2")

    asker.refuses("something is wrong")
    between = asker.says
    while asker.sent:
        guilty = any(member.content.version == "a2" for response in asker.sent for member in response.resources)
        if guilty:
            asker.refuses("something is wrong")
        else:
            asker.acknowledges()

    assert between["c"] == "ACKED c1/c1"
    assert between["a"].split()[0] in {"UNKNOWN", "SENT"}
    assert between["b"].split()[0] in {"UNKNOWN", "SENT"}
    assert asker.says == {"a": "NACKED a2/a1", "b": "ACKED b2/b2", "c": "ACKED c1/c1", "d": "ERROR_SENT XDS2101"}


def test_holdings__suspects_that_are_not_sent_again__stay_unknown() -> None:
    world = World()
    for name in NAMES:
        world.serve(CLUSTER, name, f"{name}1")
    asker = Asker(world, CLUSTER, Variant.DELTA, Limits(isolation_resends=1))
    asker.acknowledges()
    asker.publish(a="a2", b="b2", c="c2")

    while asker.sent:
        asker.refuses("something is wrong")

    states = {name: said.split()[0] for name, said in asker.says.items()}
    assert states.pop("d") == "ACKED"
    assert "UNKNOWN" in states.values()
    assert set(states.values()) <= {"UNKNOWN", "NACKED"}


def test_holdings__refused_content_is_taken_back__is_acknowledged_again(asker: Asker) -> None:
    asker.acknowledges()
    asker.publish(a="a2")
    asker.refuses()

    asker.publish(a="a1")
    asker.acknowledges()

    assert asker.says["a"] == "ACKED a1/a1"


def test_holdings__refused_content_is_mended__is_sent_and_then_acknowledged(asker: Asker) -> None:
    asker.acknowledges()
    asker.publish(a="a2")
    asker.refuses()

    asker.publish(a="a3")
    sent = asker.says["a"]
    asker.acknowledges()

    assert sent == "SENT a3/a1"
    assert asker.says["a"] == "ACKED a3/a3"


def test_holdings__what_others_proved_stands_in__is_still_refused(asker: Asker) -> None:
    asker.acknowledges()
    asker.world.serve(asker.kind, "d", "d2", proven="d1")
    asker.publish()

    asker.refuses()
    on_its_way = asker.says["d"]
    asker.acknowledges()

    assert on_its_way == "NACKED d2/"
    assert asker.says["d"] == "NACKED d2/d1"


def test_holdings__removed__it_is_told_why(asker: Asker) -> None:
    asker.acknowledges()
    asker.world.remove(asker.kind, "a")

    asker.publish()

    assert asker.says["a"] == "ERROR_SENT XDS2102"


def test_holdings__type_never_asked_for__none(asker: Asker) -> None:
    other = ENDPOINT if asker.kind is CLUSTER else CLUSTER

    assert asker.wire.session.holdings(other) is None


@pytest.mark.parametrize(
    ("before", "version", "after"),
    [
        (Holding(HoldingState.ACKED, "v1", "v1"), "v2", Holding(HoldingState.SENT, "v2", "v1")),
        (Holding(HoldingState.ACKED, "v1", "v1"), "v1", None),  # sent once more
        (Holding(HoldingState.NACKED, "v2", "v1"), "v3", Holding(HoldingState.SENT, "v3", "v1")),
        (Holding(HoldingState.NACKED, "v2", "v1"), "v1", None),  # its own copy
        (Holding(HoldingState.NACKED, "v2"), "v1", None),  # what others proved
        (Holding(HoldingState.NACKED, "v2"), "v2", Holding(HoldingState.SENT, "v2")),
        (REQUESTED, "v1", Holding(HoldingState.SENT, "v1")),
    ],
)
def test_with_unanswered__content__is_sent_unless_it_is_no_news(
    before: Holding, version: str, after: Holding | None
) -> None:
    response = Respond(CLUSTER, "1", "w", (NamedContent("a", content(version)),))

    assert with_unanswered({"a": before}, response, tells=True).get("a") == after


def test_holdings__a_collection_is_left_for_a_wildcard__nothing_is_said_of_its_name() -> None:
    wire = Wire(World(), Variant.DELTA)
    glob = "xdstp://x/t/d/*"
    (told,) = wire.delta(CLUSTER, glob)
    assert [error.name for error in told.errors] == [glob]

    wire.session.receive(DeltaRequest(CLUSTER, ("*",), (glob,)), wire.now)

    said = wire.session.holdings(CLUSTER)
    assert said is not None
    assert glob not in {**dict(said.ground.everything()), **said.apart}


def test_holdings__a_client_that_said_what_it_has_asks_for_everything_at_once__are_what_it_said() -> None:
    world = World()
    world.serve(CLUSTER, "xdstp://x/t/d/c", "c1")
    wire = Wire(world, Variant.DELTA)
    glob = "xdstp://x/t/d/*"
    has = {"xdstp://x/t/d/c": "c1"}

    wire.session.receive(DeltaRequest(CLUSTER, (glob,), (), has), wire.now)
    wire.session.receive(DeltaRequest(CLUSTER, ("*",), (glob,)), wire.now)

    said = wire.session.holdings(CLUSTER)
    assert said is not None
    assert {**dict(said.ground.everything()), **said.apart} == {
        "xdstp://x/t/d/c": Holding(HoldingState.ACKED, "c1", "c1")
    }
