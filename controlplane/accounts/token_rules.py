"""What a token may be called, whom it may name and until when: rules that REST and the pages share. Pure."""

import json
import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Final

MAX_TOKEN_NAME_CHARS: Final = 143  # the audit log's column, less "token:"
MAX_SCOPES: Final = 100
_SUBJECT: Final = r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}"


class TokenKind(StrEnum):
    """The three kinds of API tokens, by whom they belong to: a person, a service, or the installation."""

    PERSONAL = "personal"  # a person's: does no more than they may, and ends with them
    SERVICE = "service"  # nobody's: made by who administers, and stays when they go
    INSTALLATION = "installation"  # `admin.token` in the home: the machine's own operator


def name_space(*, owner_id: int | None, environments: Iterable[str | None]) -> str:
    """A text that is equal for tokens whose names must differ: those of one person, or those of services for the same
    environments (None: all). Whoever may make one of these tokens sees all of them, so that "this name is taken" tells
    nobody anything new.
    """
    if owner_id is not None:
        return f"user:{owner_id}"
    keys = json.dumps(sorted({"" if key is None else key for key in environments}))
    return f"service:{blake2b(keys.encode(), digest_size=16).hexdigest()}"


def token_name_problem(name: str) -> str:
    """Why this cannot be the name of a token, as a sentence; empty when it can."""
    if name.strip() and len(name) <= MAX_TOKEN_NAME_CHARS and name.isprintable():
        return ""
    return f"A token's name is one line of 1 to {MAX_TOKEN_NAME_CHARS} printable characters."


def subject_problem(subject: str) -> str:
    """Why no data plane's token can prove this identity, as a sentence; empty when one can. A SPIFFE ID is proven by
    certificates alone, and a star would be read as a pattern.
    """
    if re.fullmatch(_SUBJECT, subject) and not subject.lower().startswith("spiffe:"):
        return ""
    return (
        "A subject has 1 to 255 letters, digits and the characters . _ : / @ -, begins with a letter or digit, "
        "and is no SPIFFE ID."
    )


def end_within(expires_at: datetime | None, maker_ends: datetime | None) -> datetime | None:
    """When a token expires (None: never) that is made with another one, which expires at `maker_ends` (None: never).
    `expires_at`: the wanted time; None: as late as allowed. Raises ValueError, with a sentence, for a time after
    `maker_ends`.
    """
    if maker_ends is None:
        return expires_at
    if expires_at is not None and expires_at > maker_ends:
        raise ValueError(
            f"expires_at is later than {maker_ends:%Y-%m-%d %H:%M:%S} UTC, when the token it is made with ends."
        )
    return maker_ends if expires_at is None else expires_at


def expiry_problem(expires_at: datetime | None, *, now: datetime) -> str:
    """Why no token can expire at `expires_at`, as a sentence; empty when one can. `now`: the present time."""
    return "expires_at is in the past." if expires_at is not None and expires_at <= now else ""
