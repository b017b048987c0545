"""Lists whose entries start with a raw name: Envoy's `NAME: TEXT, NAME2: TEXT`, gRPC-Rust's `NAME: TEXT; NAME2: TEXT`.

Separators occur in names and in texts. So an entry is where a name of the response stands, with what follows a name in
this list behind it, and clients walk the response in order: a name that goes back in it is text. What a name holds is
never an entry, neither where the name is said nor where a text mentions it, nor where the text was cut inside it.
"""

import re
from dataclasses import dataclass

from xdscore.nacktext import envoy_dump
from xdscore.nacktext.reading import Blamed, Nack, Reading

# What stands around a name that a text mentions.
_AROUND_MENTION = "'\" "


@dataclass(frozen=True, slots=True)
class Form:
    """How a client family writes a list of names and texts.

    `separator` stands between entries, `behind_name` between a name and its text. `end` is what a whole list ends with;
    empty where the end cannot be told.
    """

    separator: str
    behind_name: str
    end: str = ""


class NamedList:
    """Reads the list of names and texts in one NACK, written in the given form."""

    def __init__(self, nack: Nack, form: Form) -> None:
        self._nack = nack
        self._form = form
        name = nack.by_name.beginning(form.behind_name)
        self._token = re.compile(
            f"{re.escape(envoy_dump.MARK)}|{re.escape(envoy_dump.AFTER_DUMP)}|{form.separator}(?={name})"
        )
        self._blamed = Blamed(nack.by_name)
        self._last = -1
        self._name = ""
        self._unfinished_mention = len(nack.text)
        self._complete = not nack.cut and nack.text.endswith(form.end)

    def read(self, start: int) -> Reading:
        """The resources blamed by the list whose first entry begins at `start`, an offset in the text."""
        position = self._entry_at(start)
        # The first entry stands behind the header: if nobody of the response is there, somebody else is.
        elsewhere = position == start
        slots = self._walk(position)
        return Reading(slots, self._complete and not elsewhere, elsewhere)

    def read_behind_text(self, start: int) -> Reading:
        """The resources blamed by the list whose first entry follows the next separator after `start`; before that
        stands other text.
        """
        return Reading(self._walk(start), complete=False)

    def _walk(self, position: int) -> tuple[int, ...]:
        """Read the entries from `position` to the end of the list; return the indexes of the resources that all entries
        read so far blame.
        """
        text, separator = self._nack.text, self._form.separator
        in_dump = False
        while not self._nack.by_name.exhausted and (token := self._token.search(text, position)) is not None:
            position = token.end()
            if self._is_mention(token.start(), position):
                continue
            if token[0] == envoy_dump.MARK:
                in_dump = True
            elif token[0] == envoy_dump.AFTER_DUMP and in_dump:
                in_dump = False
            elif token[0].startswith(separator) and not (in_dump and self._is_in_dump(token.start())):
                behind = token.start() + len(separator)
                position = self._entry_at(behind)
                in_dump = in_dump and position == behind
        return self._blamed.slots

    def _entry_at(self, position: int) -> int:
        """Read the entry at `position`, an offset in the text; return where to go on, which is `position` itself when
        no entry stands there.
        """
        by_name, text, behind_name = self._nack.by_name, self._nack.text, self._form.behind_name
        if by_name.stops_inside(text, position, behind_name):
            self._complete = False
            return len(text) + 1
        name = by_name.longest_at(text, position, behind_name)
        if name == "":
            return position
        slot = by_name.slot_after(name, self._last)
        if slot < 0:
            # Clients walk the response in order: this is a text that reads like an entry, or a client unknown to us.
            self._complete = False
            return position
        self._last, self._name = slot, name
        self._unfinished_mention = -1
        self._blamed.by_name(name)
        return position + len(name)

    def _is_in_dump(self, start: int) -> bool:
        """Whether the separator at `start` is part of a dump of a message whose beginning was read before."""
        text = self._nack.text
        if self._form.separator == "\n":
            return envoy_dump.is_line(text, start + 1)
        # A dump ends with a line end: any other separator before that is in a string.
        return not text.endswith("\n", 0, start)

    def _is_mention(self, start: int, end: int) -> bool:
        """Whether `text[start:end]`, which looks like a separator, belongs to the last entry's name, repeated between
        quotes or blanks.

        Clients repeat the name of the resource they complain about, and a name may contain what separates entries. A
        name that consists of a separator alone is never taken for repeated.
        """
        text, name = self._nack.text, self._name
        if text[start:end] not in name or text[start:end] == name:
            return False
        found = text.find(name, max(1, end - len(name)), start + len(name))
        if found < 0:
            return start >= self._start_of_unfinished_mention()
        opening, after = text[found - 1], found + len(name)
        # A text may have been cut right behind the name.
        return opening in _AROUND_MENTION and (after == len(text) or text[after] == opening)

    def _start_of_unfinished_mention(self) -> int:
        """The offset from which the end of the text may be the beginning of the last entry's name, repeated and then
        cut; the text's length when it is not.
        """
        if self._unfinished_mention < 0:
            text, name = self._nack.text, self._name
            candidates = range(max(1, len(text) - len(name)), len(text))
            self._unfinished_mention = next(
                (place for place in candidates if text[place - 1] in _AROUND_MENTION and name.startswith(text[place:])),
                len(text),
            )
        return self._unfinished_mention
