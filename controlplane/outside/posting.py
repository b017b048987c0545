"""One signed POST to a URL that somebody else wrote, under one deadline. Redirects are not followed.

What is sent carries `Parley-Signature: v1=HMAC-SHA256(secret, timestamp "." body)`, so that its receiver can tell who
sent it and refuse what is old, and `Parley-Delivery`, which stays the same when it is tried again.
"""

import hashlib
import hmac
import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from controlplane.database.waiting_outside import before_waiting_outside
from controlplane.outside.reaching import Deadline, addresses_of, connected, tls_context
from controlplane.outside.targets import allowed_address, target_of

SIGNATURE: Final = "Parley-Signature"
TIMESTAMP: Final = "Parley-Timestamp"
DELIVERY: Final = "Parley-Delivery"
SECRET_MARK: Final = "whsec_"  # noqa: S105 - how every secret begins


@dataclass(frozen=True, slots=True)
class Answered:
    """What a receiver answered: the HTTP status, and the first bytes of the body. `whole`: whether these are all."""

    status: int
    body: bytes
    whole: bool

    @property
    def ok(self) -> bool:
        """Whether the status says that the request was taken."""
        return 200 <= self.status < 300


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
    connection = _Pinned(target.host, target.port, address, deadline, tls=target.scheme == "https")
    try:
        connection.request(
            "POST",
            target.path,
            body,
            {"Content-Type": "application/json", "User-Agent": "parley", "Connection": "close", **headers},
        )
        answer = connection.getresponse()
        said, ended = _said(answer, at_most_bytes)
        return Answered(answer.status, said, ended)
    finally:
        connection.close()


def _said(answer: http.client.HTTPResponse, at_most_bytes: int) -> tuple[bytes, bool]:
    """The first part of the answer's body, and whether that is all of it. If reading fails, what there is until then;
    the status alone says whether the request was taken.
    """
    said = b""
    try:
        while len(said) <= at_most_bytes:
            part = answer.read1(at_most_bytes + 1 - len(said))
            if not part:
                return said, True
            said += part
    except (OSError, http.client.HTTPException):
        pass
    return said[:at_most_bytes], False


class _Pinned(http.client.HTTPConnection):
    """An HTTP connection to the one IP address that was judged to be allowed; the host's name is used for TLS and in
    the header only.
    """

    def __init__(self, host: str, port: int, address: str, deadline: Deadline, *, tls: bool) -> None:
        super().__init__(host, port)
        self._address = address
        self._deadline = deadline
        self._tls = tls

    def connect(self) -> None:
        plain = connected(self._address, self.port, self._deadline)
        self.sock = tls_context().wrap_socket(plain, server_hostname=self.host) if self._tls else plain
