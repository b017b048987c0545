"""What a NACK blames, and how the suspects are told apart (reliability N2, decisions C8).

First comes what changed since this client's last ACK; the text only narrows it. A name that was not in the response is
never blamed. There is one thing that a text says by itself: a client may refuse what it took before, because something
went away on its side, and then a whole text that names it is more than the proof that it took it once (B12).
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from adsserver.engine.events import Nack, NamedContent
from adsserver.engine.ledger import Entry
from xdscore.evidence import Evidence
from xdscore.nacktext import Dialect, attribute
from xdscore.resource_types import ResourceType

Group = tuple[str, ...]

# Texts whose reading is remembered, and how long one may be. A fleet that refuses a response says much the same about
# it: each text is read once, not once for each client (reliability F19).
_MAX_READ_TEXTS = 128
_MAX_READ_CHARS = 4_096


class Resends:
    """The groups of suspects that are to be sent again, and how many times the NACK they come from still allows it.

    `limit`: re-sends for one NACK (reliability N3). `undecided`: the names suspected together with others, by no NACK
    yet alone; also those that are not sent again because the limit is reached.
    """

    __slots__ = ("_groups", "_left", "_limit", "undecided")

    def __init__(self, limit: int) -> None:
        self._groups: list[Group] = []
        self.undecided: frozenset[str] = frozenset()
        self._limit = limit
        self._left = 0

    def __bool__(self) -> bool:
        return bool(self._groups)

    def plan(self, groups: list[Group], judged: Iterable[NamedContent], *, isolating: bool) -> None:
        """Put these groups in front. A NACK of anything but a re-send (not `isolating`) starts the count anew.

        `judged`: what the NACK speaks of; what of it is in no group is decided.
        """
        suspected = (name for group in groups for name in group)
        self.undecided = self.undecided.difference(member.name for member in judged).union(suspected)
        if not isolating:
            self._left = self._limit
        self._groups = groups + self._groups

    @property
    def awaited(self) -> frozenset[str]:
        """The names that are still to be sent again; none of them once the limit is reached."""
        return frozenset(name for group in self._groups for name in group) if self._left else frozenset()

    def next_group(self) -> Group:
        """The group that comes next; empty when there is none. What the limit does not allow is given up."""
        if not self._left:
            self._groups.clear()
        return self._groups[0] if self._groups else ()

    def drop_group(self) -> None:
        """The next group was sent, or there is nothing of it left to send."""
        del self._groups[0]

    def count(self) -> None:
        """Note that one more response re-sends suspects; a NACK allows a number of them."""
        self._left -= 1


class _Read(NamedTuple):
    """The resources of a response that a text names or points at. `whole`: it is in a grammar that is known, was not
    cut, and says nothing else.
    """

    names: frozenset[str]
    whole: bool


def evidence_of(entry: Entry, changed: tuple[NamedContent, ...], turned: tuple[NamedContent, ...]) -> Evidence:
    """On which ground `changed`, what was new to the client in a response it refused, is suspected, or else `turned`,
    what it took before.
    """
    if len(changed) != 1 or turned:
        return Evidence.TEXT
    return Evidence.ISOLATED if entry.isolating else Evidence.ONLY_CHANGE


def named_by(
    kind: ResourceType, entry: Entry, changed: tuple[NamedContent, ...], nack: Nack
) -> tuple[NamedContent, ...]:
    """Of `changed`, those that the text names; none when it names nobody."""
    named = _read(kind, entry, nack).names
    return tuple(member for member in changed if member.name in named)


def turned_against(
    kind: ResourceType, entry: Entry, changed: tuple[NamedContent, ...], nack: Nack
) -> tuple[NamedContent, ...]:
    """What the client took before and refuses now: what a whole text names, where nothing of it is in `changed`.

    Of a text that was cut, or that is read in part, nobody knows what else it says: it only narrows `changed`. Whoever
    makes up a text could name all the same by it on a new stream, where everything is new (threat 14).
    """
    read = _read(kind, entry, nack)
    if not read.whole or any(member.name in read.names for member in changed):
        return ()
    return tuple(member for member in entry.resources if member.name in read.names)


def _read(kind: ResourceType, entry: Entry, nack: Nack) -> _Read:
    # What a client says of a secret is read and let go (architecture decision 8).
    remembered = len(nack.message) <= _MAX_READ_CHARS and not kind.secret
    read = _known_text if remembered else _text
    return read(nack.message, kind.url, tuple(member.name for member in entry.resources))


def _text(message: str, type_url: str, names: tuple[str, ...]) -> _Read:
    attribution = attribute(message, type_url=type_url, names=names)
    found = frozenset((*attribution.names, *(names[index] for index in attribution.indexes)))
    return _Read(found, attribution.complete and attribution.dialect is not Dialect.UNKNOWN)


_known_text = lru_cache(_MAX_READ_TEXTS)(_text)


def groups_to_resend(changed: tuple[NamedContent, ...], suspects: tuple[NamedContent, ...]) -> list[Group]:
    """Which names to send apart, so that the good ones come into use and the bad ones are proven.

    After a NACK nobody knows what of the response was used (B12): what the text clears is sent once more, together.
    Where it clears nothing, the suspects go in halves. A single suspect is not sent again: it is the culprit (B7).
    """
    suspected = {member.name for member in suspects}
    cleared = tuple(member.name for member in changed if member.name not in suspected)
    if cleared:
        return [cleared]
    return halves(suspects)


def halves(suspects: tuple[NamedContent, ...]) -> list[Group]:
    """The suspects in two groups; none where there is only one, for it is the culprit."""
    if len(suspects) < 2:
        return []
    names = tuple(member.name for member in suspects)
    middle = len(names) // 2
    return [names[:middle], names[middle:]]
