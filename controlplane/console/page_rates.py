"""How many pages one person, or one address where nobody is signed in, may ask for (threat 22).

The REST API counts its own callers (`api.rates`, `api.strangers`). People are counted by who they are, so that an
office behind one address is many; whoever is not signed in by address, of IPv6 by the /64 around it, or by the browser
where somebody signed in with it before: who floods the page to sign in keeps nobody out who is known, even behind the
same address.
Generous: pages that are open ask again every few seconds, and none of that may ever be refused.

Two steps, because who somebody is costs a look into the database. What no session belongs to, and every sign-in, is
counted before it takes a thread, a connection or a turn; the rest when it is known whose session it is.
"""

import math
from typing import Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from prometheus_client import Counter

from controlplane.accounts.browsers import stranger_of
from controlplane.accounts.callers import CountedRequests
from controlplane.accounts.selectors import id_of_user
from controlplane.common.principal_ids import PrincipalId
from controlplane.http.gates import Gate
from xdscore.limits import Limits

_API: Final = "/api/"
_PROBES: Final = ("/healthz", "/readyz")
_PEOPLE: Final = "page_requests_per_s"
_ADDRESSES: Final = "anonymous_pages_per_s"

REFUSED: Final = Counter(
    "parley_page_refused_requests", "Requests for pages above the rate of their caller.", ["limit"]
)
for _limit in (_PEOPLE, _ADDRESSES):
    REFUSED.labels(_limit)  # 0 is told, too

_requests: CountedRequests[PrincipalId | str] = CountedRequests("parley.page-counted", REFUSED)


class AddressRate(Gate):
    """Middleware that limits how many pages an address may request without a session. Comes before everything that
    takes a thread: it neither waits nor reads the database.
    """

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """The answer 429 where an address sent too many requests without a session; None lets the request pass."""
        # A page has a dozen files; what is no file meets the second step.
        if not _is_page(request) or request.path.startswith(settings.STATIC_URL):
            return None
        session = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        signs_in = request.path == settings.LOGIN_URL
        return None if session and not signs_in else _of_nobody(request)


class PersonRate(Gate):
    """Middleware that limits how many pages a signed-in user may request. Comes once sessions are known; a session in
    which nobody is signed in counts for its address.
    """

    async def refusal_soon(self, request: HttpRequest) -> HttpResponse | None:
        """The answer that refuses the request, or None to let it pass. Found in a thread, because a query tells whose
        session it is.
        """
        if not _is_page(request):
            return None
        return await sync_to_async(self.refusal, thread_sensitive=True)(request)

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """The answer 429 where this user sent too many requests; None lets the request pass."""
        if not _is_page(request):
            return None
        user = request.user
        if not user.is_authenticated:
            return _of_nobody(request)
        limits = _limits()
        return _counted(request, id_of_user(user), _PEOPLE, limits.page_requests_per_s)


def _is_page(request: HttpRequest) -> bool:
    """Whether the request is for a page, and was not counted yet."""
    elsewhere = request.path.startswith(_API) or request.path in _PROBES
    return not elsewhere and not _requests.is_counted(request)


def _of_nobody(request: HttpRequest) -> HttpResponse | None:
    return _counted(request, stranger_of(request), _ADDRESSES, _limits().anonymous_pages_per_s)


def _counted(request: HttpRequest, caller: PrincipalId | str, limit: str, per_s: int) -> HttpResponse | None:
    burst = _limits().page_burst
    wait_s = math.ceil(_requests.wait_s(request, caller, limit=limit, per_s=per_s, burst=burst))
    if not wait_s:
        return None
    # Of no request: whoever is refused costs neither a session nor a token.
    page = render_to_string("429.html", {"wait_s": wait_s, "limit": limit, "per_s": per_s, "burst": burst})
    return HttpResponse(page, status=429, headers={"Retry-After": str(wait_s), "Cache-Control": "no-store"})


def _limits() -> Limits:
    limits: Limits = settings.PARLEY.limits
    return limits
