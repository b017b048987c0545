"""One signed POST to a URL that somebody else wrote, under one deadline. Redirects are not followed.

What is sent carries `Parley-Signature: v1=HMAC-SHA256(secret, timestamp "." body)`, so that its receiver can tell who
sent it and refuse what is old, and `Parley-Delivery`, which stays the same when it is tried again.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from django.conf import settings

from controlplane.database.waiting_outside import before_waiting_outside
from controlplane.outside.exchanging import Answered, Request, exchange
from controlplane.outside.reaching import Deadline, addresses_of
from controlplane.outside.targets import allowed_address, target_of

SIGNATURE: Final = "Parley-Signature"
TIMESTAMP: Final = "Parley-Timestamp"
DELIVERY: Final = "Parley-Delivery"
SECRET_MARK: Final = "whsec_"  # noqa: S105 - how every secret begins


def signature(secret: bytes, timestamp: int, body: bytes) -> str:
    """The signature of a body, by which its receiver knows that this installation sent it at this time. `timestamp`:
    seconds since 1970.
    """
    mac = hmac.new(secret, f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1={mac.hexdigest()}"


def signed(secret: bytes, timestamp: int, body: bytes, *, delivery: str) -> Mapping[str, str]:
    """The headers of a signed request with this body. `timestamp`: seconds since 1970; `delivery`: equal for every try
    of the same.
    """
    return {TIMESTAMP: str(timestamp), SIGNATURE: signature(secret, timestamp, body), DELIVERY: delivery}


def post(url: str, body: bytes, headers: Mapping[str, str], deadline: Deadline, *, at_most_bytes: int) -> Answered:
    """Send JSON to a URL by POST and return the answer, of its body at most `at_most_bytes`. Raises TargetRefusedError
    where nothing may be sent there, OSError and http.client.HTTPException where it fails or the deadline passes, and
    RuntimeError within a transaction.
    """
    before_waiting_outside()
    target = target_of(url)
    found = addresses_of(target.host, target.port, deadline)
    address = allowed_address(target, found, settings.PARLEY.webhook_allow)
    request = Request("POST", target, {"Content-Type": "application/json", **headers}, body)
    return exchange(request, address, deadline, at_most_bytes=at_most_bytes)
