"""gRPC-Node: `xDS response validation errors: [resource index N: TEXT; …]`, always an index and never a name.

The header is C-core's; what C-core does not recognise is Node's. Node walks the resources in order (clients.md
section 4).
"""

from xdscore.nacktext import numbered
from xdscore.nacktext.numbered import Entry
from xdscore.nacktext.reading import Nack, Reading


def recognises(nack: Nack) -> bool:
    """Whether the text starts with a numbered entry, `resource index N:`, after grpc-node's header."""
    return numbered.first_entry(nack).found


def read(nack: Nack) -> Reading:
    """The resources that the entries of the text blame."""
    return numbered.read(nack, _fits)


def _fits(_nack: Nack, entry: Entry) -> bool:
    """Whether what follows an entry's index can be grpc-node's. True for any text, except in an entry about
    `resource_errors`, which grpc-node does not write.
    """
    return not entry.about_errors
