"""What tokens look like, and how they are stored. Pure but for the system's randomness.

A token of a data plane has the outer form of a JWT: three parts in base64url, the second a JSON object with `exp`. gRPC
clients send bearer tokens to their control plane only from a file of that form (gRFC A97, `jwt_token_file`) and read
`exp` to know when to look at the file again. Nothing in it is believed here: the whole text is looked up by its hash
(decisions U6).
"""

import hashlib
import json
import secrets
from base64 import urlsafe_b64encode
from datetime import datetime

API_MARK = "parley_"  # lets secret scanners recognise a leaked token
CLIENT_MARK = "parley_client_"
_API_BYTES = 32
_CLIENT_BYTES = 33  # with the mark a length that base64 can have: some clients decode the third part
_NEVER = 4_102_444_800  # 2100-01-01: `exp` must be there, also in a token that does not expire


def api_token_text() -> str:
    """The plaintext of a new API token: a fixed prefix and 256 random bits."""
    return API_MARK + secrets.token_urlsafe(_API_BYTES)


def client_token_text(*, expires_at: datetime | None) -> str:
    """The plaintext of a new data plane's token: 264 random bits behind a header and an expiry time in the form of a
    JWT, which some clients read.
    """
    expires = _NEVER if expires_at is None else int(expires_at.timestamp())
    head = ".".join(_part(each) for each in ({"typ": "parley"}, {"exp": expires}))
    return f"{head}.{CLIENT_MARK}{secrets.token_urlsafe(_CLIENT_BYTES)}"


def token_digest(plaintext: str) -> str:
    """The SHA-256 of a token, by which it is stored. No salt is needed: 256 random bits cannot be guessed from their
    hash.
    """
    return hashlib.sha256(plaintext.encode()).hexdigest()


def _part(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")
