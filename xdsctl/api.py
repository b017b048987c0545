"""The REST API over HTTP. Every refusal becomes a CommandError with the exit status of its kind (texts.md section 5).

A request that the server asks to send again (429, 503 with Retry-After) is sent again a few times, which is said; one
that nobody answered is not: whoever runs the command knows better whether to wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from xdscore.lazily import Lazily
from xdscore.version import VERSION
from xdsctl.events import ServerEvent, events_in
from xdsctl.exits import CommandError, DistrustError, Exit, JsonObject, NoAnswerError, NotThereError, Remark
from xdsctl.settings import Context
from xdsctl.trust import distrust, trusted_by

if TYPE_CHECKING:
    import httpx
else:
    httpx = Lazily("httpx")

_CONNECT_S: Final = 5.0
_READ_S: Final = 90.0  # longer than the longest wait the server grants
_SILENCE_S: Final = 40.0  # the server says something every 15 s where it has nothing to tell
_TRIES: Final = 4
_LONGEST_PAUSE_S: Final = 10.0
_PREFIX: Final = "/api/v1"
_LOSS: Final = "XDS3013"
_CASES: Final = "XDS3090"
# Refused until it is done for a reason nevertheless: frozen, and without review.
_BREAKABLE: Final = frozenset({"XDS3030", "XDS3031"})

Parameters = Mapping[str, str | int | bool | Sequence[str] | None]


class Api:
    """The REST API of one server, called with one token. Raises UsageError, when made, if the file of certificate
    authorities (CA) that it is to trust cannot be read.
    """

    def __init__(self, context: Context, say: Callable[[str], None] = lambda _: None) -> None:
        self.context = context
        self._say = say
        headers = {"User-Agent": f"xdsctl/{VERSION}", "Accept": "application/json"}
        if context.token:
            headers["Authorization"] = f"Bearer {context.token}"
        self._http = httpx.Client(
            base_url=context.server,
            headers=headers,
            timeout=httpx.Timeout(_READ_S, connect=_CONNECT_S),
            follow_redirects=False,
            verify=trusted_by(context),
        )

    def get(self, path: str, **parameters: str | int | bool | None) -> Any:
        """The JSON answer to a GET of this path below `/api/v1`, with `parameters` as its query; those that are None
        are left out.
        """
        return _json(self.request("GET", path, parameters=parameters))

    def pages(self, path: str, **parameters: str | int | bool | None) -> Iterator[JsonObject]:
        """Every item of the list at this path below `/api/v1`, fetched page after page. Query parameters that are None
        are left out.
        """
        page = self.get(path, **{"limit": 1_000, **parameters})
        while True:
            yield from page["results"]
            following = page.get("next")
            if not following:
                return
            # Only the query is the server's word: behind a proxy it may know itself by another name.
            page = _json(self._sent("GET", f"{_PREFIX}{path}", httpx.URL(following).params, None, {}))

    def post(self, path: str, body: object, **parameters: str | int | bool | None) -> Any:
        """The JSON answer to a POST to this path below `/api/v1`; None when the answer has no body."""
        return _json(self.request("POST", path, body=body, parameters=parameters))

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        parameters: Parameters | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """The response to a request of any method for a path below `/api/v1`. Raises CommandError unless it
        succeeded.
        """
        return self._sent(method, f"{_PREFIX}{path}", httpx.QueryParams(_given(parameters or {})), body, headers or {})

    def probe(self, path: str) -> httpx.Response:
        """The response, whatever its status, to a GET of a path that is not below `/api/v1`, such as `/readyz`. Raises
        NoAnswerError when there is none.
        """
        return self._once("GET", path, httpx.QueryParams(), None, {})

    def events(self, path: str, parameters: Parameters, last_id: str) -> Iterator[ServerEvent]:
        """The server-sent events of this path below `/api/v1`, until the server ends the answer. `last_id`: the id of
        the last event that was seen; empty for none. Raises CommandError where the request is refused, NoAnswerError
        when the connection breaks.
        """
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
        query = httpx.QueryParams(_given(parameters))
        quiet = httpx.Timeout(_SILENCE_S, connect=_CONNECT_S)
        with (
            self._answering(),
            self._http.stream("GET", f"{_PREFIX}{path}", params=query, headers=headers, timeout=quiet) as response,
        ):
            if not response.is_success:
                response.read()
                raise _refusal(response, self.context.server)
            yield from events_in(response.iter_lines())

    def environment(self, rest: str = "") -> str:
        """The path of the chosen environment below `/api/v1`, with `rest` appended."""
        return f"/environments/{segment(self.context.environment)}{rest}"

    def resource(self, word: str, name: str, rest: str = "") -> str:
        """The path of a resource of the chosen environment, relative to `/api/v1`, its name percent-encoded and `rest`
        appended as it is. `word` is that of its type, such as cluster.
        """
        return self.environment(f"/resources/{segment(word)}/{segment(name)}{rest}")

    def _sent(
        self, method: str, path: str, query: httpx.QueryParams, body: object, headers: Mapping[str, str]
    ) -> httpx.Response:
        response = self._once(method, path, query, body, headers)
        for number in range(2, _TRIES + 1):
            pause = _pause(response)
            if pause is None:
                break
            detail = _problem(response).get("detail") or response.reason_phrase
            self._say(f"{response.status_code}: {detail} Trying again in {pause:g} s ({number} of {_TRIES}).")
            time.sleep(pause)
            response = self._once(method, path, query, body, headers)
        if response.is_success:
            return response
        raise _refusal(response, self.context.server)

    def _once(
        self, method: str, path: str, query: httpx.QueryParams, body: object, headers: Mapping[str, str]
    ) -> httpx.Response:
        with self._answering():
            return self._http.request(method, path, params=query, json=body, headers=dict(headers))

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """A block in which the server is asked. Raises NoAnswerError where it does not answer, DistrustError where its
        certificate is not trusted.
        """
        try:
            yield
        except httpx.HTTPError as error:
            if untrusted := distrust(error, self.context):
                raise DistrustError(untrusted) from error
            reason = str(error) or type(error).__name__
            raise NoAnswerError(
                f"{self.context.server} does not answer: {reason}. Is Parley running there? --server, {_HINT}"
            ) from error


_HINT: Final = "XDSCTL_SERVER or the context name another one."


def segment(text: str) -> str:
    """`text` percent-encoded as one part of a path, because names of resources hold slashes and question marks."""
    return quote(text, safe="")


def _given(parameters: Parameters) -> dict[str, str | list[str]]:
    """The query parameters that have a value, each as text."""
    return {key: _spelled(value) for key, value in parameters.items() if value not in (None, "")}


def _spelled(value: str | int | bool | Sequence[str] | None) -> str | list[str]:
    """The value of a query parameter as text; a sequence as several, so that the parameter is repeated."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pause(response: httpx.Response) -> float | None:
    """The seconds that the server asks to wait before the request is sent again; None when it does not ask for that, or
    for more than is reasonable.
    """
    asked = response.headers.get("Retry-After", "")
    if response.status_code not in {429, 503} or not asked.isdecimal() or int(asked) > _LONGEST_PAUSE_S:
        return None
    return float(asked)


def _json(response: httpx.Response) -> Any:
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        raise NoAnswerError(
            f"{response.url.host} answered with something that is not JSON. Is it a Parley server?"
        ) from error


def _refusal(response: httpx.Response, server: str) -> CommandError:
    document = _problem(response)
    detail = str(document.get("detail") or f"{response.status_code} {response.reason_phrase}")
    asked = str(response.request.url)
    match response.status_code:
        case 404 | 410 if document:
            return NotThereError(detail, document=document, asked=asked)
        case 400 | 405 | 413 | 415 | 422:
            exit_status = Exit.NO
        case 409 if document.get("code") == _LOSS:
            exit_status = Exit.LOSS
        case 409 | 412 | 428:
            exit_status = Exit.CONFLICT
            if document.get("code") in _BREAKABLE:
                detail = f"{detail} Here that is --break-glass REASON."
            if document.get("code") == _CASES:
                detail = f"{detail} Here that is --accept-cases {document.get('broken', 'N')}."
        case 401:
            exit_status = Exit.NOT_ACCEPTED
            detail = f"{detail} --token, XDSCTL_TOKEN or the context names the token."
        case 403:
            exit_status = Exit.NOT_ACCEPTED
        case _:
            # Also a 404 of something else than Parley: nobody said that what was asked for is not there.
            exit_status = Exit.NO_ANSWER
    if not document:
        detail = f"{server} answered {response.status_code} {response.reason_phrase}. Is it a Parley server?"
    remarks = [remark_of(each) for each in document.get("errors", ())]
    return CommandError(exit_status, detail, remarks=remarks, document=document or None, asked=asked)


def _problem(response: httpx.Response) -> JsonObject:
    if response.headers.get("Content-Type", "").partition(";")[0] != "application/problem+json":
        return {}
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def remark_of(finding: JsonObject) -> Remark:
    """A finding of the API as a remark without a file. Its line is one of the request's body; `files` knows which line
    of a file that is.
    """
    resource = finding.get("resource") or {}
    return Remark(
        code=finding["code"],
        severity=finding["severity"],
        detail=finding["detail"],
        hint=finding.get("hint", ""),
        resource=f"{resource['type']}/{resource['name']}" if resource else "",
    )
