"""A question about a request: its fields as they were typed, checked, and the same question as a link or a command."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import QueryDict
from django.urls import reverse

from xdscore.routing.access_log import LogLine
from xdscore.routing.sharing import shareable
from xdscore.routing.values import Request
from xdscore.routing.well_formed import (
    MAX_EPOCH,
    MAX_HEADERS,
    MAX_ID_CHARS,
    MAX_METHOD_CHARS,
    MAX_VALUE_CHARS,
    SCHEMES,
    authority_problem,
    header_problem,
    method_problem,
    path_problem,
)

MAX_HEADER_CHARS: Final = 40_000
"""Of all headers together, as they are typed."""
_MAX_EPOCH_DIGITS: Final = 18
_MAX_CHARS: Final = {
    "client": MAX_ID_CHARS,
    "listener": MAX_ID_CHARS,
    "method": MAX_METHOD_CHARS,
    "authority": MAX_ID_CHARS,
    "path": MAX_VALUE_CHARS,
}
_GRPC: Final = "xds:///"


@dataclass(frozen=True, slots=True)
class Typed:
    """The fields of the form, as they were typed. `headers`: a line for each."""

    client: str = ""
    listener: str = ""
    scheme: str = SCHEMES[0]
    method: str = "GET"
    authority: str = ""
    path: str = "/"
    headers: str = ""
    at: str = ""

    @property
    def asks(self) -> bool:
        """Whether there is a question: a request has at least an authority."""
        return bool(self.authority)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that can be asked: the request, which listener it comes to, by what which client has, in which epoch.
    Empty, or None, as `request_explained` takes them.
    """

    request: Request
    listener: str
    client: str
    at: int | None


@dataclass(frozen=True, slots=True)
class Repeated:
    """A question as others may be given it: the path of a link, the whole URL of that link, and commands. `keep`: the
    path of the form that keeps it as a route case. `left_out`: what looks like a secret, and is in none of them: names
    of headers, and of parameters with a question mark before them.
    """

    link: str
    keep: str
    url: str
    xdsctl: str
    curl: str
    left_out: tuple[str, ...]


def typed_of(given: QueryDict) -> Typed:
    """The fields that a form or a link has. A whole URL typed in place of the authority is taken apart."""
    fields = {name: given.get(name, "").strip() or default for name, default in _DEFAULTS.items()}
    return _taken_apart(Typed(**fields))


def typed_of_line(line: LogLine, typed: Typed) -> Typed:
    """The fields for the request in a line of a log; whose view it is stays as it was typed."""
    request = line.request
    headers = "\n".join(f"{name}: {value}" for name, value in request.headers.items())
    return Typed(
        client=typed.client,
        listener=typed.listener,
        scheme=request.scheme,
        method=request.method,
        authority=request.authority,
        path=request.path,
        headers=headers,
        at=typed.at,
    )


def asked_of(typed: Typed) -> tuple[Asked | None, Mapping[str, str]]:
    """The question that was typed, or None and what is wrong: a sentence for each field that cannot be as it is."""
    headers, wrong = _headers(typed.headers)
    checks = {"method": method_problem, "authority": authority_problem, "path": path_problem}
    for name, most in _MAX_CHARS.items():
        text: str = getattr(typed, name)
        if len(text) > most or not text.isprintable():
            wrong[name] = f"This has at most {most:,} characters, on one line."
        elif name in checks and (problem := checks[name](text)):
            wrong[name] = problem
    if typed.scheme not in SCHEMES:
        wrong["scheme"] = f"This is {' or '.join(SCHEMES)}."
    if not _is_epoch(typed.at):
        wrong["at"] = "An epoch is the number of a snapshot, from 1 on."
    if wrong:
        return None, wrong
    request = Request(typed.authority, typed.path, typed.scheme, typed.method, headers)
    return Asked(request, typed.listener, typed.client, int(typed.at) if typed.at else None), {}


def repeated(environment_key: str, asked: Asked) -> Repeated:
    """The question as others may be given it: without what looks like a secret."""
    request, left_out = shareable(asked.request)
    asked = replace(asked, request=request)
    query = _query(asked, left_out)
    link, keep = (f"{reverse(route, args=[environment_key])}?{query}" for route in ("request", "route-case-new"))
    return Repeated(link, keep, f"{settings.PARLEY.public_url}{link}", *_commands(environment_key, asked), left_out)


_DEFAULTS: Final = {name: str(field.default) for name, field in Typed.__dataclass_fields__.items()}


def _taken_apart(typed: Typed) -> Typed:
    if typed.authority.startswith(_GRPC):
        target = typed.authority.removeprefix(_GRPC)
        return replace(typed, authority=target, listener=typed.listener or target)
    if "://" not in typed.authority:
        return typed
    try:
        parts = urlsplit(typed.authority)
    except ValueError:
        return typed
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    typed_path = typed.path not in {"", "/"}
    return replace(typed, scheme=parts.scheme, authority=parts.netloc, path=typed.path if typed_path else path)


def _is_epoch(text: str) -> bool:
    if not text:
        return True
    digits = text.isascii() and text.isdecimal() and len(text) <= _MAX_EPOCH_DIGITS
    return digits and 1 <= int(text) <= MAX_EPOCH


def _headers(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """The headers in lines such as `name: value`, those of one name joined by commas; and what is wrong with them."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(text) > MAX_HEADER_CHARS or len(lines) > MAX_HEADERS:
        return {}, {"headers": f"A request has at most {MAX_HEADERS} headers here, in {MAX_HEADER_CHARS:,} characters."}
    found: dict[str, str] = {}
    for number, line in lines:
        name, colon, value = (part.strip() for part in line.partition(":"))
        problem = header_problem(name, value) if colon else "A header is written as 'name: value'."
        if problem:
            return {}, {"headers": f"Line {number}: {problem}"}
        key = name.lower()
        found[key] = f"{found[key]},{value}" if key in found else value
    return found, {}


def _query(asked: Asked, left_out: tuple[str, ...]) -> str:
    request = asked.request
    given = {
        "authority": request.authority,
        "path": request.path,
        "scheme": request.scheme,
        "method": request.method,
        "headers": "\n".join(f"{name}: {value}" for name, value in request.headers.items()),
        "listener": asked.listener,
        "client": asked.client,
        "at": str(asked.at or ""),
        "without": " ".join(left_out),
    }
    return urlencode({name: text for name, text in given.items() if text})


def _commands(environment_key: str, asked: Asked) -> tuple[str, str]:
    """The question for `xdsctl` and for `curl`, quoted for a shell, because everything in it may hold any character."""
    request, grpc = asked.request, asked.listener == asked.request.authority
    words = ["xdsctl", "-e", environment_key, "explain", "request"]
    words += [f"{_GRPC}{request.authority}"] if grpc else [f"{request.scheme}://{request.authority}{request.path}"]
    words += ["--path", request.path] if grpc else []
    words += ["-X", request.method] if request.method != "GET" else []
    for name, value in request.headers.items():
        words += ["-H", f"{name}: {value}"]
    words += ["--listener", asked.listener] if asked.listener and not grpc else []
    words += ["--client", asked.client] if asked.client else []
    words += ["--at", str(asked.at)] if asked.at else []
    body = {
        "authority": request.authority,
        "path": request.path,
        "scheme": request.scheme,
        "method": request.method,
        "headers": dict(request.headers),
        **{name: value for name, value in (("listener", asked.listener), ("client", asked.client)) if value},
        **({"at": asked.at} if asked.at else {}),
    }
    url = f"{settings.PARLEY.public_url}/api/v1/environments/{environment_key}/requests/explain"
    curl = ["curl", "-H", "Content-Type: application/json", "-d", json.dumps(body, ensure_ascii=False), url]
    return shlex.join(words), f'{shlex.join(curl)} -H "Authorization: Bearer $XDSCTL_TOKEN"'
