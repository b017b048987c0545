"""The one door through which passwords are checked: each attempt is counted before a hash is worked on (threat 22).

Who guesses has many names, addresses or sessions to do it with, and who is kept out is somebody else. So there are
several counts, and each bounds what one kind of guessing can reach:

* one name from one caller (`logins_per_min`). The only count that a success clears, and only of that name;
* one caller, whatever the names (`logins_per_address_per_min`);
* one name, whoever tries (`logins_per_name_per_min`). Many can reach it on purpose, so it locks nobody out: above it,
  networks that did not try this name lately still may, once in a while (`logins_newcomer_wait_s`);
* a browser in which that person signed in before (`browsers`) has a count of its own and none of these;
* the old password on the account page is counted by session: who has stolen one must not keep its owner from changing
  the password in another;
* a code of a second factor (`code_count`), which only somebody with the right password is asked for: as an attempt from
  one caller, and so many an hour for the account, for a code has six digits. Who has stolen a password reaches that on
  purpose: a known browser has a count of its own here, too;
* what comes back from the identity provider is counted by caller (`provider_count`), or by a known browser: each costs
  a question to the provider, and no name is known before the answer;
* so is the opening of links that let somebody in (`link_count`).

A caller is an address of IPv4 or a /64 of IPv6 (`callers`). Names that nobody has are counted like others, in the form
in which they are looked up.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from django.conf import settings
from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils import timezone

from controlplane.accounts.browsers import browser_knows, browser_read
from controlplane.accounts.callers import caller_of, neighbours_of
from controlplane.accounts.models import LoginAttempt
from controlplane.accounts.selectors import user_actor
from controlplane.accounts.vouching import from_provider, provider
from controlplane.common.errors import TooManyAttempts
from controlplane.common.principal_ids import Named
from controlplane.config.oidc import LocalSignIn
from controlplane.journal.services import audit_record
from xdscore.limits import Limits

_WINDOW_S: Final = 60
_HOUR_S: Final = 3_600
_UNKNOWN: Final = Named("unknown user", None)
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who tries to sign in: the address, the value of the cookie that marks a known browser (empty: none), and the
    request's id.
    """

    address: str
    browser: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class _Bound:
    """A limit of `most` attempts to sign in under `key` within `seconds`. `unless`: the limit refuses only where this
    other one is reached, too.
    """

    key: str
    most: int
    seconds: int = _WINDOW_S
    unless: "_Bound | None" = None


def password_sign_in(request: HttpRequest, *, username: str, password: str, caller: Caller) -> User | None:
    """The user with this name and password, if they may sign in; None otherwise, also where the identity provider alone
    may sign them in. Raises TooManyAttempts. Whoever signs them in records it: a second factor may come in between.

    `username` has to be normalised (NFKC), as Django's form does.
    """
    bounds = _bounds(username, caller)
    _count(bounds, username, caller)
    user = authenticate(request, username=username, password=password)
    if not isinstance(user, User) or not local_sign_in_allowed(user):
        login_record(username=username, outcome="failed", caller=caller)
        return None
    # Of the attempts at this name from here: the others are of whoever guesses beside its owner.
    own = [bounds[0].key, *([each.unless.key for each in bounds if each.unless is not None])]
    LoginAttempt.objects.filter(key__in=own).delete()
    return user


def password_confirm(user: User, password: str, *, session: str, caller: Caller) -> bool:
    """Whether this is the password of a user who is signed in. `session`: the id of their session, for which wrong
    passwords are counted. Raises TooManyAttempts.

    Must not be called in a transaction that is rolled back after a mistake: the count of attempts would be lost.
    """
    username = user.get_username()
    bound = _Bound(_key("session", str(user.pk), session), _limits().logins_per_min)
    _count((bound,), username, caller)
    if not user.check_password(password):
        login_record(username=username, outcome="failed", caller=caller)
        return False
    LoginAttempt.objects.filter(key=bound.key).delete()
    return True


def local_sign_in_allowed(user: User) -> bool:
    """Whether this user may sign in by a password: never who comes from the identity provider, and superusers alone
    where PARLEY_OIDC_LOCAL_SIGN_IN says so. A superuser of Parley's own always may (break-glass).
    """
    oidc = provider()
    if oidc is None:
        return True
    allowed = user.is_superuser or oidc.local_sign_in is LocalSignIn.EVERYBODY
    return allowed and not from_provider(user.pk)


def local_sign_in_is_for_everybody() -> bool:
    """Whether a new account of Parley's own may sign in by a password, and not superusers alone."""
    oidc = provider()
    return oidc is None or oidc.local_sign_in is LocalSignIn.EVERYBODY


def provider_count(caller: Caller) -> None:
    """Count a sign-in that came back from the identity provider, before the provider is asked about it. Raises
    TooManyAttempts.
    """
    _caller_count("provider", caller)


def link_count(caller: Caller) -> None:
    """Count that somebody opened a link by which whoever has it may do something, before it is looked up. Raises
    TooManyAttempts.
    """
    _caller_count("link", caller)


def _caller_count(what: str, caller: Caller) -> None:
    browser = browser_read(caller.browser)
    own = ("browser", browser.number) if browser is not None else ("address", caller_of(caller.address))
    _count((_Bound(_key(what, *own), _limits().logins_per_address_per_min),), "", caller)


def code_count(user: User, caller: Caller) -> tuple[int, ...]:
    """Count a code of a second factor that is about to be tried for a user whose password was right. Returns what
    `code_uncount` takes once the code was right. Raises TooManyAttempts.
    """
    limits, account = _limits(), str(user.pk)
    browser = browser_read(caller.browser)
    known = browser is not None and browser_knows(browser, user.get_username())
    here = ("browser", browser.number) if browser is not None and known else ("address", caller_of(caller.address))
    bounds = (
        _Bound(_key("code", account, *here), limits.logins_per_min),
        _Bound(_key("codes", account, *(here if known else ())), limits.codes_per_h, _HOUR_S),
    )
    return _count(bounds, user.get_username(), caller)


def code_uncount(counted: tuple[int, ...]) -> None:
    """Take back that a code was counted, because it was right. Those that were wrong before still count."""
    LoginAttempt.objects.filter(pk__in=counted).delete()


def login_record(*, username: str, outcome: str, caller: Caller, detail: Mapping[str, str] = _NOTHING) -> None:
    """Write an audit entry about an attempt to sign in; `outcome` is succeeded, failed or throttled. A name that nobody
    has is left out: it may be a password typed in the wrong field. `detail`: what else the entry says.
    """
    user = get_user_model().objects.filter(username=username).first()
    who = user_actor(user) if user is not None else _UNKNOWN
    with transaction.atomic():
        audit_record(
            actor=who,
            verb=f"login.{outcome}",
            subject=who.name,
            request_id=caller.request_id,
            detail={"address": caller.address, **detail},
        )


def _bounds(username: str, caller: Caller) -> tuple[_Bound, ...]:
    """The limits that apply to an attempt of this caller to sign in with this name; the caller's own comes first."""
    limits, name, address = _limits(), username.casefold(), caller_of(caller.address)
    browser = browser_read(caller.browser)
    if browser is not None and browser_knows(browser, username):
        return (_Bound(_key("browser", browser.number), limits.logins_per_min),)
    newcomer = _Bound(_key("network", name, neighbours_of(caller.address)), 1, limits.logins_newcomer_wait_s)
    return (
        _Bound(_key("pair", name, address), limits.logins_per_min),
        _Bound(_key("address", address), limits.logins_per_address_per_min),
        _Bound(_key("name", name), limits.logins_per_name_per_min, unless=newcomer),
    )


def _count(bounds: tuple[_Bound, ...], username: str, caller: Caller) -> tuple[int, ...]:
    """Count an attempt to sign in that is about to be made. Returns the ids of its rows. Raises TooManyAttempts, and
    counts nothing then.

    The attempt's row is written before the rows are counted: of several attempts at one moment the last sees all of
    them, so that never more go on than may, without a lock.
    """
    now = timezone.now()
    refused = _refused(bounds, now, own=0)  # without a write: whoever is refused again and again costs no more
    if refused is None:
        oldest = now - timedelta(seconds=max(_HOUR_S, _limits().logins_newcomer_wait_s))
        LoginAttempt.objects.filter(at__lte=oldest).delete()
        rows = [LoginAttempt(key=each.key, at=now) for each in _all(bounds)]
        LoginAttempt.objects.bulk_create(rows)
        refused = _refused(bounds, now, own=1)
        if refused is None:
            return tuple(each.pk for each in rows)
        LoginAttempt.objects.filter(pk__in=[each.pk for each in rows]).delete()
    _tell_once(refused, username, caller, now)
    raise TooManyAttempts(wait_s=(refused.unless or refused).seconds)


def _refused(bounds: tuple[_Bound, ...], now: datetime, *, own: int) -> _Bound | None:
    """The first limit that is reached; None where none is. `own`: how many rows of this very attempt to leave out."""
    every = _all(bounds)
    counted = LoginAttempt.objects.filter(key__in=[each.key for each in every]).aggregate(
        **{
            f"of_{number}": Count("pk", filter=Q(key=each.key, at__gt=now - timedelta(seconds=each.seconds)))
            for number, each in enumerate(every)
        }
    )
    reached = {each.key: counted[f"of_{number}"] - own >= each.most for number, each in enumerate(every)}
    for bound in bounds:
        if reached[bound.key] and (bound.unless is None or reached[bound.unless.key]):
            return bound
    return None


def _all(bounds: tuple[_Bound, ...]) -> list[_Bound]:
    return [each for bound in bounds for each in (bound, bound.unless) if each is not None]


def _tell_once(bound: _Bound, username: str, caller: Caller, now: datetime) -> None:
    """Record in the audit log that a limit was reached, at most once a minute for each limit, so that attempts cannot
    fill the log.
    """
    told = _key("told", bound.key)
    if not LoginAttempt.objects.filter(key=told, at__gt=now - timedelta(seconds=_WINDOW_S)).exists():
        LoginAttempt.objects.create(key=told, at=now)
        login_record(username=username, outcome="throttled", caller=caller)


def _key(*parts: str) -> str:
    # A hash: what was typed as a name is not kept.
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def _limits() -> Limits:
    limits: Limits = settings.PARLEY.limits
    return limits
