"""A request as its routes see it: after what a connection manager does to every request before it chooses a route."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from xdscore.routing.values import Request
from xdscore.schema.fixed_texts import lowered
from xdscore.schema.walk import AnyMessage

_SET_BY_PROXY: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade", "expect"),
        *("forwarded", "via", "x-forwarded-client-cert", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port"),
        *("x-request-id", "traceparent", "tracestate", "b3", "x-ot-span-context", "x-client-trace-id"),
    }
)
_ENVOYS_OWN: Final = ("x-envoy-", "x-b3-")
# What percent-encoding may stand for without meaning anything else (RFC 3986 section 2.3); normalising decodes these.
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PLAIN_PATH: Final = re.compile(r"/[!$&-;=?-Z_a-z~%@\[\]|^]*", re.ASCII)
_GRPC: Final = "application/grpc"
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})?")
_ESCAPED_SLASH: Final = re.compile(r"%(2[fF]|5[cC])")


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as routes are chosen for it.

    `headers`: by name in lower case, pseudo-headers too; the values of one name are joined by commas. Connect requests
        have no path.
    `grpc`: it is a call of a proxyless gRPC client, which chooses by its own rules. `secure`: over TLS.
    """

    headers: Mapping[str, str]
    secure: bool
    grpc: bool = False

    @property
    def host(self) -> str:
        """The authority, in the spelling of the request."""
        return self.headers.get(":authority", "")

    @property
    def path(self) -> str:
        """The path with its query; empty for a CONNECT request, which has none."""
        return self.headers.get(":path", "")

    @property
    def says_grpc(self) -> bool:
        """Whether the content type says gRPC; `application/grpc-web` does not."""
        kind = self.headers.get("content-type", "")
        return kind == _GRPC or kind.startswith(f"{_GRPC}+")

    def of(self, name: str) -> str | None:
        """The value of a header, None where the request has none. `host` means the authority, as in HTTP/1."""
        name = lowered(name)
        return self.headers.get(":authority" if name == "host" else name)


class Early(NamedTuple):
    """What a connection manager answers before it looks for a route: the status, the path of a redirect to the same
    request (else empty), and why, as a sentence.
    """

    status: int
    path: str
    said: str


class Doubt(NamedTuple):
    """A field of the connection manager, whose effect on this request is not judged, and why, as a sentence."""

    field: str
    said: str


@lru_cache(maxsize=1_024)
def set_by_proxy(name: str) -> bool:
    """Whether a proxy itself sets, changes or takes away a header of this name before routes are chosen, so that the
    request alone does not say what is matched.
    """
    name = lowered(name)
    return name in _SET_BY_PROXY or name.startswith(_ENVOYS_OWN)


def seen_of(request: Request, *, grpc: bool = False) -> Seen:
    """The request as it arrives."""
    secure = request.scheme == "https"
    headers = {lowered(name): value.strip(" \t") for name, value in request.headers.items()}
    headers.pop("host", None)
    headers |= {":authority": request.authority, ":method": request.method, ":scheme": request.scheme}
    if grpc:
        # What every call has on the wire (gRPC over HTTP/2). Binary metadata is not matched (gRFC A28).
        headers = {name: value for name, value in headers.items() if not name.endswith("-bin")}
        headers |= {":method": "POST", "content-type": "application/grpc"}
    if request.method != "CONNECT":
        headers[":path"] = request.path
    return Seen(headers, secure, grpc)


def normalised(seen: Seen, manager: AnyMessage, port: int) -> Seen | Early | Doubt:
    """The request after a connection manager normalised it, or what that answers at once. `port`: of the listener."""
    headers = dict(seen.headers)
    headers.setdefault("x-forwarded-proto", "https" if seen.secure else "http")
    if manager.HasField("use_remote_address") and manager.use_remote_address.value and not manager.xff_num_trusted_hops:
        headers["x-forwarded-proto"] = "https" if seen.secure else "http"
    if "x-forwarded-proto" in seen.headers:
        # The scheme of a request in HTTP/1 is what a trusted proxy before says.
        headers[":scheme"] = headers["x-forwarded-proto"]
    if overwrite := manager.scheme_header_transformation.scheme_to_overwrite:
        headers |= {":scheme": overwrite, "x-forwarded-proto": overwrite}
    headers[":authority"] = _host(seen.host, manager, port)
    if not seen.path:
        return replace(seen, headers=headers)
    path = _path(seen.path, manager, grpc=seen.says_grpc)
    if not isinstance(path, str):
        return path
    return replace(seen, headers=headers | {":path": path})


def _host(host: str, manager: AnyMessage, port: int) -> str:
    if manager.strip_trailing_host_dot:
        head, dot, rest = host.rpartition(".")
        if dot and (not rest or rest.startswith(":")):
            host = head + rest
    name, number = split_port(host)
    stripped = manager.strip_any_host_port or (manager.strip_matching_host_port and number == str(port))
    return name if stripped and number.isascii() and number.isdecimal() else host


def split_port(host: str) -> tuple[str, str]:
    """A host and the port behind it; the port is empty where there is none. An address of IPv6 is in brackets."""
    name, colon, number = host.rpartition(":")
    return (name, number) if colon and "]" not in number and number else (host, "")


def _path(path: str, manager: AnyMessage, *, grpc: bool) -> str | Early | Doubt:
    if "#" in path:
        return Early(400, "", "A path with a fragment ('#') is answered 400 by the connection manager.")
    path, question, query = path.partition("?")
    query = question + query
    action = manager.path_with_escaped_slashes_action
    redirect = False
    if _ESCAPED_SLASH.search(path):
        if action == manager.REJECT_REQUEST:
            said = "The path has an escaped slash, which 'path_with_escaped_slashes_action' answers 400."
            return Early(400, "", said)
        if action in {manager.UNESCAPE_AND_REDIRECT, manager.UNESCAPE_AND_FORWARD}:
            path = _ESCAPED_SLASH.sub(lambda match: "/" if match[1].lower() == "2f" else "\\", path)
            redirect = action == manager.UNESCAPE_AND_REDIRECT
            if redirect and grpc:
                said = "The path has an escaped slash, and gRPC follows no redirect: it is answered 400."
                return Early(400, "", said)
    if manager.normalize_path.value:
        found = _without_dots(path)
        if found is None:
            return Doubt("normalize_path", "How the connection manager normalises this path is not judged.")
        path = found
    if manager.merge_slashes and "//" in path:
        path = _merged(path)
    if redirect:
        said = "The path had escaped slashes, which 'path_with_escaped_slashes_action' answers with a redirect."
        return Early(307, path + query, said)
    return path + query


def _merged(path: str) -> str:
    middle = "/".join(filter(None, path.split("/")))
    return f"{'/' if path.startswith('/') else ''}{middle}{'/' if path.endswith('/') else ''}"


def _without_dots(path: str) -> str | None:
    """The path without the segments `.` and `..`; None where more than that is normalised in it."""
    escapes = [match[1] for match in _ESCAPE.finditer(path)]
    if not _PLAIN_PATH.fullmatch(path) or any(each is None or int(each, 16) in _UNRESERVED for each in escapes):
        return None
    kept: list[str] = []
    segments = path.split("/")[1:]
    for each in segments:
        if each == "..":
            kept[-1:] = []
        elif each != ".":
            kept.append(each)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)
