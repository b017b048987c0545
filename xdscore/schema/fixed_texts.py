"""What matchers of proxies say of texts that can be known without matching: case, and the fixed part of a pattern."""

from typing import Final

_NOT_LITERAL: Final = frozenset("\\.+*?()|[]{}^$")
_MAY_BE_NONE: Final = frozenset("*?{")  # what stands before one of these need not be there


def lowered(text: str) -> str:
    """The text with the letters of ASCII in lower case, and no others, as proxies compare."""
    return text.lower() if text.isascii() else "".join(each.lower() if each.isascii() else each for each in text)


def fixed_start(pattern: str) -> tuple[str, str]:
    """The text with which everything begins that a regular expression of RE2 matches as a whole, as far as that can be
    seen, and the rest of the expression behind it. Empty where it might begin in more than one way.
    """
    if "|" in pattern:
        return "", pattern
    start: list[str] = []
    ends = [0]  # where in the pattern each of these characters ends
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and pattern[at + 1 : at + 2] and not pattern[at + 1].isalnum() and pattern[at + 1].isascii():
            char, at = pattern[at + 1], at + 1
        elif char in _NOT_LITERAL:
            break
        at += 1
        start.append(char)
        ends.append(at)
    if pattern[at : at + 1] in _MAY_BE_NONE and start:
        start.pop()
        ends.pop()
    return "".join(start), pattern[ends[-1] :]
