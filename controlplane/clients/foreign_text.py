r"""Makes the words of data planes harmless before they are kept (reliability N8, S5, threats 15 and 16).

Pure; linear time.

Control characters, the line and paragraph separators and everything that turns the direction of a text are written as
escapes (`\x00`, `\u202e`), so that a log line stays one line, a terminal is not driven, and PostgreSQL, which has no
NUL, takes the text. HTML stays as it is: whoever renders escapes it. Values that may be secret are taken out: Envoy
dumps the resource it rejects.
"""

import re
import unicodedata

# Envoy's own mark of a cut text (clients.md section 3), so that readers of the text know that it is not whole.
TRUNCATED_SUFFIX = "...(truncated)"

_REDACTED = '"<redacted>"'
# The inside of a literal of protobuf's text format, possibly without its end. Possessive: tried once.
_LITERAL = r'"(?:[^"\\]|\\.)*+"?'
_ANY_LITERAL = re.compile(_LITERAL, re.DOTALL)
# Where configuration holds key material in line, in any type (envoy.config.core.v3.DataSource; Secret; BasicAuth).
_SENSITIVE_FIELD = re.compile(
    rf"\b(inline_string|inline_bytes|inline|password|secret|token|private_key|value)(\s*:\s*){_LITERAL}", re.DOTALL
)
_PEM_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,32}PRIVATE KEY-----|\Z)", re.DOTALL
)

_ESCAPED_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Unicode's explicit directional formatting characters (UAX #9, section 2).
DIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def one_line(text: str, *, max_chars: int) -> str:
    """`text` on one line without anything that acts on a reader, at most `max_chars` long."""
    return escape(text[:max_chars], keep="")[:max_chars]


def nack_text(message: str, *, secret: bool, max_bytes: int) -> str:
    """The text of a NACK as it is kept: redacted, escaped, at most `max_bytes` of UTF-8.

    Line feeds and tabs stay: they separate what a text says of one resource from what it says of the next. Of a
    `secret` resource no quoted value stays.
    """
    # What is cut off is not read: every step below shortens or bounds, none may see a text of a size a client chose.
    kept = message[: 2 * max_bytes]
    if secret:
        kept = _ANY_LITERAL.sub(_REDACTED, kept)
    kept = _SENSITIVE_FIELD.sub(rf"\1\2{_REDACTED}", kept)
    kept = _PEM_KEY.sub("<redacted>", kept)
    kept = escape(kept, keep="\n\t")
    if len(message) <= 2 * max_bytes and len(kept.encode()) <= max_bytes:
        return kept
    room = max_bytes - len(TRUNCATED_SUFFIX)
    return kept.encode()[:room].decode(errors="ignore") + TRUNCATED_SUFFIX


def escape(text: str, *, keep: str) -> str:
    """`text` with every acting character but those in `keep` written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if character in keep else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character not in DIRECTIONAL and unicodedata.category(character) not in _ESCAPED_CATEGORIES:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
