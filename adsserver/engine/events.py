"""What goes into a session and what comes out of it: values only, shared by SotW and delta.

A NACK and a subscription change may arrive in one request; they are two facts about it and both survive (protocol.md
B6).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from xdscore.errors import ResourceError
from xdscore.evidence import Evidence
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content


class Variant(Enum):
    """The two transport variants of xDS: state of the world and incremental."""

    SOTW = "sotw"
    DELTA = "delta"

    # There is one of each. Enum's own hash is computed in Python, several times for every message.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Nack:
    """A request's `error_detail`: its presence, and nothing else, makes a NACK (protocol.md B2).

    Shown without its message, which may quote secrets: it must not come into a log with whatever holds it.
    """

    code: int
    message: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SotwRequest:
    """One DiscoveryRequest of a known type. `names` is the full list, as sent (repeats and empty strings included)."""

    kind: ResourceType
    names: tuple[str, ...]
    nonce: str = ""
    version: str = ""
    nack: Nack | None = None


@dataclass(frozen=True, slots=True)
class DeltaRequest:
    """One DeltaDiscoveryRequest of a known type, with its lists as sent."""

    kind: ResourceType
    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()
    initial_versions: Mapping[str, str] = field(default_factory=dict)
    nonce: str = ""
    nack: Nack | None = None


Request = SotwRequest | DeltaRequest


@dataclass(frozen=True, slots=True)
class NamedContent:
    """One resource of a response: the name it is sent under and its content."""

    name: str
    content: Content


@dataclass(frozen=True, slots=True)
class Respond:
    """One response to write. `resources` keeps its identity while its members do not change, so that the shell may
    share the bytes of equal responses by `id(resources)`; `removed` is delta's only, and so is `unresolved`: the names
    that are aliases of nothing (E2). `heartbeat`: it says of its resources that they live on, and does not hold their
    content (G2).
    """

    kind: ResourceType
    nonce: str
    version: str
    resources: tuple[NamedContent, ...]
    errors: tuple[ResourceError, ...] = ()
    removed: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    heartbeat: bool = False


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The client changed its subscription to a type: what it asks for from now on."""

    kind: ResourceType
    wildcard: bool
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The client acknowledged a response: it held exactly these resources, removals and errors.

    `heal`: it held nothing but what the client had acknowledged before it refused something newer, sent again (F17a):
    the ACK proves nothing, and the client still refuses what it refused (B11). `probed`: of the resources, those that
    are withheld from others and that it was let try (F18a).
    """

    kind: ResourceType
    nonce: str
    version: str
    resources: tuple[NamedContent, ...]
    errors: tuple[ResourceError, ...]
    removed: tuple[str, ...]
    heal: bool = False
    probed: tuple[NamedContent, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """The client rejected a response. `resources` are what it held, in order; `suspects` are those that changed since
    this client's last ACK of the type, narrowed by the text where it names some of them (reliability N2); never a name
    that was not in it. `evidence`: on which ground they are suspected.

    `kept`: of the suspects of which this client had acknowledged other content on this stream, that content: what it
    goes on with. `healing`: what it may have dropped of that is sent to it again (F17a).
    """

    kind: ResourceType
    nonce: str
    version: str
    nack: Nack
    resources: tuple[NamedContent, ...]
    suspects: tuple[NamedContent, ...]
    evidence: Evidence = Evidence.TEXT
    kept: tuple[NamedContent, ...] = ()
    healing: bool = False


@dataclass(frozen=True, slots=True)
class Violated:
    """The client broke a rule of the protocol; `rule` cites protocol.md. Counted; never fatal to the stream."""

    rule: str
    detail: str


Fact = Subscribed | Acknowledged | Rejected | Violated
