"""What forms send."""

from typing import Final

from django.http import HttpRequest

from controlplane.errors import InputInvalid

MAX_REASON_CHARS: Final = 400


def reason_of(request: HttpRequest) -> str:
    """Why somebody does what they do: one line that says something. Raises InputInvalid."""
    reason = request.POST.get("reason", "").strip()
    if not reason:
        raise InputInvalid("Say why: the reason stands in the audit log and on this page. Nothing was changed.")
    if len(reason) > MAX_REASON_CHARS or not reason.isprintable():
        raise InputInvalid(
            f"A reason is one line of at most {MAX_REASON_CHARS} printable characters. Nothing was changed."
        )
    return reason
