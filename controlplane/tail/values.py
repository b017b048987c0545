"""What is watched and what is told, as values: pure."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from xdscore.resource_types import by_word


class Kind(StrEnum):
    """The kinds of events on streams."""

    OPENED = "opened"  # a stream received its first request
    SUBSCRIBED = "subscribed"  # the client asks for other names than before
    SENT = "sent"
    ACKED = "acked"
    NACKED = "nacked"
    ERROR = "error"  # a response told that the client cannot have names
    MOVED = "moved"  # the stream ended, because its client belongs to another environment now
    CLOSED = "closed"  # the stream ended for another reason


ALL_KINDS: Final = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class Subject:
    """What one event is about, as far as filters ask: a client by its id and node id, and the word of a type; empty
    where the event is about the stream as a whole. `has`: whether the event is about this name.
    """

    kind: Kind
    client: str
    node_id: str
    word: str = ""
    has: Callable[[str], bool] = lambda _name: False


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events a watcher wants. Empty texts stand for all: `client` is the id or node id of a client, `word` that
    of a type, `name` the name of a resource.
    """

    client: str = ""
    word: str = ""
    name: str = ""
    kinds: frozenset[Kind] = ALL_KINDS

    def wants(self, subject: Subject) -> bool:
        """Whether an event about this subject passes the filter."""
        return (
            subject.kind in self.kinds
            and self.client in {"", subject.client, subject.node_id}
            and self.word in {"", subject.word}
            and (not self.name or subject.has(self.name))
        )


@dataclass(frozen=True, slots=True)
class Interest:
    """A watcher as ADS processes know it: the channel on which it listens, the key of the only environment of which it
    is told, and its filter.
    """

    channel: str
    environment: str
    wanted: Filter

    def as_json(self) -> dict[str, Any]:
        """The interest as a JSON object, for `of_json`."""
        wanted = self.wanted
        return {
            "channel": self.channel,
            "environment": self.environment,
            "client": wanted.client,
            "type": wanted.word,
            "name": wanted.name,
            "kinds": sorted(wanted.kinds),
        }

    @classmethod
    def of_json(cls, found: Any) -> Self:
        """The interest in a JSON object that `as_json` made, in this release or in the next: kinds that this one does
        not know are left out. Raises ValueError, KeyError or TypeError for any other value.
        """
        texts = [found[each] for each in ("channel", "environment", "client", "type", "name")]
        if not all(isinstance(each, str) for each in texts) or found["type"] not in {"", *by_word}:
            raise ValueError("not an interest of this release")
        channel, environment, client, word, name = texts
        kinds = frozenset(kind for kind in Kind if kind.value in found["kinds"])
        return cls(channel, environment, Filter(client, word, name, kinds))


@dataclass(frozen=True, slots=True)
class Batch:
    """What one ADS process (`process`) tells one watcher at once. `number` grows with each batch of the process.

    environment: the key of the environment that all events are of.
    events: each event's kind and its JSON text, in order.
    left_out: how many more events there were and are not told, because they were too many at once.
    """

    process: str
    number: int
    environment: str
    events: tuple[tuple[str, str], ...]
    left_out: int
