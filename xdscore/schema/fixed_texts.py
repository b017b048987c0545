"""What matchers of proxies say of texts that can be known without matching: case, and the fixed part of a pattern."""

import re
from typing import Final

# Characters that stand for themselves, and escaped punctuation; what stands before one of `*?{` need not be there.
_FIXED: Final = re.compile(r"(?:(?:[^\\.+*?()|\[\]{}^$]+|\\[\x00-/:-@\[-`{-\x7f])(?![*?{]))*")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def lowered(text: str) -> str:
    """The text with the letters of ASCII in lower case, and no others, as proxies compare."""
    return text.lower() if text.isascii() else "".join(each.lower() if each.isascii() else each for each in text)


def fixed_start(pattern: str) -> tuple[str, str]:
    """The text with which everything begins that a regular expression of RE2 matches as a whole, as far as that can be
    seen, and the rest of the expression behind it. Empty where it might begin in more than one way.
    """
    if "|" in pattern:
        return "", pattern
    found = _FIXED.match(pattern)
    end = found.end() if found is not None else 0
    start = pattern[:end]
    return _ESCAPED.sub(r"\1", start) if "\\" in start else start, pattern[end:]
