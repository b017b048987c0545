"""Browsers in which somebody signed in before: others who guess at that name do not keep them out (threat 22).

What a browser keeps is signed and says whom it knows, by number, and under which password that was: it is worth nothing
for another name, after that password has changed, or when it is old. It opens nothing; whoever has it may try a
password where others have to wait, and is counted apart.
"""

import secrets
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare, salted_hmac

from controlplane.accounts.callers import caller_of

KEPT_S: Final = 90 * 24 * 3600
_SALT: Final = "controlplane.accounts.browsers"
_NUMBER_BYTES: Final = 9
_MAX_CHARS: Final = 300  # what is longer is none of ours and not worth a look


@dataclass(frozen=True, slots=True)
class Browser:
    """What a browser's signed cookie says of it: the id of the user who signed in with it last, a hash by which a
    change of their password is noticed (`mark`), and a random number of the browser's own.
    """

    user: int
    mark: str
    number: str


def cookie_name() -> str:
    """The name of the cookie that marks a browser with which somebody has signed in. Over HTTPS it has the prefix
    `__Host-`, so that browsers take it over TLS only and send it to no other host (RFC 6265bis).
    """
    return "__Host-parley-browser" if settings.SESSION_COOKIE_SECURE else "parley-browser"


def browser_write(user: User) -> str:
    """The signed value of the cookie for the browser with which this user just signed in."""
    return signing.dumps([user.pk, _mark(user), secrets.token_urlsafe(_NUMBER_BYTES)], salt=_SALT)


def browser_read(kept: str) -> Browser | None:
    """What the value `kept` of a browser's cookie says; None unless Parley signed it in the last 90 days. No query: the
    user may be deleted by now.
    """
    if not kept or len(kept) > _MAX_CHARS:
        return None
    try:
        user, mark, number = signing.loads(kept, salt=_SALT, max_age=KEPT_S)
    except signing.BadSignature:
        return None
    return Browser(user, mark, number)


def stranger_of(request: HttpRequest) -> str:
    """The key under which the requests of an unknown caller are counted: the browser's number, where somebody signed in
    with the browser before; else the address, of IPv6 its /64 network. No query.
    """
    browser = browser_read(request.COOKIES.get(cookie_name(), ""))  # signed: nobody makes one up
    # What a proxy reports counts only when it is one we were told of: asgi.py has put it here then.
    return f"browser {browser.number}" if browser is not None else caller_of(str(request.META.get("REMOTE_ADDR", "")))


def browser_knows(browser: Browser, username: str) -> bool:
    """Whether the user who signed in with this browser has this name now, and the same password as then."""
    user = User.objects.filter(pk=browser.user, username=username).first()
    return user is not None and constant_time_compare(browser.mark, _mark(user))


def _mark(user: User) -> str:
    return salted_hmac(_SALT, user.password, algorithm="sha256").hexdigest()[:32]
