"""What a question about a request and its answer are made of. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from xdscore.schema.positions import Path, PathPart, pointer_of
from xdscore.schema.walk import AnyMessage
from xdscore.schema.yaml_lines import Lines

Key = tuple[str, str]
"""The word of a resource's type, and its name."""


class Answer(StrEnum):
    """What becomes of a request (interfaces.md section 8)."""

    ROUTED = "routed"
    DIRECT = "direct"  # the proxy answers by itself, because a route says so
    REDIRECT = "redirect"
    REFUSED = "refused"  # nothing takes it: 404, 503, or the connection is closed
    UNKNOWN = "unknown"  # it depends on what is not judged or not known


class State(StrEnum):
    """How one choice on the way of a request came out."""

    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Request:
    """A request as a client makes it. `path` begins with a slash and has the query; `headers` are by name, in any
    case, without pseudo-headers.
    """

    authority: str
    path: str = "/"
    scheme: str = "http"
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Given:
    """What the client has of a resource: its message; None where it has none, and `said` says why, as a sentence.

    `known`: False where nobody can say whether it has it. `lines`: where its parts stand in its manifest; None: that is
    not told. `made`: what follows from parts of the message, by their paths: filled while requests are answered, for
    whoever keeps this for the next one; None: for this request alone.
    """

    message: AnyMessage | None
    said: str = ""
    known: bool = True
    lines: Lines | None = None
    made: dict[Path, object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Place:
    """A value in the manifest of a resource."""

    key: Key
    path: Path = ()

    def at(self, *parts: PathPart) -> "Place":
        """The place of a value below this one."""
        return Place(self.key, self.path + parts)

    @property
    def pointer(self) -> str:
        """The JSON pointer of the value in the resource's manifest."""
        return pointer_of(self.path)

    def __str__(self) -> str:
        """The place as it stands in lists of what was not judged: type, name, pointer."""
        return " ".join(filter(None, (*self.key, self.pointer)))


class Miss(NamedTuple):
    """Why a candidate does not fit, as the end of a sentence; `path` leads from the candidate to the field.

    `judged`: False where whether it fits is not known, because that field is not judged.
    """

    said: str
    path: Path = ()
    judged: bool = True


@dataclass(frozen=True, slots=True)
class Lost:
    """A candidate that was not chosen: what it is called, why, and the field that decided. `line`: of that field in the
    YAML of the manifest; 0: not known.
    """

    name: str
    said: str
    place: Place
    line: int = 0


@dataclass(frozen=True, slots=True)
class Rung:
    """One choice on the way: how it came out, in a sentence, where that stands, and who lost.

    `more`: how many lost besides those in `lost`. `line`: of `place` in the YAML of the manifest; 0: not known.
    """

    title: str
    state: State
    text: str
    place: Place | None = None
    lost: tuple[Lost, ...] = ()
    more: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address that requests of a cluster go to; `locality` is region, zone and sub-zone, with slashes between.
    `line`: of `place`, where it is named, in the YAML of the manifest; 0: not known.
    """

    address: str
    health: str
    locality: str
    place: Place
    line: int = 0


@dataclass(frozen=True, slots=True)
class ClusterShare:
    """A cluster that requests go to, and what share of them, in percent. `line`: of `place`, where the route names it,
    in the YAML of the manifest; 0: not known.
    """

    cluster: str
    percent: float
    place: Place
    line: int = 0


@dataclass(frozen=True, slots=True)
class Traced:
    """Where a request goes. Names are empty, `route_index` is None, where the way ended before.

    `route_index`: of the route in its virtual host, counted from 0; `route_name`: its name there. `shares`: the
    clusters that it goes to. `status`, `location`: of the answer that the proxy gives itself; 0 and empty where it
    gives none or that is not known.
    """

    answer: Answer
    rungs: tuple[Rung, ...]
    unsupported: tuple[str, ...] = ()
    listener: str = ""
    filter_chain: str = ""
    route: str = ""
    virtual_host: str = ""
    route_index: int | None = None
    route_name: str = ""
    shares: tuple[ClusterShare, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    status: int = 0
    location: str = ""
