"""The texts clients read: one decision, one line (texts.md section 8, decisions A4).

A text is a function of (code, type, name, environment, rule message) and nothing else: no snapshot, change or client
in it, so that streams share it and nothing is sent again without cause (interfaces.md section 5).
"""

import string
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from urllib.parse import quote

from xdscore.codes import CATALOGUE, Code
from xdscore.decision import Decision, Denied, Missing, Serve, Undecided, Withheld
from xdscore.resource_types import ResourceType

MAX_TEXT_CHARS = 300
# Of a long name so much is shown at least.
_LEAST_NAME_CHARS = 40
# What a link holds as it is; of any other byte it holds three characters.
_UNQUOTED = f"{string.ascii_letters}{string.digits}_.-~".encode()


class StatusCode(IntEnum):
    """The google.rpc.Code values that Parley sends (xRFC TP3, "Protocol Behavior"; protocol.md F2). For NOT_FOUND and
    PERMISSION_DENIED a client may drop content that it has.
    """

    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    INTERNAL = 13
    UNAVAILABLE = 14


@dataclass(frozen=True, slots=True)
class ResourceError:
    """One entry of `resource_errors`: the name exactly as subscribed, the status code, the stable XDS code and the
    text.
    """

    name: str
    code: StatusCode
    xds_code: str
    text: str


def error_of(
    decision: Decision, *, kind: ResourceType, name: str, environment: str, public_url: str
) -> ResourceError | None:
    """The error entry for a decision, or None where the name is served."""
    if isinstance(decision, Serve):
        return None
    sentence = _sentence(decision, kind, environment, public_url)
    return ResourceError(name, sentence.code, sentence.xds_code, sentence.about(name))


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The text that all names with one decision share: what stands before the name (`head`) and behind it (`tail`), and
    the link, to which the name is added.
    """

    code: StatusCode
    xds_code: str
    head: str
    tail: str
    link: str

    def about(self, name: str) -> str:
        """The sentence with this name, in at most 300 characters: to fit, the name is cut in its middle, then the link
        is left out; code word and XDS code stay (decisions C22).
        """
        room = MAX_TEXT_CHARS - len(self.head) - len(self.tail)
        least = min(len(name), _LEAST_NAME_CHARS)
        # A name that is too long by itself leaves no room for a link, whatever has to be quoted in it.
        link_chars = len(self.link) + _quoted_chars(name) if len(name) < room else room
        if room - link_chars >= least:
            shown, link = _shorten(name, room - link_chars), self.link + quote(name, safe="")
        else:
            shown, link = _shorten(name, max(room, least)), ""
        return f"{self.head}{_one_line(shown)}{self.tail}{link}"[:MAX_TEXT_CHARS]


# For names asked for by the thousand; a sentence is a rule's or a finding's.
@lru_cache(maxsize=1024)
def _sentence(
    decision: Missing | Denied | Withheld | Undecided, kind: ResourceType, environment: str, public_url: str
) -> _Sentence:
    wording = _wording(decision, kind)
    row, because = wording.row, wording.because
    head, tail = (
        part.format(title=kind.title, environment=environment, because=because) for part in row.detail.split("{name}")
    )
    link = f" Explain: {public_url}/x?e={quote(environment, safe='')}&t={kind.word}&n="
    return _Sentence(wording.code, row.code, f"{row.status} [{row.code}] {head}", tail, link)


@dataclass(frozen=True, slots=True)
class _Wording:
    """One row of the catalogue of codes. `because`: the words of a rule or finding that end its sentence."""

    row: Code
    because: str = ""

    @property
    def code(self) -> StatusCode:
        """The status code that clients are sent."""
        return StatusCode[self.row.status]


def _wording(decision: Missing | Denied | Withheld | Undecided, kind: ResourceType) -> _Wording:
    match decision:
        # A hidden name reads as one that never was, also when it was removed (decisions C37).
        case Missing(removed=True, hidden=False):
            return _Wording(CATALOGUE["XDS2102"])
        case Missing():
            return _Wording(CATALOGUE["XDS2101"])
        case Denied():
            because = _reason(decision, kind)
            return _Wording(CATALOGUE["XDS2103"], f": {because}" if because else "")
        case Withheld(finding=finding):
            return _Wording(CATALOGUE["XDS2106"], _one_line(finding).rstrip("."))
        case Undecided():
            return _Wording(CATALOGUE["XDS2105"])


def _reason(denied: Denied, kind: ResourceType) -> str:
    """Why access is denied: the rule's own words if it has some, or a text of ours where a secret is denied because no
    rule allows it.
    """
    if kind.secret and denied.rule == 0:
        return f"no access rule that names the type {kind.word} allows it"
    return _one_line(denied.message).rstrip(".")


def _quoted_chars(name: str) -> int:
    """How many characters the name has in a link, where it is percent-encoded."""
    data = name.encode()
    return len(data) + 2 * len(data.translate(None, _UNQUOTED))


def _shorten(name: str, room: int) -> str:
    if len(name) <= room:
        return name
    half = (room - 1) // 2
    return f"{name[:half]}…{name[len(name) - (room - 1 - half) :]}"


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)
