"""How many requests one API token or one person may send (reliability.md part (e), "REST throttle").

Counted in each web process by itself: no request waits for Redis (architecture.md law 4), and a dry run leaves nothing
there. Behind a balancer over N processes a caller may so send up to N times as much; the limit keeps one caller from
taking all of a process, and that it does.
"""

import math
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.http import HttpRequest
from prometheus_client import Counter

from controlplane.accounts.callers import CountedRequests
from controlplane.accounts.principal import Principal
from controlplane.common.errors import Busy
from controlplane.common.principal_ids import PrincipalId
from xdscore.limits import Limits

_PIPELINES: Final = "token_requests_per_s"
_PEOPLE: Final = "user_requests_per_s"
STRANGERS: Final = "anonymous_requests_per_s"  # counted in `strangers`

REFUSED: Final = Counter("parley_api_refused_requests", "REST requests above the rate of their caller.", ["limit"])
for _limit in (_PIPELINES, _PEOPLE, STRANGERS):
    REFUSED.labels(_limit)  # 0 is told, too


@dataclass(frozen=True, slots=True)
class Rate:
    """How many requests one caller may send.

    `per_s`, `burst`: how many per second in the long run, and how many at once.
    `limit`, `burst_limit`: the names of these two in the table of limits.
    `whose`: the caller, as the subject of the sentence that refuses.
    """

    limit: str
    per_s: int
    burst: int
    whose: str
    burst_limit: str = ""

    def refusal(self, wait_s: float) -> Busy:
        """The error for a request above the rate. `wait_s`: in how many seconds the caller may come again."""
        named = f"{self.limit} is {self.per_s:,}"
        if self.burst_limit:
            named = f"{named}, {self.burst_limit} {self.burst:,}"
        return Busy(
            f"{self.whose} sends more requests than it may ({named}). Nothing was done.",
            retry_after_s=max(1, math.ceil(wait_s)),
        )


# One that waits for a change is answered twice (`waiting`), and counted once.
_requests: CountedRequests[PrincipalId] = CountedRequests("parley.admitted", REFUSED)


def token_admit(request: HttpRequest, token: Principal) -> None:
    """Count a request that a program sent with this token. Raises Busy when the token sends too many."""
    limits = _limits()
    rate = Rate(_PIPELINES, limits.token_requests_per_s, limits.token_burst, "This token", "token_burst")
    _admit(request, token.id, rate)


def user_admit(request: HttpRequest, user: Principal) -> None:
    """Count a request of a signed-in user, who may send as many at once as in a second. Raises Busy when they send too
    many.
    """
    rate = _limits().user_requests_per_s
    _admit(request, user.id, Rate(_PEOPLE, rate, rate, f"'{user.name}'"))


def _admit(request: HttpRequest, caller: PrincipalId, rate: Rate) -> None:
    """Count a request of this caller, unless it was counted already. Raises Busy when the caller sends too many."""
    wait_s = _requests.wait_s(request, caller, limit=rate.limit, per_s=rate.per_s, burst=rate.burst)
    if wait_s:
        raise rate.refusal(wait_s)


def _limits() -> Limits:
    limits: Limits = settings.PARLEY.limits
    return limits
