"""One HTTP request to a server that the operator named, and that may be inside: an identity provider.

Its addresses are not judged, because nobody but the operator chose them. Everything else that is outside holds: one
deadline, one size, no redirects, a certificate of a CA that this machine trusts.
"""

import http.client
from collections.abc import Mapping

from controlplane.database.waiting_outside import before_waiting_outside
from controlplane.outside.exchanging import Answered, Request, exchange
from controlplane.outside.reaching import Deadline, addresses_of
from controlplane.outside.targets import target_of


class UnansweredError(Exception):
    """A server could not be asked, or did not answer in time and in full. The text says why."""


def ask(
    method: str,
    url: str,
    headers: Mapping[str, str],
    deadline: Deadline,
    *,
    at_most_bytes: int,
    body: bytes | None = None,
) -> Answered:
    """Send a request to the server that this URL names and return its whole answer. Raises UnansweredError, also where
    the answer has more than `at_most_bytes`, and RuntimeError within a transaction.
    """
    before_waiting_outside()
    try:
        target = target_of(url)
        addresses = addresses_of(target.host, target.port, deadline)
        answer = _first(Request(method, target, headers, body), addresses, deadline, at_most_bytes=at_most_bytes)
    except TimeoutError:
        raise UnansweredError(f"{url} did not answer in time") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnansweredError(f"{url} cannot be reached: {error}") from None
    if not answer.whole:
        raise UnansweredError(f"{url} broke off, or answered more than {at_most_bytes:,} bytes")
    return answer


def _first(request: Request, addresses: list[str], deadline: Deadline, *, at_most_bytes: int) -> Answered:
    """The answer of the first address that accepts a connection: names such as localhost have several, and a server
    that listens at one of them.
    """
    for address in addresses[:-1]:
        try:
            return exchange(request, address, deadline, at_most_bytes=at_most_bytes)
        except ConnectionRefusedError:
            continue
    if not addresses:
        raise OSError("the name has no address")
    return exchange(request, addresses[-1], deadline, at_most_bytes=at_most_bytes)
