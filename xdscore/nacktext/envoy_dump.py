"""The dumps in Envoy's texts: protobuf's text format, of one resource or of the whole response.

Strings in a dump have their quotes and line ends escaped, so its lines are its structure, and what starts a line
without a blank is a field of the outermost message. Protobuf starts a dump with a mark that is random for each process,
like `goo.gle/debugstr   ` (reliability finding 9).
"""

import re

from xdscore import resource_types
from xdscore.nacktext.literals import LITERAL, unquoted
from xdscore.nacktext.reading import NOBODY, Nack, Reading

MARK = "goo.gle/debug"

_BROKEN_RULE = "Proto constraint validation failed ("
AFTER_DUMP = "\n: " + _BROKEN_RULE
_MISMATCH = re.compile(
    r"(?:type URL )?(?P<type>\S{1,256}) (?:embedded in an individual Any )?"
    r"does not match the message-wide type URL \S{1,256} in (?:Delta)?DiscoveryResponse "
)
# A line of a dump that would read like an entry of a listener named, say, `address`. Where the text ends, the value may
# have been cut.
_LINE = re.compile(
    r'[a-z][a-z0-9_]{0,127}: (?:"|-?[0-9]|(?:[A-Z0-9_]{2,127}|true|false|inf|nan)$'
    r"|(?:-|[A-Z]|t|tr|tru|f|fa|fal|fals|i|in|n|na)?\Z)",
    re.MULTILINE,
)
_TYPE_LINE = re.compile(r' +(?:\[([^\]\s]{1,256})\] \{|type_url: "([^"\\\n]{1,256})")$')

# A dump that was cut does not say what it is a dump of. CDS and LDS check parts of a resource only where they say the
# name anyway, no part of an assignment has its name field, and only a whole route configuration has virtual hosts.
_WHOLE_WITH = {
    resource_types.CLUSTER.url: "",
    resource_types.LISTENER.url: "",
    resource_types.ENDPOINT.url: "",
    resource_types.ROUTE.url: "\nvirtual_hosts {",
}


def is_of_resource(nack: Nack) -> bool:
    """Whether the text says that a rule of a field was broken, and contains a dump (protobuf text format) of the
    message with that field.

    Envoy puts the dump first; before 1.26 or so it put it last.
    """
    return nack.text.startswith((MARK, _BROKEN_RULE))


def is_of_response(nack: Nack) -> bool:
    """Whether the text says that a resource is of another type, and contains a dump of the whole response."""
    return _MISMATCH.match(nack.text) is not None


def is_line(text: str, start: int) -> bool:
    """Whether the line that begins at `start` is a field of the outermost message of a dump."""
    return _LINE.match(text, start) is not None


def read_resource(nack: Nack) -> Reading:
    """Blame the resource that the dump shows, if the dump shows a whole resource of the response's type."""
    if not _is_whole(nack):
        return NOBODY
    kind = resource_types.by_url.get(nack.type_url)
    field = f'{kind.name_field if kind is not None else "name"}: "'
    before = "): " if nack.text.startswith(_BROKEN_RULE) else "\n"
    place = nack.text.find(before + field)
    if place < 0:
        return NOBODY if nack.cut else nack.blame_unnamed()
    name = re.compile(rf'({LITERAL})"$', re.MULTILINE).match(nack.text, place + len(before + field))
    return nack.blame(unquoted(name[1])) if name is not None else NOBODY


def read_response(nack: Nack) -> Reading:
    """Blame the first resource in the dump that is of the type which the text complains about: Envoy stops there."""
    mismatch = _MISMATCH.match(nack.text)
    types = _types_of_resources(nack.text)
    if mismatch is None or mismatch["type"] not in types[: len(nack.names)]:
        return NOBODY
    return Reading((types.index(mismatch["type"]),), complete=not nack.cut)


def _is_whole(nack: Nack) -> bool:
    """Whether the dump shows a whole resource and not a part of one, which follows from the type of the broken rule."""
    rule = 0 if nack.text.startswith(_BROKEN_RULE) else nack.text.rfind(AFTER_DUMP)
    if rule < 0:
        return nack.cut and nack.type_url in _WHOLE_WITH and _WHOLE_WITH[nack.type_url] in nack.text
    message = nack.type_url.rpartition(".")[2]
    return nack.text.startswith(f"({message}ValidationError.", nack.text.index("(", rule))


def _types_of_resources(text: str) -> list[str]:
    """The type URL of each resource in the dump of a response, in order; empty for a resource without one.

    A Resource wrapper counts as a type of its own: Envoy does not compare the type inside.
    """
    types: list[str] = []
    for line in text.split("\n"):
        if line == "resources {":
            types.append("")
        elif types and types[-1] == "":
            found = _TYPE_LINE.match(line)
            types[-1] = (found[1] or found[2]) if found is not None else ""
    return types
