"""What forms send."""

from typing import Final

from django.http import HttpRequest, QueryDict

from controlplane.common.errors import InputInvalid, NotFound
from xdscore.codes import shown

MAX_REASON_CHARS: Final = 400
_MAX_DIGITS: Final = 18  # within a 64-bit column


def reason_of(request: HttpRequest) -> str:
    """The reason in a form: one line, not empty. Raises InputInvalid."""
    reason = request.POST.get("reason", "").strip()
    if not reason:
        raise InputInvalid("Say why: the reason stands in the audit log and on this page. Nothing was changed.")
    if len(reason) > MAX_REASON_CHARS or not reason.isprintable():
        raise InputInvalid(
            f"A reason is one line of at most {MAX_REASON_CHARS} printable characters. Nothing was changed."
        )
    return reason


def number_of(given: QueryDict, field: str) -> int:
    """The row id in this field of a form. Raises NotFound for anything but a number, because no row has such an id."""
    text = given.get(field, "")
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise NotFound("What this is about does not exist. Nothing was changed.")
    return int(text)


def whole_of(given: QueryDict, field: str, *, minimum: int, maximum: int) -> int:
    """The whole number from `minimum` to `maximum` in this field of a form. Raises InputInvalid."""
    text = given.get(field, "").strip()
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and minimum <= int(text) <= maximum:
        return int(text)
    words = field.replace("_", " ")
    raise InputInvalid(f"'{shown(text, 20)}' cannot be {words}: from {minimum} to {maximum:,}. Nothing was changed.")


def one_line(text: str, wanted: str, most: int) -> str:
    """A text that somebody typed, on one line and without blanks at its ends: not empty, at most `most` characters.
    Raises InputInvalid; `wanted` begins its sentence, such as "A title".
    """
    line = " ".join(text.split())
    if not line or len(line) > most or not line.isprintable():
        raise InputInvalid(f"{wanted} has 1 to {most:,} characters, all of them printable. Nothing was changed.")
    return line
