"""What happened on a stream, as the events that a live tail tells: pure, but for the text of a NACK, which it is given.

Everything that a client chose, its node id, names and words, is bounded and harmless here (reliability N8).
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from adsserver.engine.events import Acknowledged, NamedContent, Rejected, Respond, Subscribed
from adsserver.ports import MOVED_CAUSE, StreamInfo
from controlplane.clients.foreign_text import KeptText, one_line
from controlplane.clients.identity import client_id
from controlplane.tail.values import Kind, Subject
from xdscore.resource_types import ResourceType

# People read names here one by one; who wants all of them asks for the client.
_MAX_NAMES: Final = 8
_MAX_CHARS: Final = 256


class Opening(NamedTuple):
    """The fact that a stream received its first request."""


class Ending(NamedTuple):
    """The fact that a stream ended; `cause` is a sentence for an operator."""

    cause: str


What = Opening | Respond | Subscribed | Acknowledged | Rejected | Ending


class Noted(NamedTuple):
    """What happened on a stream, and when, in Unix time."""

    at: float
    stream: StreamInfo
    what: What


class Event(NamedTuple):
    """One event: what filters ask of it, and a function that returns it as JSON text. The function is given the name
    that the watcher asks for, which is listed first; empty for none.
    """

    subject: Subject
    text: Callable[[str], str]


class Events:
    """Turns what happened into events. `said` returns what may be shown of a NACK's words. Whatever was given to `of`
    must be held as long as this object, which knows resources by their `id()`.
    """

    def __init__(self, said: Callable[[StreamInfo, Rejected], KeptText]) -> None:
        self._said = said
        # By the identity of the resources, which streams share.
        self._names: dict[int, frozenset[str]] = {}

    def of(self, noted: Noted) -> Iterator[Event]:
        """The events of one thing that happened: one, or two where a response also told errors."""
        stream, what = noted.stream, noted.what
        match what:
            case Opening():
                about = f"{stream.variant.value} from {stream.peer}"
                yield _event(Kind.OPENED, noted, text=one_line(about, max_chars=_MAX_CHARS))
            case Ending(cause=cause):
                kind = Kind.MOVED if cause == MOVED_CAUSE else Kind.CLOSED
                yield _event(kind, noted, text=one_line(cause, max_chars=_MAX_CHARS))
            case Subscribed(kind=type_, wildcard=wildcard, names=names):
                yield _event(Kind.SUBSCRIBED, noted, type_, (names,), everything=wildcard)
            case Respond():
                yield self._answer(Kind.SENT, noted, what)
                if what.errors:
                    told = frozenset(each.name for each in what.errors)
                    yield _event(Kind.ERROR, noted, what.kind, (told,), more=lambda name: _errors(what, name))
            case Acknowledged():
                yield self._answer(Kind.ACKED, noted, what)
            case Rejected():
                yield self._refusal(noted, what)

    def _answer(self, kind: Kind, noted: Noted, what: Respond | Acknowledged) -> Event:
        """The event of a response that was sent or acknowledged."""
        told = frozenset(each.name for each in what.errors)
        names = (self._named(what.resources), frozenset(what.removed), told)

        def more(name: str) -> dict[str, Any]:
            return {
                "version": what.version,
                "removed": _shown(what.removed, name),
                "errors": _errors(what, name)["errors"],
            }

        return _event(kind, noted, what.kind, names, more=more)

    def _refusal(self, noted: Noted, what: Rejected) -> Event:
        """The event of a NACK; the client's words are read only if somebody is told."""

        def more(name: str) -> dict[str, Any]:
            return {
                "version": what.version,
                "code": what.nack.code,
                "text": self._said(noted.stream, what),
                "suspects": _shown([each.name for each in what.suspects], name),
            }

        return _event(Kind.NACKED, noted, what.kind, (self._named(what.resources),), more=more)

    def _named(self, resources: tuple[NamedContent, ...]) -> frozenset[str]:
        found = self._names.get(id(resources))
        if found is None:
            found = self._names[id(resources)] = frozenset(each.name for each in resources)
        return found


def _nothing(_name: str) -> dict[str, Any]:
    """The members of an event that says no more than every event does."""
    return {}


def _event(
    kind: Kind,
    noted: Noted,
    type_: ResourceType | None = None,
    names: tuple[frozenset[str], ...] = (),
    *,
    everything: bool = False,
    text: str = "",
    more: Callable[[str], dict[str, Any]] = _nothing,
) -> Event:
    """One event. `names`: the names that it is about, those that its response holds first; `everything`: it is about
    every name of its type, too.
    """
    stream = noted.stream
    client = client_id(environment=stream.environment, identity=stream.identity, node_id=stream.node_id)
    held = names[0] if names else frozenset()

    def written(name: str) -> str:
        content = {
            "kind": kind.value,
            "at": datetime.fromtimestamp(noted.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "environment": stream.environment,
            "client": client,
            "node_id": one_line(stream.node_id, max_chars=_MAX_CHARS),
            "stream": stream.id,
            "type": type_.word if type_ is not None else "",
            "wildcard": everything,
            "version": "",
            "names": _shown(held, name),
            "name_count": len(held),
            "removed": [],
            "errors": [],
            "suspects": [],
            "code": 0,
            "text": text,
            **more(name),
        }
        return json.dumps(content, separators=(",", ":"))

    def has(name: str) -> bool:
        return everything or any(name in each for each in names)

    word = type_.word if type_ is not None else ""
    return Event(Subject(kind, client, stream.node_id, word, has), written)


def _errors(what: Respond | Acknowledged, name: str) -> dict[str, Any]:
    """The first errors of a response, that of `name` before all others."""
    found = sorted(what.errors, key=lambda each: each.name != name)[:_MAX_NAMES]
    return {
        "errors": [
            {
                "name": one_line(each.name, max_chars=_MAX_CHARS),
                "status": each.code.name,
                "code": each.xds_code,
                "text": one_line(each.text, max_chars=2 * _MAX_CHARS),
            }
            for each in found
        ]
    }


def _shown(names: Collection[str], first: str) -> list[str]:
    """The first of these names, in their order, each on one line and cut where it is long; `first` before all others,
    if it is among them.
    """
    chosen: Iterable[str] = _few(names)
    if first and first in names:
        chosen = [first, *(each for each in chosen if each != first)][:_MAX_NAMES]
    return [one_line(each, max_chars=_MAX_CHARS) for each in chosen]


def _few(names: Collection[str]) -> list[str]:
    # A set has no order; to sort ten thousand names for eight takes longer than all the rest.
    few = sorted(names) if len(names) <= 100 else list(names)
    return few[:_MAX_NAMES]
