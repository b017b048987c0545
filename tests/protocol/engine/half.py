"""What a model client has, wants and was sent of one type."""

from dataclasses import dataclass, field

from adsserver.engine.events import NamedContent
from xdscore.errors import StatusCode
from xdscore.resource_types import ResourceType
from xdscore.xdstp import Glob, glob_of


def is_error(told: str) -> bool:
    return told.startswith(tuple(code.name for code in StatusCode))


def passes(error: str) -> bool:
    """Whether it is an error that says nothing against the name itself (TP3: transient)."""
    return error.startswith((StatusCode.INTERNAL.name, StatusCode.UNAVAILABLE.name))


@dataclass
class Half:
    """The client's side of one type."""

    kind: ResourceType
    # What the server was told; a stale SotW request tells it nothing (B3).
    names: frozenset[str] = frozenset()
    wildcard: bool = False
    # What the next SotW request lists.
    wish: tuple[frozenset[str], bool] = (frozenset(), False)
    opened: bool = False
    # Whether the client ever listed a name on this stream, after which an empty list means none (C2).
    listed_once: bool = False
    nonce: str = ""
    last_sent: str = ""
    last_acknowledged: bool = False
    # What the client holds, by name, and which errors it remembers.
    held: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    # What it was sent, in the order of writing (the server's view of it), and what it waits for.
    sent: dict[str, str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    asked_all: bool = False
    again: set[str] = field(default_factory=set)
    tolerated: set[str] = field(default_factory=set)
    # Of this stream: what it rejected and what it acknowledged.
    rejected: dict[str, set[str]] = field(default_factory=dict)
    acknowledged: dict[str, str] = field(default_factory=dict)
    # Names of `acknowledged` of which the server knows the version alone: the client said that it has them (E5).
    reported: set[str] = field(default_factory=set)
    # As `rejected`, but only while it is what is published: what changed and came back may be sent again.
    still_rejected: dict[str, set[str]] = field(default_factory=dict)
    accused: dict[str, str] = field(default_factory=dict)
    pushes: list[tuple[str, float]] = field(default_factory=list)
    resends_left: int = 0
    ever_sent: set[str] = field(default_factory=set)
    # Told UNAVAILABLE of what the client was sent before: it keeps its copy (F2, F14).
    kept: set[str] = field(default_factory=set)
    ever_acknowledged: bool = False
    lost_errors: set[str] = field(default_factory=set)
    # Names of which a response that it refused said something, on this stream.
    in_refused: set[str] = field(default_factory=set)
    # Members that it asked for by name, too, was told it cannot have, and no longer asks for by name.
    left: set[str] = field(default_factory=set)

    def rejects(self, member: NamedContent) -> None:
        self.rejected.setdefault(member.name, set()).add(member.content.version)
        if self.sent.get(member.name) == member.content.version:
            self.still_rejected.setdefault(member.name, set()).add(member.content.version)

    def covers(self, name: str) -> bool:
        return self.wildcard or self.explains(name)

    def explains(self, name: str) -> bool:
        return name in self.names or any(glob.contains(name) for glob in self.globs)

    @property
    def globs(self) -> list[Glob]:
        return [glob for glob in map(glob_of, sorted(self.names)) if glob is not None]
