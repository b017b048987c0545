"""gRPC C-core (C++, Python, Ruby, PHP): `xDS response validation errors: [resource index N: NAME: TEXT; …]`.

NAME is raw and may be missing: a resource that cannot be decoded and is not wrapped has none, and errors found before
decoding leave it out. `resource_errors index N: NAME: TEXT` is a complaint about an error entry of xRFC TP3 and blames
no resource. C-core walks the resources in order, then the error entries (clients.md sections 1 and 4).
"""

import re

from xdscore.nacktext import numbered
from xdscore.nacktext.numbered import Entry
from xdscore.nacktext.reading import Nack, Reading

# How an entry goes on that says no name: a status (`INVALID_ARGUMENT: …`), or an error found before decoding.
_NAMELESS = re.compile(
    r"[A-Z][A-Z_]{1,30}: "
    r"|incorrect resource type "
    r"|found resource type "
    r"|No resource present in Resource proto"
    r"|Can't (?:decode|parse) "
    r"|Cannot parse xDS resource name"
)
# gRPC-Node says the same of a wrong type, but with the whole type URL.
_NODE_WRONG_TYPE = re.compile(r'incorrect resource type "[^"\n]{0,256}" \(should be "type\.googleapis\.com/')


def recognises(nack: Nack) -> bool:
    """Whether the first entry of the text names a resource of the response, or goes on in a way that only gRPC C-core
    does.
    """
    first = numbered.first_entry(nack)
    if not first.found or _NODE_WRONG_TYPE.match(nack.text, first.body):
        return False
    return first.stops_inside_name or _fits(nack, first)


def read(nack: Nack) -> Reading:
    """The resources that the entries of the text blame."""
    return numbered.read(nack, _fits)


def _fits(nack: Nack, entry: Entry) -> bool:
    """Whether what follows the index of an entry is what C-core writes about the resource at that index."""
    return entry.about_errors or entry.name != "" or _NAMELESS.match(nack.text, entry.body) is not None
