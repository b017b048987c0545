"""What kind of browser somebody has, in words that they know it by. Pure."""

from typing import Final

MAX_CHARS: Final = 60
# The more particular first: Edge and Opera say that they are Chrome, and Chrome that it is Safari.
_SOFTWARE: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
    ("python", "a program in Python"),
)
_SYSTEMS: Final = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "an iPhone"),
    ("iPad", "an iPad"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser_words(user_agent: str) -> str:
    """The kind of browser that sends this header, such as "Firefox on Linux"; "an unknown browser" where none is
    recognised. Nothing of the header itself is in it.
    """
    software = next((word for mark, word in _SOFTWARE if mark in user_agent), "an unknown browser")
    system = next((word for mark, word in _SYSTEMS if mark in user_agent), "")
    return f"{software} on {system}" if system else software
