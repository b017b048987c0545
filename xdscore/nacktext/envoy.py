r"""Envoy, whose texts have a grammar for each way to fail (clients.md sections 3 and 4).

- CDS and LDS say `Error adding/updating cluster(s) NAME: TEXT, NAME2: TEXT` and
  `Error adding/updating listener(s) NAME: TEXT\nNAME2: TEXT\n`. NAME is raw and separators occur in texts, so an entry
  is where a name of the response stands, in the response's order.
- A broken rule of a field: a dump of the resource, then `: Proto constraint validation failed (…)`. The dump says the
  name. A resource of another type: a dump of the whole response.
- `duplicate name NAME found among added/updated resources` (delta); `… in route NAME` (RDS, two domains alike).
- The rest names nobody.
"""

import re
from collections.abc import Callable

from xdscore.nacktext import envoy_dump
from xdscore.nacktext.reading import NOBODY, Blamed, Nack, Reading

_CLUSTERS = "Error adding/updating cluster(s) "
_LISTENERS = "Error adding/updating listener(s) "
_DUPLICATE = "duplicate name "
_DUPLICATE_ENDS = (" found among added/updated resources", " found in the union of added+removed resources")
_UNDECODABLE = "Unable to unpack as "
_ROUTE_DOMAINS = ("Only a single wildcard domain is permitted", "Only unique values for domains are permitted")
_IN_ROUTE = " in route "
# Texts that only Envoy writes, and that name nobody.
_NAMELESS = (
    "Error adding/updating scoped route(s)",
    "Error: filter config has type URL ",
    "Field '",
    "Invalid duration: ",
    "Protobuf message (type ",
    "malformed IP address: ",
    "route: unknown cluster ",
)

_BEHIND_NAME = ": "
# A line of a dump that would read like an entry of a listener named, say, `address`.
_DUMP_LINE = re.compile(r'[a-z][a-z0-9_]{0,127}: (?:"|-?[0-9]|(?:[A-Z0-9_]{2,127}|true|false|inf|nan)$)', re.MULTILINE)


def recognises(nack: Nack) -> bool:
    """Whether only Envoy writes such a text."""
    return _form(nack) is not _nobody or nack.text.startswith(_NAMELESS)


def read(nack: Nack) -> Reading:
    """What the text blames."""
    return _form(nack)(nack)


def _form(nack: Nack) -> Callable[[Nack], Reading]:
    """The reader for the way in which the client failed."""
    text = nack.text
    forms: tuple[tuple[bool, Callable[[Nack], Reading]], ...] = (
        (text.startswith(_CLUSTERS), _clusters),
        (text.startswith(_LISTENERS), _listeners),
        (text.startswith(_DUPLICATE) and text.endswith(_DUPLICATE_ENDS), _duplicate),
        (text.startswith(_UNDECODABLE), Nack.blame_unnamed),
        (text.startswith(_ROUTE_DOMAINS), _route_domains),
        (envoy_dump.is_of_resource(nack), envoy_dump.read_resource),
        (envoy_dump.is_of_response(nack), envoy_dump.read_response),
    )
    return next((form for applies, form in forms if applies), _nobody)


def _nobody(_nack: Nack) -> Reading:
    return NOBODY


def _clusters(nack: Nack) -> Reading:
    return _List(nack, ", ").read(len(_CLUSTERS))


def _listeners(nack: Nack) -> Reading:
    return _List(nack, "\n").read(len(_LISTENERS))


def _duplicate(nack: Nack) -> Reading:
    """`duplicate name NAME found among added/updated resources`, and of the union with removed ones."""
    end = next(end for end in _DUPLICATE_ENDS if nack.text.endswith(end))
    return nack.blame(nack.text.removeprefix(_DUPLICATE).removesuffix(end))


def _route_domains(nack: Nack) -> Reading:
    """`Only unique values for domains are permitted. Duplicate entry of domain DOMAIN in route NAME`."""
    position = nack.text.find(_IN_ROUTE, max(0, len(nack.text) - nack.by_name.longest - len(_IN_ROUTE)))
    while position >= 0 and not nack.cut:
        reading = nack.blame(nack.text[position + len(_IN_ROUTE) :])
        if reading.slots:
            return reading
        position = nack.text.find(_IN_ROUTE, position + 1)
    return NOBODY


class _List:
    """Walks the entries of a list of clusters or listeners."""

    def __init__(self, nack: Nack, separator: str) -> None:
        self._nack = nack
        self._separator = separator
        name = nack.by_name.beginning(_BEHIND_NAME)
        self._token = re.compile(
            f"{re.escape(envoy_dump.MARK)}|{re.escape(envoy_dump.AFTER_DUMP)}|{separator}(?={name})"
        )
        self._blamed = Blamed(nack.by_name)
        self._last = -1
        self._name = ""
        self._complete = not nack.cut

    def read(self, start: int) -> Reading:
        """What the list blames; its first entry is at `start`."""
        text = self._nack.text
        position = self._entry_at(start)
        # The first entry stands behind the header: if nobody of the response is there, somebody else is.
        elsewhere = position == start
        in_dump = False
        while not self._nack.by_name.exhausted and (token := self._token.search(text, position)) is not None:
            position = token.end()
            if _is_mention(text, token.start(), position, self._name):
                continue
            if token[0] == envoy_dump.MARK:
                in_dump = True
            elif token[0] == envoy_dump.AFTER_DUMP and in_dump:
                in_dump = False
            elif token[0].startswith(self._separator) and not (in_dump and self._is_in_dump(token.start())):
                behind = token.start() + len(self._separator)
                position = self._entry_at(behind)
                in_dump = in_dump and position == behind
        return Reading(self._blamed.slots, self._complete and not elsewhere, elsewhere)

    def _entry_at(self, position: int) -> int:
        """Take the entry at `position`, if there is one; where to go on."""
        by_name = self._nack.by_name
        name = by_name.longest_at(self._nack.text, position, _BEHIND_NAME, cut=self._nack.cut)
        if name == "":
            return position
        slot = by_name.slot_after(name, self._last)
        if slot < 0:
            # Envoy walks the response in order: this is a text that reads like an entry, or a client unknown to us.
            self._complete = False
            return position
        self._last, self._name = slot, name
        self._blamed.by_name(name)
        return position + len(name)

    def _is_in_dump(self, start: int) -> bool:
        """Whether the separator at `start`, behind the mark of a dump, still belongs to the dump."""
        text, behind = self._nack.text, start + len(self._separator)
        if self._separator == "\n":
            return _DUMP_LINE.match(text, behind) is not None
        # A dump ends with a line end: a separator of clusters before that is in a string.
        return not text.endswith("\n", 0, start)


def _is_mention(text: str, start: int, end: int, name: str) -> bool:
    """Whether the separator `text[start:end]` is inside a mention of `name`: the name between quotes or blanks.

    Envoy repeats the name of the resource it complains about, and a name may contain what separates entries. One that
    is nothing else says nothing: a separator between two quotes is far more often just that.
    """
    if text[start:end] not in name or text[start:end] == name:
        return False
    found = text.find(name, max(1, end - len(name)), start + len(name))
    if found < 0:
        return False
    after = found + len(name)
    return text[found - 1] in "'\" " and text[found - 1] == text[after : after + 1]
