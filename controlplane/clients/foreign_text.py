r"""Makes the words of data planes harmless before they are kept (reliability N8, S5, threats 15 and 16).

Pure; linear time.

Control characters, the line and paragraph separators and everything that turns the direction of a text are written as
escapes (`\x00`, `\u202e`), so that a log line stays one line, a terminal is not driven, and PostgreSQL, which has no
NUL, takes the text. HTML stays as it is: whoever renders escapes it. Secrets are taken out, because Envoy dumps the
resource it rejects: those of what the client was sent in every spelling (`xdscore.redaction`), and whatever stands
where the API holds key material, for a client may quote what it was sent before, or has from elsewhere.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, NewType

from xdscore.redaction import REDACTED, Secrets, without_secrets

KeptText = NewType("KeptText", str)
"""A text of a client, without secrets, harmless and bounded. `nack_text` alone makes one (a test says so), and whatever
stores the words of a client asks for one: so its raw words are refused by the type checker.
"""

NOT_SHOWN: Final = KeptText(
    "What the client said is not shown: it was sent secrets that cannot be taken out of its words, or what it was sent "
    "is not at hand any more to tell."
)
"""The text stored in place of one of which nobody can say that it quotes no secret."""

# Envoy's own mark of a cut text (clients.md section 3), so that readers of the text know that it is not whole.
TRUNCATED_SUFFIX = "...(truncated)"

_QUOTED: Final = f'"{REDACTED}"'
# A literal, possibly without its end. Possessive: tried once.
_LITERAL = r"(?:\"(?:[^\"\\]|\\.)*+\"?|'(?:[^'\\]|\\.)*+'?)"
_ANY_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
# What a client may quote from elsewhere: fields that are called so hold key material in line in any type. The API's own
# are among them, in both spellings (tests/unit/schema reads them off it); `value` is what a dump calls an Any's bytes.
SECRET_FIELDS: Final = (
    "backend_token", "backendToken", "inline", "inline_bytes", "inlineBytes", "inline_string", "inlineString",
    "password", "private_key", "secret", "secret_access_key", "secretAccessKey", "session_token", "sessionToken",
    "token", "value",
)  # fmt: skip
_SECRET_FIELD = re.compile(rf"\b({'|'.join(SECRET_FIELDS)})([\"']?\s*:\s*){_LITERAL}", re.DOTALL)
_PEM_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,32}PRIVATE KEY-----|\Z)", re.DOTALL
)

_ESCAPED_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Unicode's explicit directional formatting characters (UAX #9, section 2).
DIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def one_line(text: str, *, max_chars: int) -> str:
    """The text on one line, at most `max_chars` long, with characters that act on terminals or readers escaped."""
    return escape(text[:max_chars], keep="")[:max_chars]


def nack_text(
    message: str, *, secret: bool, held: Secrets | None, max_bytes: int, names: Sequence[str] = ()
) -> KeptText:
    """The text of a NACK as it is stored: redacted, escaped, at most `max_bytes` of UTF-8.

    `held` are the secrets of what the client was sent; None: they cannot be told, and NOT_SHOWN is kept in its place.
    `names` are those of the resources, which stay readable (`without_secrets`). Line feeds and tabs stay: they separate
    what a text says of one resource from what it says of the next. Of a `secret` resource no quoted value stays.
    """
    if not message:
        return KeptText("")
    if held is None:
        return NOT_SHOWN
    # What is cut off is not read: every step below shortens or bounds, none may see a text of a size a client chose.
    kept = without_secrets(message[: 2 * max_bytes], held, names=names)
    if secret:
        kept = _ANY_LITERAL.sub(_QUOTED, kept)
    kept = _SECRET_FIELD.sub(rf"\1\2{_QUOTED}", kept)
    kept = _PEM_KEY.sub(REDACTED, kept)
    kept = escape(kept, keep="\n\t")
    if len(message) <= 2 * max_bytes and len(kept.encode()) <= max_bytes:
        return KeptText(kept)
    room = max_bytes - len(TRUNCATED_SUFFIX)
    return KeptText(kept.encode()[:room].decode(errors="ignore") + TRUNCATED_SUFFIX)


def escape(text: str, *, keep: str) -> str:
    """The text with every character that acts on terminals or readers, but those in `keep`, written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if character in keep else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character not in DIRECTIONAL and unicodedata.category(character) not in _ESCAPED_CATEGORIES:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
