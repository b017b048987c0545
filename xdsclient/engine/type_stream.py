"""One resource type: its entries, and its part of the stream. What SotW and delta share.

The engine calls it; it never talks to watchers. A request is composed when it can be written, so that any number of
changes between two writes cost one request.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from xdsclient.engine.entry import Entry
from xdsclient.engine.events import Heartbeat, Invalid, Nack, Request, Response, Valid
from xdsclient.engine.policy import Policy
from xdsclient.engine.values import CacheState, Resource, ResourceKey, StatusCode
from xdscore.resource_types import ResourceType

# Servers keep about as much of a NACK (reliability (e): text <= 4096); the first problems matter most.
_MAX_NACK_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Answer:
    """What to say about a response."""

    nonce: str
    nack: Nack | None


@dataclass(slots=True)
class Taken:
    """What a response did. `problems` are in the order they were found, in C-core's wording (clients.md section 4)."""

    server: int
    policy: Policy
    now: float
    valid: int = 0
    invalid: int = 0
    problems: list[str] = field(default_factory=list)
    touched: dict[str, Entry] = field(default_factory=dict)
    # Names the response says something about.
    seen: set[str] = field(default_factory=set)
    # A resource without a readable name may be any of them.
    blind: bool = False


class TypeStream(ABC):
    """Entries by name, and what the server was told and said about them on this stream."""

    __slots__ = ("_answers", "_asked", "_dirty", "_nonce", "_sent", "entries", "kind")

    def __init__(self, kind: ResourceType) -> None:
        self.kind = kind
        self.entries: dict[str, Entry] = {}
        self._answers: deque[Answer] = deque()
        self._reset()

    def _reset(self) -> None:
        """Nothing of a stream survives it (protocol.md A4)."""
        self._answers.clear()
        self._nonce = ""
        # The names the server was told on this stream, and whether it was told any.
        self._sent: set[str] = set()
        self._asked = False
        self._dirty = bool(self.entries)

    # The stream's life.

    def closed(self) -> None:
        """The stream ended: timers stop (A57), and nobody need be told of what nobody watches."""
        for name in [name for name, entry in self.entries.items() if not entry.watched]:
            del self.entries[name]
        for entry in self.entries.values():
            entry.deadline_s = inf
        self._reset()

    # Watches.

    def join(self, name: str, watch: int, now: float) -> Entry:
        """Somebody watches a name."""
        entry = self.entries.get(name)
        if entry is None:
            entry = self.entries[name] = Entry(ResourceKey(self.kind, name), now)
            self._dirty = True
        entry.join(watch)
        return entry

    def leave(self, entry: Entry, watch: int) -> None:
        """Somebody watches a name no more. It stays as it is until the server is told, so that whoever comes back
        before that finds it: the server would not answer for it again.
        """
        entry.leave(watch)
        if not entry.watched:
            self._dirty = True
            if entry.key.name not in self._sent:
                del self.entries[entry.key.name]

    # Requests.

    @property
    def due(self) -> bool:
        """Whether there is a request to write. A first one without names would mean "everything" (protocol.md C2)."""
        return bool(self._answers) or (self._dirty and (self._asked or bool(self.entries)))

    @abstractmethod
    def compose(self, server: int, *, prove: bool) -> Request:
        """The next request, from what is current now; it counts as written.

        `prove`: let the server have something to answer even if it has no news.
        """

    def _next_answer(self, otherwise: str) -> Answer:
        """The answer that is due; with none, no answer, under this nonce."""
        return self._answers.popleft() if self._answers else Answer(otherwise, None)

    def _forget_unwatched(self) -> None:
        for name in [name for name, entry in self.entries.items() if not entry.watched]:
            del self.entries[name]

    # Responses.

    def take(self, response: Response, server: int, policy: Policy, now: float) -> Taken:
        """Take a response in and remember to answer it. Valid resources are used whatever the others are (A46)."""
        taken = Taken(server, policy, now)
        for index, item in enumerate(response.resources):
            self._take_resource(index, item, taken)
        # Names in error are spoken for when absence is judged, and come last (A88; TP3: they and the valid ones do not
        # intersect, and where a server breaks that the error is what stands, as in C-core).
        errors = self._sound_errors(response, taken)
        taken.seen.update(errors)
        self._take_absence(response, taken)
        for name in errors:
            entry = self.entries.get(name)
            if entry is not None:
                taken.touched[name] = entry
        for reported in response.errors if errors else ():
            entry = self.entries.get(reported.name)
            if entry is not None and not reported.status.ok:
                entry.errored(reported.status, response.version, policy, now)
        self._nonce = response.nonce
        self._answers.append(Answer(response.nonce, _nack(taken.problems)))
        self._accepted(response, taken)
        return taken

    @abstractmethod
    def _take_absence(self, response: Response, taken: Taken) -> None:
        """Learn from the response what is not there any more."""

    @abstractmethod
    def _accepted(self, response: Response, taken: Taken) -> None:
        """The response was read; `taken.problems` says whether it is acceptable as a whole."""

    def _take_resource(self, index: int, item: Valid | Invalid | Heartbeat, taken: Taken) -> None:
        if item.name and item.name in taken.seen:
            # D5: a server must not; which of the two it meant nobody knows, so the first stays.
            taken.problems.append(f"resource index {index}: {item.name}: INVALID_ARGUMENT: duplicate resource name")
            taken.invalid += 1
            return
        taken.seen.add(item.name)
        entry = self.entries.get(item.name)
        match item:
            case Valid():
                taken.valid += 1
                if entry is not None:
                    entry.received(Resource(item.version, item.value, item.raw, taken.server), taken.now)
            case Invalid():
                taken.invalid += 1
                taken.blind = taken.blind or not item.name
                shown = f"{item.name}: " if item.name else ""
                taken.problems.append(f"resource index {index}: {shown}INVALID_ARGUMENT: {item.text}")
                if entry is not None:
                    entry.refused(item.text, item.version, item.raw, taken.policy, taken.now)
            case Heartbeat():
                return
        if entry is not None:
            taken.touched[item.name] = entry

    def _sound_errors(self, response: Response, taken: Taken) -> dict[str, None]:
        """The names in error, in order. A malformed entry is a problem of the response (clients.md section 1)."""
        if not taken.policy.reads_resource_errors:
            return {}
        names: dict[str, None] = {}
        for index, reported in enumerate(response.errors):
            if not reported.name:
                taken.problems.append(f"resource_errors index {index}: resource_name unset")
            elif reported.status.ok:
                taken.problems.append(f"resource_errors index {index}: {reported.name}: error_detail must be non-OK")
            else:
                names[reported.name] = None
        return names

    # Time.

    def written(self, names: tuple[str, ...], policy: Policy, now: float) -> None:
        """The server was asked for these names just now."""
        for name in names:
            entry = self.entries.get(name)
            if entry is not None:
                entry.asked(policy, now)

    def expire(self, policy: Policy, now: float) -> Iterator[Entry]:
        """The entries whose timer fired."""
        return (entry for entry in self.entries.values() if entry.expire(policy, now))

    def deadline(self) -> float:
        """When the next timer fires; inf when none runs."""
        return min((entry.deadline_s for entry in self.entries.values()), default=inf)

    @property
    def lacks_something(self) -> bool:
        """Whether somebody watches what is not cached."""
        return any(not isinstance(entry.resource, Resource) for entry in self.entries.values() if entry.watched)

    def _waits_for(self, name: str) -> bool:
        entry = self.entries.get(name)
        return entry is not None and entry.state is CacheState.REQUESTED


def _nack(problems: list[str]) -> Nack | None:
    if not problems:
        return None
    shown: list[str] = []
    room = _MAX_NACK_CHARS
    for problem in problems:
        room -= len(problem) + 2
        if room < 0 and shown:
            break
        shown.append(problem[:_MAX_NACK_CHARS])
    if len(shown) < len(problems):
        shown.append(f"and {len(problems) - len(shown)} more")
    return Nack(StatusCode.INVALID_ARGUMENT, f"xDS response validation errors: [{'; '.join(shown)}]")
