"""gRPC-Java: one line for each error (clients.md section 4).

`LDS response Listener 'NAME' validation error: TEXT`, `LDS response 'NAME' unexpected error: TEXT`,
`LDS response Resource index N - can't decode Listener: TEXT`, `Unsupported resource name: NAME for type: LDS`.
NAME is raw, and texts may hold line ends: an entry is a line that starts like one and says a name of the response.
"""

import re

from xdscore.nacktext.reading import Blamed, Nack, Reading

_HEAD = re.compile(
    r"^(?:[A-Z]{2,5} response Resource index (?P<index>[0-9]{1,9}) - can't "
    r"|[A-Z]{2,5} response [A-Z][A-Za-z]{1,63} (?P<invalid>')"
    r"|[A-Z]{2,5} response (?P<failed>')"
    r"|(?P<unsupported>Unsupported resource name: ))",
    re.MULTILINE,
)
_TERMINATORS = {
    "invalid": "' validation error: ",
    "failed": "' unexpected error: ",
    "unsupported": " for type: ",
}


def recognises(nack: Nack) -> bool:
    """Whether the text starts as grpc-java's do."""
    return _HEAD.match(nack.text) is not None


def read(nack: Nack) -> Reading:
    """The resources that the lines of the text blame."""
    blamed = Blamed(nack.by_name)
    complete, elsewhere = not nack.cut, False
    position = 0
    while (head := _HEAD.search(nack.text, position)) is not None:
        terminator = _TERMINATORS.get(head.lastgroup or "", "")
        if terminator and nack.by_name.stops_inside(nack.text, head.end(), terminator):
            return Reading(blamed.slots, complete=False, elsewhere=elsewhere)
        said = nack.by_name.longest_at(nack.text, head.end(), terminator) if terminator else ""
        if head["index"] and int(head["index"]) < len(nack.names):
            blamed.by_slots((int(head["index"]),))
        elif not blamed.by_name(said):
            complete, elsewhere = False, True
        # Nothing inside the name counts, not even a line end.
        position = head.end() + len(said)
    return Reading(blamed.slots, complete, elsewhere)
