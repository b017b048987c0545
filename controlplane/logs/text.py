"""Foreign text in a log line: cut, and without what a terminal or a reader acts on (threat 16). Needs nothing but
Python, for `foreign_lines` runs without everything else.
"""

import unicodedata
from typing import Final

FIELD_CHARS_MAX: Final = 1_024  # reliability.md threat 16
TRACEBACK_CHARS_MAX: Final = 16_384  # a traceback is ours, and useless when cut at its first frames
# Categories of characters that a terminal or a reader acts on: control, format (bidi, zero width), line separators.
_ACTING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def contained(text: str, chars_max: int) -> str:
    """The text on one line of at most `chars_max` characters before escaping, safe for a terminal."""
    shown = text if len(text) <= chars_max else text[: chars_max - 1] + "…"
    if shown.isascii() and shown.isprintable():
        return shown
    return "".join(_escaped(each) if unicodedata.category(each) in _ACTING else each for each in shown)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
