"""The texts clients read: one decision, one line (ux.md section 8, architecture.md decision 4).

A text is a function of (code, type, name, environment, rule message) and nothing else: no snapshot, change or client
in it, so that streams share it and nothing is sent again without cause (interfaces.md section 5).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from urllib.parse import quote

from xdscore.codes import CATALOGUE, Code
from xdscore.decision import Decision, Denied, Missing, Serve, Undecided, Withheld
from xdscore.resource_types import ResourceType

MAX_TEXT_CHARS = 300


class StatusCode(IntEnum):
    """The google.rpc.Code values Parley sends (xRFC TP3, "Protocol Behavior"; protocol.md F2). 5 and 7 may cost a
    client its copy.
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
    wording = _wording(decision, kind)

    def text(shown: str) -> str:
        filled = wording.row.detail.format(
            title=kind.title, name=shown, environment=environment, because=wording.because
        )
        return f"{wording.row.status} [{wording.row.code}] {filled}"

    link = f" Explain: {public_url}/x?e={quote(environment, safe='')}&t={kind.word}&n={quote(name, safe='')}"
    return ResourceError(name, wording.code, wording.row.code, _fit(text, _one_line(name), link))


@dataclass(frozen=True, slots=True)
class _Wording:
    """One row of the catalogue, with what a rule or a finding adds to its sentence."""

    row: Code
    because: str = ""

    @property
    def code(self) -> StatusCode:
        """The status clients are sent."""
        return StatusCode[self.row.status]


def _wording(decision: Missing | Denied | Withheld | Undecided, kind: ResourceType) -> _Wording:
    match decision:
        # A hidden name reads as one that never was, also when it was removed (resolutions C37).
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
    """The rule's words; of a secret, which no default covers, our own."""
    if kind.secret and denied.rule == 0:
        return f"no access rule that names the type {kind.word} allows it"
    return _one_line(denied.message).rstrip(".")


def _fit(text: Callable[[str], str], name: str, link: str) -> str:
    """At most 300 characters: the name gives way in its middle, then the link goes; code word and XDS code stay
    (resolutions C22).
    """
    if len(text(name)) + len(link) <= MAX_TEXT_CHARS:
        return text(name) + link
    bare = len(text(""))
    for tail in (link, ""):
        room = MAX_TEXT_CHARS - bare - len(tail)
        if room >= min(len(name), 40):
            return text(_shorten(name, room)) + tail
    return text(_shorten(name, 40))[:MAX_TEXT_CHARS]


def _shorten(name: str, room: int) -> str:
    if len(name) <= room:
        return name
    half = (room - 1) // 2
    return f"{name[:half]}…{name[len(name) - (room - 1 - half) :]}"


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
