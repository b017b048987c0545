"""A request as it may stand in a link or a command that others read: without what looks like a secret. Pure.

A hurried person pastes what their browser sent. Names tell most secrets, and the look of a value the rest; what is no
secret and looks like one is left out, too, for it can be typed again.
"""

from dataclasses import replace
from typing import Final

from xdscore.routing.values import Request

_SECRET_NAMES: Final = (
    *("auth", "cookie", "token", "secret", "sess", "passw", "credential", "signature", "assertion", "bearer"),
    *("csrf", "xsrf", "jwt", "saml", "key", "otp", "private", "code", "x-forwarded-client-cert"),
)
# They are long, and no secret.
_PLAIN: Final = frozenset(
    {"accept", "accept-encoding", "accept-language", "content-encoding", "content-type", "user-agent"}
)
_LONG_CHARS: Final = 20


def shareable(request: Request) -> tuple[Request, tuple[str, ...]]:
    """The request without what looks like a secret, and what was left out: the names of headers, and of parameters of
    the query, these with a question mark before them.
    """
    hidden = {name for name, value in request.headers.items() if _looks_secret(name, value)}
    headers = {name: value for name, value in request.headers.items() if name not in hidden}
    before, mark, query = request.path.partition("?")
    kept, left_out = [], []
    for part in query.split("&") if mark else ():
        name, _, value = part.partition("=")
        if _looks_secret(name, value):
            left_out.append(f"?{name}")
        else:
            kept.append(part)
    path = f"{before}?{'&'.join(kept)}" if kept else before
    return replace(request, path=path if left_out else request.path, headers=headers), (*sorted(hidden), *left_out)


def _looks_secret(name: str, value: str) -> bool:
    name = name.lower()
    if name in _PLAIN:
        return False
    return any(each in name for each in _SECRET_NAMES) or any(map(_looks_random, value.split()))


def _looks_random(word: str) -> bool:
    return len(word) > _LONG_CHARS and any(each.isdecimal() for each in word)
