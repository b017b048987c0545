"""How polls are turned down over HTTP: problem documents (RFC 9457), with a status that their clients understand."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import grpc

from adsserver.servicers.ends import DRAINING, End

PROBLEM_TYPE: Final = "application/problem+json"

_STATUSES: Final[Mapping[grpc.StatusCode, HTTPStatus]] = {
    grpc.StatusCode.INVALID_ARGUMENT: HTTPStatus.BAD_REQUEST,
    grpc.StatusCode.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    grpc.StatusCode.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
    grpc.StatusCode.RESOURCE_EXHAUSTED: HTTPStatus.TOO_MANY_REQUESTS,
    grpc.StatusCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
# Who is told to come again later is told when.
_RETRY_AFTER_S: Final = "5"
_LATER: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})

Headers = tuple[tuple[str, str], ...]


class Problem(Exception):
    """Raised to answer a request with a problem document. `ends`: the connection ends with it, because the rest of the
    request was not read.
    """

    def __init__(self, status: HTTPStatus, detail: str, headers: Headers = (), *, ends: bool = False) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers
        self.ends = ends

    @property
    def body(self) -> bytes:
        """The problem document."""
        tree = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
        }
        return json.dumps(tree).encode() + b"\n"


def problem_of(end: End, *, ends: bool = False) -> Problem:
    """The problem that says over HTTP what this end of a stream says over gRPC. The connection ends with it, too, where
    the process does.
    """
    ends = ends or end is DRAINING
    status = _STATUSES.get(end.code, HTTPStatus.INTERNAL_SERVER_ERROR)
    headers: Headers = ()
    if status in _LATER:
        headers = (("Retry-After", _RETRY_AFTER_S),)
    elif status is HTTPStatus.UNAUTHORIZED:
        headers = (("WWW-Authenticate", "Bearer"),)
    return Problem(status, end.text.replace("; reconnect", "; ask again"), headers, ends=ends)
