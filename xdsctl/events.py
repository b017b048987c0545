"""Server-sent events, read from the lines of an answer (HTML Living Standard, section 9.2.6). Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. `id`: the id of the last event that had one; it says where to go on after a broken connection.

    An event without data is the server's sign that nothing happened until this id.
    """

    name: str
    data: str
    id: str


def events_in(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """The events in these lines, which have no line ends. What follows the last empty line is no event."""
    name, last, some = "message", "", False
    data: list[str] = []
    for line in lines:
        if not line:
            if some:
                yield ServerEvent(name, "\n".join(data), last)
            name, data, some = "message", [], False
            continue
        field, _colon, value = line.partition(":")
        value = value.removeprefix(" ")
        some = some or bool(field)  # a comment begins with the colon
        match field:
            case "event":
                name = value
            case "data":
                data.append(value)
            case "id":
                last = value
