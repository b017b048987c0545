"""What there is to tell about one name, and how much of that fits into one response."""

from collections.abc import Iterable
from dataclasses import dataclass

from adsserver.engine.client_view import FRAMING_BYTES, ClientView
from adsserver.engine.events import NamedContent
from adsserver.engine.told import Told
from xdscore.errors import ResourceError
from xdscore.limits import Limits
from xdscore.snapshot import Content


@dataclass(frozen=True, slots=True)
class Change:
    """What the client was told of a name before, and what it is to be told now.

    `forced`: even if it is the same. `farewell`: it is the last word of a member that is gone, of which nothing is
    remembered once it was said (F19).
    """

    name: str
    before: Told
    now: Told
    forced: bool
    farewell: bool = False


def members_of(view: ClientView, gains: list[Change]) -> tuple[NamedContent, ...]:
    """The resources to send; the shared tuple of the view unless some content only stands in."""
    named = view.named
    if all((member := named.get(gain.name)) is not None and gain.now is member.content for gain in gains):
        return view.bundle(tuple(gain.name for gain in gains))
    return tuple(NamedContent(gain.name, gain.now) for gain in gains if isinstance(gain.now, Content))


def errors_of(losses: Iterable[Change]) -> tuple[ResourceError, ...]:
    """The resource errors of a response that tells of these losses."""
    return tuple(loss.now for loss in losses if isinstance(loss.now, ResourceError))


class Room:
    """What is left of one response, which holds `used_bytes` already; one change fits into an empty one (F23)."""

    __slots__ = ("_bytes", "_empty", "_errors")

    def __init__(self, limits: Limits, *, used_bytes: int = 0) -> None:
        self._bytes = limits.delta_response_bytes - used_bytes
        self._errors = limits.errors_per_response
        self._empty = not used_bytes

    def takes(self, change: Change) -> bool:
        """Whether this change fits into the response beside those before it; if so, its room is taken."""
        match change.now:
            case Content(size=size):
                self._bytes -= size
            case ResourceError(text=text):
                self._bytes -= len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
                self._errors -= 1
        self._bytes -= FRAMING_BYTES + len(change.name)
        empty, self._empty = self._empty, False
        return empty or (self._bytes >= 0 and self._errors >= 0)
