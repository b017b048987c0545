"""What there is to tell about one name, and how much of that fits into one response."""

from dataclasses import dataclass

from adsserver.engine.client_view import FRAMING_BYTES, ClientView, Step
from adsserver.engine.events import NamedContent
from adsserver.engine.told import ABSENT, Told
from xdscore.errors import ResourceError
from xdscore.snapshot import Content

# reliability (e): below every client's wall of 4 MiB, and writes stay fair.
MAX_RESPONSE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Change:
    """What the client was told of a name before, and what it is to be told now. `forced`: even if it is the same."""

    name: str
    before: Told
    now: Told
    forced: bool


def gains_of(step: Step, earlier: ClientView) -> list[Change]:
    """The gains of a shared step, as changes of one stream that was told `earlier`."""
    held = earlier.named
    return [
        Change(m.name, held[m.name].content if m.name in held else ABSENT, m.content, forced=False) for m in step.gains
    ]


def members_of(view: ClientView, gains: list[Change]) -> tuple[NamedContent, ...]:
    """The resources to send; the shared tuple of the view unless some content only stands in."""
    if all(gain.now is view.named[gain.name].content for gain in gains):
        return view.bundle(tuple(gain.name for gain in gains))
    return tuple(NamedContent(gain.name, gain.now) for gain in gains if isinstance(gain.now, Content))


def fitting(chosen: list[Change]) -> list[Change]:
    """As many as fit into one response, at least one."""
    room = MAX_RESPONSE_BYTES
    for count, change in enumerate(chosen):
        match change.now:
            case Content(size=size):
                room -= size
            case ResourceError(text=text):
                room -= len(text.encode("utf-8", "surrogatepass"))
        room -= FRAMING_BYTES + len(change.name)
        if room < 0 and count:
            return chosen[:count]
    return chosen
