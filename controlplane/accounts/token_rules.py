"""What a token may be called, whom it may name and until when: rules that REST and the pages share. Pure."""

import re
from datetime import datetime
from typing import Final

MAX_TOKEN_NAME_CHARS: Final = 143  # the audit log's column, less "token:"
MAX_SCOPES: Final = 100
_SUBJECT: Final = r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}"


def token_name_problem(name: str) -> str:
    """Why no token can be called so; empty when one can."""
    if name.strip() and len(name) <= MAX_TOKEN_NAME_CHARS and name.isprintable():
        return ""
    return f"A token's name is one line of 1 to {MAX_TOKEN_NAME_CHARS} printable characters."


def subject_problem(subject: str) -> str:
    """Why no token of a data plane can name this subject; empty when one can. A SPIFFE ID is proven by a certificate
    and by nothing else; a star would be read as a pattern.
    """
    if re.fullmatch(_SUBJECT, subject) and not subject.lower().startswith("spiffe:"):
        return ""
    return (
        "A subject has 1 to 255 letters, digits and the characters . _ : / @ -, begins with a letter or digit, "
        "and is no SPIFFE ID."
    )


def expiry_problem(expires_at: datetime | None, *, now: datetime) -> str:
    """Why no token can be good until then; empty when one can."""
    return "expires_at is in the past." if expires_at is not None and expires_at <= now else ""
