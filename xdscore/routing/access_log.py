"""A request out of a line of Envoy's access log: the default format, Istio's, and JSON with the keys that are usual.

Envoy escapes nothing in text, so that whoever makes requests writes a part of the line. It is read from both ends of
what is theirs, in linear time; where quotation marks leave more than one reading, the line is `unsure`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from xdscore.routing.values import Request
from xdscore.routing.well_formed import authority_problem, header_problem

MAX_TEXT_CHARS: Final = 32_768
"""Of what is pasted, which may be several lines."""
_PROTOCOLS: Final = frozenset({"HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3", "-"})
_TLS_PORTS: Final = ("443", "8443")
_MAX_FLAGS: Final = 10
_MAX_WORD_CHARS: Final = 64
_STATUS_DIGITS: Final = 3
_NUMBERS: Final = 4  # bytes received and sent, how long it took, and how long the upstream took
_QUOTED: Final = 5  # x-forwarded-for, user-agent, x-request-id, the authority, the upstream's address
# What Istio's format has behind them; the last may have blanks.
_BEHIND: Final = (*("upstream_cluster", "local", "local_address", "remote_address", "server_name"), "route_name")
# By the name of the field here, what it is called in JSON: by Istio, by Envoy Gateway, by header.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "method": ("method", ":method"),
    "path": ("path", "x-envoy-origin-path", "x-envoy-original-path", ":path"),
    "authority": ("authority", ":authority", "host"),
    "status": ("response_code", "status"),
    "flags": ("response_flags",),
    "details": ("response_code_details",),
    "user_agent": ("user_agent", "user-agent"),
    "upstream_host": ("upstream_host",),
    "upstream_cluster": ("upstream_cluster",),
    "local_address": ("downstream_local_address",),
    "server_name": ("requested_server_name",),
    "route_name": ("route_name",),
    "started": ("start_time", "@timestamp"),
}
# Under these keys programs that collect logs put a line of text.
_WRAPPERS: Final = ("log", "message", "msg", "line", "textpayload")
_NO_LINE: Final = (
    "This is no line of an access log that is known here. Known are Envoy's default format, which begins with "
    '[time] "GET /path HTTP/1.1" 404, Istio\'s, and JSON with keys such as method, path and authority.'
)


class UnreadableLine(ValueError):
    """Nothing that was pasted is a line with a request; the text says why, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """What a line says; empty, or 0, where it says nothing.

    `flags`: the response flags. `details`: of the response code. `local_address`: of the proxy, to which the request
    came. `server_name`: that of TLS. `unsure`: other readings are possible. `others`: lines that were pasted with it.
    """

    method: str
    path: str
    authority: str
    status: int = 0
    flags: tuple[str, ...] = ()
    details: str = ""
    user_agent: str = ""
    upstream_host: str = ""
    upstream_cluster: str = ""
    local_address: str = ""
    server_name: str = ""
    route_name: str = ""
    started: str = ""
    unsure: bool = False
    others: int = 0

    @property
    def secure(self) -> bool:
        """Whether something in the line speaks for TLS: no format has the scheme."""
        return bool(self.server_name) or self.local_address.rpartition(":")[2] in _TLS_PORTS

    @property
    def request(self) -> Request:
        """The request, as far as the line has it."""
        agent = self.user_agent
        headers = {"user-agent": agent} if agent and not header_problem("user-agent", agent) else {}
        scheme = "https" if self.secure else "http"
        return Request(self.authority, self.path or "/", scheme=scheme, method=self.method or "GET", headers=headers)


def line_of(text: str) -> LogLine:
    """The first line in a pasted text that has a request. Raises UnreadableLine."""
    if len(text) > MAX_TEXT_CHARS:
        raise UnreadableLine(f"This has more than {MAX_TEXT_CHARS:,} characters. Paste one line.")
    whole = _of_json(text)  # which may be on several lines
    lines = [each for each in text.splitlines() if each.strip()]
    found = whole or next(filter(None, map(_of_line, lines)), None)
    if found is None:
        raise UnreadableLine(_NO_LINE)
    if not found.path and not found.authority:
        said = "The line has no request: Envoy could not read one, or the connection was not HTTP."
        raise UnreadableLine(said)
    return found if whole else replace(found, others=len(lines) - 1)


def is_log(text: str) -> bool:
    """Whether a text has a line with a request."""
    try:
        line_of(text)
    except UnreadableLine:
        return False
    return True


def _of_line(line: str) -> LogLine | None:
    return _of_json(line) or _of_text(line)


def _of_json(text: str) -> LogLine | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return None
    said = {key.lower(): _word(value) for key, value in read.items()}
    fields = {name: next((said[key] for key in keys if said.get(key)), "") for name, keys in _KEYS.items()}
    if fields["path"] or fields["authority"]:
        return _line(fields)
    return next(filter(None, (_of_text(said[key]) for key in _WRAPPERS if key in said)), None)


def _word(value: object) -> str:
    """A value of JSON as the text format would have it; typed JSON has numbers."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, str | int) else ""


def _of_text(line: str) -> LogLine | None:
    if '] \\"' in line:  # copied out of JSON
        line = line.replace('\\"', '"')
    before, found, rest = line.partition('] "')
    method, _, rest = rest.partition(" ")
    path, _, rest = rest.partition(" ")
    protocol, quote, rest = rest.partition('" ')
    if not found or not quote or protocol not in _PROTOCOLS:
        return None
    status, _, rest = rest.partition(" ")
    flags, _, rest = rest.partition(" ")
    details, rest = _details(rest)
    *numbers, rest = rest.split(" ", _NUMBERS)
    if len(numbers) != _NUMBERS or not all(each == "-" or each.isdecimal() for each in numbers):
        return None
    ends = _ends(rest, istio=bool(details))
    if ends is None:
        return None
    started = before.rpartition("[")[2][:_MAX_WORD_CHARS]
    fields = {"method": method, "path": path, "status": status, "flags": flags, "details": details, "started": started}
    return _line(fields | ends, unsure="unsure" in ends)


def _details(rest: str) -> tuple[str, str]:
    """What Istio has between the flags and the numbers: why the status is what it is, why a connection ended, and why
    one failed, in quotation marks. With the rest of the line.
    """
    details, _, after = rest.partition(" ")
    if details.isdecimal():
        return "", rest
    _, _, after = after.partition(' "')
    return details, after.partition('" ')[2]


def _ends(rest: str, *, istio: bool) -> dict[str, str] | None:
    """The fields in quotation marks, and those behind; None where there are none. The user agent, which is anybody's,
    may have quotation marks: the fields behind it hold no blanks. `unsure` is in it where there are more than five.
    """
    inner, quote, behind = rest.removeprefix('"').rpartition('"')
    fields = inner.split('" "')
    words = behind.split(None, len(_BEHIND) - 1)
    for first in range(2, len(fields) - 2):
        request_id, authority, host = fields[first : first + 3]
        host = host.partition('"')[0]
        if quote and _is_word(request_id) and _is_word(host) and not authority_problem(authority):
            found = {"authority": authority, "user_agent": '" "'.join(fields[1:first]), "upstream_host": host}
            if len(fields) > _QUOTED:
                found["unsure"] = "yes"
            if istio and len(words) == len(_BEHIND):
                found |= zip(_BEHIND, words, strict=True)
            return found
    return None


def _is_word(text: str) -> bool:
    return bool(text) and not any(each.isspace() or each == '"' for each in text)


def _line(fields: Mapping[str, str], *, unsure: bool = False) -> LogLine:
    said = {name: text for name, text in fields.items() if text != "-"}
    status = said.get("status", "")
    flags = [each for each in said.get("flags", "").split(",") if each][:_MAX_FLAGS]
    return LogLine(
        method=said.get("method", ""),
        path=said.get("path", ""),
        authority=said.get("authority", ""),
        status=int(status) if len(status) == _STATUS_DIGITS and status.isascii() and status.isdecimal() else 0,
        flags=tuple(each[:_MAX_WORD_CHARS] for each in flags),
        details=said.get("details", ""),
        user_agent=said.get("user_agent", ""),
        upstream_host=said.get("upstream_host", ""),
        upstream_cluster=said.get("upstream_cluster", ""),
        local_address=said.get("local_address", ""),
        server_name=said.get("server_name", ""),
        route_name=said.get("route_name", ""),
        started=said.get("started", ""),
        unsure=unsure,
    )
