"""The frames of all lists, each entered by the page that shows it: REST holds what it is asked against them, too."""

from typing import Final

from controlplane.common.errors import NotFound
from controlplane.listing.frames import Frame
from xdscore.codes import shown

_FRAMES: Final[dict[str, Frame]] = {}


def frame_enter(frame: Frame) -> None:
    """Make the frame known by its word. Raises ValueError where another list has the word."""
    if _FRAMES.setdefault(frame.name, frame) != frame:
        raise ValueError(f"there are two lists '{frame.name}'")


def frame_of(name: str, *, of_environment: bool) -> Frame:
    """The frame of the list with this word. Raises NotFound where there is none, or it is of an environment where it
    should not be, or the other way around.
    """
    frame = _FRAMES.get(name)
    if frame is None or frame.of_environment is not of_environment:
        known = ", ".join(sorted(name for name, each in _FRAMES.items() if each.of_environment is of_environment))
        raise NotFound(f"There is no list '{shown(name)}'. Lists {_OF[of_environment]}: {known}.")
    return frame


_OF: Final = {True: "of an environment", False: "that are of none"}
