"""What there is to tell about one name, and how much of that fits into one response."""

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


def fitting(chosen: list[Change], limits: Limits, *, used_bytes: int = 0) -> list[Change]:
    """As many as fit into one response that holds so much already; at least one in an empty one (F23)."""
    room, errors = limits.delta_response_bytes - used_bytes, limits.errors_per_response
    for count, change in enumerate(chosen):
        match change.now:
            case Content(size=size):
                room -= size
            case ResourceError(text=text):
                room -= len(text.encode("utf-8", "surrogatepass"))
                errors -= 1
        room -= FRAMING_BYTES + len(change.name)
        if (count or used_bytes) and (room < 0 or errors < 0):
            return chosen[:count]
    return chosen
