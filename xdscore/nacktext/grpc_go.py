r"""gRPC-Go: `error parsing "ListenerResource" response: [top level errors: T;\nT]resource "NAME": TEXT;\nresource …`.

NAME is quoted as Go quotes (`%q`), so that no name can forge an entry. Resources that cannot be decoded, or are of
another type, appear among the top level errors, which do not say the resource. Nothing separates the top level errors
from the first entry. Entries come in random order (clients.md section 4).
"""

import re

from xdscore.nacktext.literals import LITERAL, unquoted
from xdscore.nacktext.reading import NOBODY, Blamed, Nack, Reading

_HEADER = re.compile(r'error parsing "[^"\n]{1,64}" response: (?P<top>top level errors: )?')
_SEPARATOR = ";\n"
_ENTRY = re.compile(rf'resource "({LITERAL})": ')


def recognises(nack: Nack) -> bool:
    """Whether the text starts as NACKs of grpc-go do."""
    return _HEADER.match(nack.text) is not None


def read(nack: Nack) -> Reading:
    """The resources that the entries blame; for top level errors, which name none, the resources without a name."""
    header = _HEADER.match(nack.text)
    if header is None:
        return NOBODY
    start, end_of_top = header.end(), header.end()
    entries = Blamed(nack.by_name)
    complete, elsewhere = not nack.cut, False
    in_top = header["top"] is not None
    if in_top:
        end_of_top = len(nack.text)
    for entry in _ENTRY.finditer(nack.text, start):
        if in_top:
            # Whatever stands before the first known name may belong to the top level errors.
            if entries.by_name(unquoted(entry[1])):
                in_top, end_of_top = False, entry.start()
        elif (entry.start() == start or nack.text.endswith(_SEPARATOR, start, entry.start())) and not entries.by_name(
            unquoted(entry[1])
        ):
            complete, elsewhere = False, True
    slots = entries.slots
    if end_of_top > start:
        errors = nack.text.count(_SEPARATOR, start, end_of_top) + 1
        unnamed = _behind_top_level_errors(nack, errors)
        slots = unnamed + slots
        complete = complete and len(unnamed) == errors
    return Reading(slots, complete, elsewhere)


def _behind_top_level_errors(nack: Nack, errors: int) -> tuple[int, ...]:
    """The indexes of the resources without a name, if they can have caused this number of top level errors: each causes
    one, and other resources may cause more.

    Empty when there are fewer errors than such resources: the text is then about another response.
    """
    unnamed = nack.unnamed()
    return unnamed if len(unnamed) <= errors else ()
