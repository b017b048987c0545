"""How clients write strings: Go's and protobuf's literals undone."""

import re

# The inside of a literal between double quotes, on one line: both Go's %q and protobuf's text format escape line ends.
# Possessive, so that a literal without an end is not tried again shorter.
LITERAL = r'(?:[^"\\\n]|\\.)*+'

_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LAST_CODE_POINT = 0x10FFFF


def unquoted(literal: str) -> str:
    """The string that a quoted literal of Go or protobuf stands for, given without its quotes. Bytes that are no UTF-8
    become U+FFFD.
    """
    if "\\" not in literal:
        return literal
    parts: list[bytes] = []
    position = 0
    for escape in _ESCAPE.finditer(literal):
        parts.append(literal[position : escape.start()].encode("utf-8", "surrogatepass"))
        parts.append(_bytes_of(escape))
        position = escape.end()
    parts.append(literal[position:].encode("utf-8", "surrogatepass"))
    return b"".join(parts).decode("utf-8", "replace")


def _bytes_of(escape: re.Match[str]) -> bytes:
    octal, byte, short, long, other = escape.groups(default="")
    if octal:
        return bytes([int(octal, 8) & 0xFF])
    if byte:
        return bytes([int(byte, 16)])
    if short or long:
        point = int(short or long, 16)
        return (chr(point) if point <= _LAST_CODE_POINT else "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    return _LETTERS.get(other, other).encode("utf-8", "surrogatepass")
