"""One input of the fuzzer: bytes that a hostile client sends, read, answered and written as a stream does it, without a
socket. Beside it a bystander on the same publications, which must not notice.

An input is a first byte, the variant and the service, and steps: what to do, a length of two bytes, and as many bytes
of a request. Whatever a request makes the stream refuse it for ends the stream, and the next step begins another.
"""

from dataclasses import dataclass, field
from typing import Final

from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from google.protobuf.message import Message

from adsserver.engine.events import Respond, SotwRequest, Variant
from adsserver.engine.publication import Publication
from adsserver.engine.session import EngineSettings, Session
from adsserver.identity.identification import NodeError, first_node, same_node
from adsserver.servicers.unsupported import TooManyTypesError, UnsupportedTypes
from adsserver.wire.discovery import (
    Encoder,
    MalformedRequestError,
    NodeFacts,
    OversizedRequestError,
    UnknownTypeRequest,
    decode,
)
from tests.support.ads import Catalogue, MemoryContents
from xdscore.environment_choice import ClientFacts
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, RESOURCE_TYPES, ResourceType
from xdscore.snapshot import Snapshot

REQUEST, PUBLISH, WAIT = range(3)
LIMITS: Final = Limits(names_per_request=64, names_per_type=64)
SETTINGS: Final = EngineSettings(public_url="http://parley.example", limits=Limits(names_per_type=64))
SERVICES: Final[tuple[ResourceType | None, ...]] = (None, *RESOURCE_TYPES)
# More than a step may ever lead to: a stream answers each type once, and isolates with 16 responses at most.
_MAX_RESPONSES: Final = 200
_MAX_STEPS: Final = 32
_REFUSED = (MalformedRequestError, OversizedRequestError, NodeError, TooManyTypesError)


@dataclass
class World:
    """What is published, epoch after epoch, always the same."""

    contents: MemoryContents = field(default_factory=MemoryContents)

    def __post_init__(self) -> None:
        self.encoder = Encoder(self.contents, "parley/fuzz")
        self._catalogue = Catalogue(self.contents)
        self._epoch = 0
        self.publication = Publication(self._next())

    def publish(self) -> None:
        self.publication = Publication(self._next(), self.publication)

    def _next(self) -> Snapshot:
        self._epoch += 1
        changing = cluster_pb2.Cluster(name="a", alt_stat_name=str(self._epoch % 3))
        some: list[Message] = [changing, cluster_pb2.Cluster(name="b")]
        some += [endpoint_pb2.ClusterLoadAssignment(cluster_name=name) for name in "ab"[: 1 + self._epoch % 2]]
        return self._catalogue.publish(*some).snapshots["default"]


@dataclass
class Bystander:
    """A client that does nothing unusual: what it is written must not depend on anybody else."""

    world: World
    written: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session = Session(Variant.SOTW, ClientFacts(node_id="bystander"), SETTINGS, self.world.publication)
        self._ask(SotwRequest(CLUSTER, ()), 0.0)
        self._ask(SotwRequest(ENDPOINT, ("a", "b")), 0.0)

    def look(self, now: float) -> None:
        self.session.offer(self.world.publication, now)
        self._write(now)

    def _ask(self, request: SotwRequest, now: float) -> None:
        self.session.receive(request, now)
        self._write(now)

    def _write(self, now: float) -> None:
        while (response := self.session.compose(now)) is not None:
            self.written.append(self.world.encoder.encode(Variant.SOTW, response))
            names = ("a", "b") if response.kind is ENDPOINT else ()
            self.session.receive(SotwRequest(response.kind, names, response.nonce, response.version), now)


class HostileStream:
    """What `servicers.stream` does with requests, step by step."""

    def __init__(self, world: World, variant: Variant, service: ResourceType | None) -> None:
        self._world = world
        self._variant = variant
        self._service = service
        self._node: NodeFacts | None = None
        self._session = Session(variant, ClientFacts(), SETTINGS, world.publication)
        self._unsupported = UnsupportedTypes(LIMITS)

    def read(self, data: bytes, now: float) -> None:
        incoming = decode(data, self._variant, self._service, LIMITS)
        if self._node is None:
            self._node = first_node(incoming.node)
        else:
            same_node(self._node, incoming.node)
        request = incoming.request
        if not isinstance(request, UnknownTypeRequest):
            self._session.receive(request, now)
        elif self._variant is Variant.SOTW:
            self._unsupported.receive_sotw(request)
        else:
            self._unsupported.receive_delta(request)
        self._write(now)

    def offer(self, now: float) -> None:
        self._session.offer(self._world.publication, now)
        self._write(now)

    def _write(self, now: float) -> None:
        written = 0
        while (answer := self._unsupported.take()) is not None:
            self._world.encoder.encode_errors(
                self._variant, answer.type_url, answer.nonce, answer.version, answer.errors
            )
        while (response := self._session.compose(now)) is not None:
            self._check(response)
            self._world.encoder.encode(self._variant, response)
            written += 1
            assert written < _MAX_RESPONSES, "one step makes the server write for ever"

    def _check(self, response: Respond) -> None:
        names = [member.name for member in response.resources]
        assert len(names) == len(set(names)), "D5"
        assert not set(names) & {error.name for error in response.errors}, "T2"


def play(data: bytes) -> None:
    """Play one input. Raises whatever a stream would break with, and AssertionError where a bystander noticed."""
    if not data:
        return
    variant = Variant.DELTA if data[0] & 1 else Variant.SOTW
    service = SERVICES[(data[0] >> 1) % len(SERVICES)]
    shared, alone = World(), World()
    beside, reference = Bystander(shared), Bystander(alone)
    stream = HostileStream(shared, variant, service)
    now = 0.0
    for action, payload in steps(data[1:]):
        if action == PUBLISH:
            for world in (shared, alone):
                world.publish()
            stream.offer(now)
        elif action == WAIT:
            now += 31
            stream.offer(now)
        else:
            try:
                stream.read(payload, now)
            except _REFUSED:
                stream = HostileStream(shared, variant, service)
        beside.look(now)
        reference.look(now)
        assert beside.written == reference.written, "S3, I12: a bystander's stream was affected"


def steps(data: bytes) -> list[tuple[int, bytes]]:
    """The steps of an input, as far as they are there."""
    found: list[tuple[int, bytes]] = []
    while len(data) >= 3 and len(found) < _MAX_STEPS:
        length = int.from_bytes(data[1:3], "little")
        found.append((data[0] % 3, data[3 : 3 + length]))
        data = data[3 + length :]
    return found
