"""One HTTP request to one IP address and its answer, under one deadline and one size. Redirects are not followed."""

import http.client
from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.outside.reaching import Deadline, connected, tls_context
from controlplane.outside.targets import Target


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


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a target. Its repr leaves out headers and body, which may hold secrets."""

    method: str
    target: Target
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


def exchange(request: Request, address: str, deadline: Deadline, *, at_most_bytes: int) -> Answered:
    """Send a request to this address of its target's host and return the answer, of its body at most `at_most_bytes`.
    Raises OSError and http.client.HTTPException where it fails or the deadline passes.
    """
    target = request.target
    connection = _Pinned(target.host, target.port, address, deadline, tls=target.scheme == "https")
    try:
        connection.request(
            request.method,
            target.path,
            request.body,
            {"User-Agent": "parley", "Connection": "close", **request.headers},
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
