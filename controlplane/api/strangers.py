"""How many REST requests an address may send where nobody is known to be asking (threat 22).

Who somebody is costs a look into the database, and for whoever writes a turn before that (`api.turns`). So every
request is counted first, by address, unless what it shows was good in this process in the last minutes; and is given
back as soon as it is known who asks. An office behind one address, whose tokens are good, so never comes near the
limit, and is served while somebody else there is refused. Only hashes of what was good are kept, and they open nothing:
each request is authenticated as ever.
"""

import hashlib
import threading
from collections import OrderedDict
from http import HTTPStatus
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from controlplane.accounts.browsers import stranger_of
from controlplane.accounts.callers import CountedRequests
from controlplane.api.problems import problem
from controlplane.api.rates import REFUSED, STRANGERS, Rate
from controlplane.http.gates import Gate
from xdscore.limits import Limits

KEPT_S: Final = 300.0
"""For how many seconds after it was last good a credential is known here."""

_API: Final = "/api/"
_KNOWN: Final = "parley.known"
_MAX_CHARS: Final = 300  # what is longer is no credential of ours and not worth a hash
_MAX_KNOWN: Final = 10_000


class KnownLately:
    """Remembers, by hash, the credentials that were good lately, at most `most` of them: beyond that, those are
    forgotten that were not used for longest. Safe to use from several threads.
    """

    def __init__(self, most: int = _MAX_KNOWN) -> None:
        self._most = most
        self._seen: OrderedDict[bytes, float] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, credential: bytes, now: float) -> None:
        """Remember that this credential was good at `now`, in seconds of a monotonic clock."""
        with self._lock:
            self._seen[credential] = now
            self._seen.move_to_end(credential)
            if len(self._seen) > self._most:
                self._seen.popitem(last=False)

    def has(self, credential: bytes, now: float) -> bool:
        """Whether this credential was good in the last `KEPT_S` seconds before `now`, in seconds of a monotonic
        clock.
        """
        with self._lock:
            seen = self._seen.get(credential)
        return seen is not None and now - seen <= KEPT_S

    def forget(self, credential: bytes) -> None:
        """Forget a credential that is no longer good."""
        with self._lock:
            self._seen.pop(credential, None)


_requests: CountedRequests[str] = CountedRequests("parley.stranger-counted", REFUSED)
_known = KnownLately()


class StrangerRate(Gate):
    """Middleware that limits how many requests to the API unknown callers may send. Comes before everything that
    somebody could keep busy: it neither waits nor reads the database.
    """

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """The answer 429 where the caller has no credential that was good lately and its address sent too many
        requests; None lets the request pass.
        """
        return _refusal(request) if request.path.startswith(_API) else None

    def answered(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Return the response; where it is a 401, the request's credential counts as unknown from now on."""
        unknown = response.status_code == HTTPStatus.UNAUTHORIZED and request.path.startswith(_API)
        if unknown and (credential := _credential(request)):
            _known.forget(credential)
        return response


def caller_known(request: HttpRequest) -> None:
    """Note that the request's credential is good: neither this request nor later ones with it count for the address. A
    second call for a request does nothing.
    """
    if request.META.get(_KNOWN):
        return
    request.META[_KNOWN] = True
    if credential := _credential(request):
        _known.add(credential, _requests.clock())
    _requests.give_back(request)


def _refusal(request: HttpRequest) -> HttpResponse | None:
    credential = _credential(request)
    if credential and _known.has(credential, _requests.clock()):
        return None
    limits: Limits = settings.PARLEY.limits
    whose = "Nobody is known to be asking, and this address"
    rate = Rate(STRANGERS, limits.anonymous_requests_per_s, limits.anonymous_burst, whose, "anonymous_burst")
    caller = stranger_of(request)
    wait_s = _requests.wait_s(request, caller, limit=rate.limit, per_s=rate.per_s, burst=rate.burst)
    return problem(rate.refusal(wait_s)) if wait_s else None


def _credential(request: HttpRequest) -> bytes | None:
    """The hash of the request's Authorization header or, without one, of its session cookie; None where it has
    neither.
    """
    shown = request.headers.get("Authorization")
    kind = "header" if shown is not None else "session"
    shown = request.COOKIES.get(settings.SESSION_COOKIE_NAME) if shown is None else shown
    if not shown or len(shown) > _MAX_CHARS:
        return None
    return hashlib.sha256(f"{kind} {shown}".encode("utf-8", "replace")).digest()
