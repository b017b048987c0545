"""The form of a route case: what was typed, what it means, and what it begins with."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final
from urllib.parse import urlsplit

from django.http import QueryDict

from controlplane.routecases.checks import case_problems
from controlplane.routecases.values import ANSWERS, End, Expected, RouteCaseDraft, Share
from xdscore.environment_choice import ClientFacts
from xdscore.routing.values import Answer, Request

_MAX_CHARS: Final = 40_000  # of one field
_GRPC: Final = "xds:///"
_ALL: Final = 100.0


@dataclass(frozen=True, slots=True)
class Typed:
    """The fields of the form, as they were typed. `headers`, `clusters`, `metadata`: a line for each. `identity` to
    `metadata`: of the client whose rights count; all empty: whoever it is.
    """

    name: str = ""
    method: str = "GET"
    url: str = ""
    headers: str = ""
    listener: str = ""
    answer: str = Answer.ROUTED.value
    clusters: str = ""
    route: str = ""
    virtual_host: str = ""
    route_name: str = ""
    status: str = ""
    location: str = ""
    note: str = ""
    identity: str = ""
    node_id: str = ""
    node_cluster: str = ""
    metadata: str = ""
    blocking: bool = True


_TEXTS: Final = tuple(each.name for each in fields(Typed) if each.name != "blocking")


def typed_of(given: QueryDict) -> Typed:
    """The fields of a form as it was sent."""
    texts = {name: given.get(name, "")[:_MAX_CHARS].strip() for name in _TEXTS}
    return Typed(**texts, blocking="blocking" in given)


def typed_of_link(given: QueryDict) -> Typed:
    """The fields that a link brings: a request, as the links of its explanation have it, and a name."""
    scheme, path = given.get("scheme") or "http", given.get("path") or "/"
    authority = given.get("authority", "")[:_MAX_CHARS]
    return Typed(
        name=given.get("name", "")[:_MAX_CHARS],
        method=given.get("method", "GET")[:_MAX_CHARS] or "GET",
        url=f"{scheme}://{authority}{path}"[:_MAX_CHARS] if authority else "",
        headers=given.get("headers", "")[:_MAX_CHARS],
        listener=given.get("listener", "")[:_MAX_CHARS],
    )


def typed_of_draft(draft: RouteCaseDraft) -> Typed:
    """The fields of the form for a case that is kept."""
    request, expect, client = draft.request, draft.expect, draft.client or ClientFacts()
    return Typed(
        name=draft.name,
        method=request.method,
        url=f"{request.scheme}://{request.authority}{request.path}",
        headers="\n".join(f"{name}: {value}" for name, value in request.headers.items()),
        listener=draft.listener,
        answer=expect.answer.value if expect.answer is not None else "",
        clusters=expect.cluster or _lines(expect.weighted),
        route=expect.route,
        virtual_host=expect.virtual_host,
        route_name=expect.route_name,
        status=str(expect.status or ""),
        location=expect.location,
        note=draft.note,
        identity=client.identity,
        node_id=client.node_id,
        node_cluster=client.node_cluster,
        metadata=_metadata_lines(client),
        blocking=draft.blocking,
    )


def expecting(typed: Typed, end: End) -> Typed:
    """The fields with what is expected filled in: the end that the request has now. Nothing, where it has none."""
    if end.answer is Answer.UNKNOWN:
        return typed
    return replace(
        typed,
        answer=end.answer.value,
        clusters=_lines(end.shares) if end.answer is Answer.ROUTED else "",
        virtual_host=end.virtual_host,
        route_name=end.route_name,
        status=str(end.status or "") if end.answer is not Answer.ROUTED else "",
        location=end.location,
    )


def draft_of(typed: Typed, *, kept: RouteCaseDraft | None = None) -> tuple[RouteCaseDraft, Mapping[str, str]]:
    """The case that was typed, and what is wrong with it: a sentence for each field. `kept`: the case as it is kept,
    whose metadata stays as it is where nobody typed another: a line cannot say every key.
    """
    headers, wrong = _headers(typed.headers)
    client, problem = _client(typed, kept)
    wrong |= {"metadata": problem} if problem else {}
    shares, problem = _clusters(typed.clusters)
    wrong |= {"clusters": problem} if problem else {}
    if typed.status and not (typed.status.isascii() and typed.status.isdecimal() and len(typed.status) == 3):
        wrong["status"] = "A status is a number from 100 to 599."
    answer = next((each for each in ANSWERS if each.value == typed.answer), None)
    only = len(shares) == 1 and shares[0].percent == _ALL
    expect = Expected(
        answer=answer,
        cluster=shares[0].cluster if only else "",
        weighted=() if only else shares,
        route=typed.route,
        virtual_host=typed.virtual_host,
        route_name=typed.route_name,
        status=int(typed.status) if typed.status and "status" not in wrong else 0,
        location=typed.location,
    )
    request, listener = _request(typed, headers)
    draft = RouteCaseDraft(typed.name, request, expect, listener, client, typed.blocking, typed.note)
    problems = {_FIELD_OF.get(member, member): said for member, said in case_problems(draft).items()}
    return draft, {**problems, **wrong}


_FIELD_OF: Final = {"cluster": "clusters", "weighted": "clusters", "": "answer"}


def _request(typed: Typed, headers: Mapping[str, str]) -> tuple[Request, str]:
    """The request that was typed, and the listener that it comes to; without an authority where the URL is none."""
    if typed.url.startswith(_GRPC):
        target, slash, path = typed.url.removeprefix(_GRPC).partition("/")
        return Request(target, slash + path or "/", "http", typed.method, headers), typed.listener or target
    try:
        parts = urlsplit(typed.url)
    except ValueError:
        return Request("", "/", "http", typed.method, headers), typed.listener
    if parts.scheme not in {"http", "https"}:
        return Request("", "/", "http", typed.method, headers), typed.listener
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Request(parts.netloc, path, parts.scheme, typed.method, headers), typed.listener


def _headers(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """The headers in lines such as `name: value`, those of one name joined by commas; and what is wrong with them."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not colon or not name:
            return {}, {"headers": f"Line {number}: a header is written as 'name: value'."}
        key = name.lower()
        found[key] = f"{found[key]},{value}" if key in found else value
    return found, {}


def _client(typed: Typed, kept: RouteCaseDraft | None) -> tuple[ClientFacts | None, str]:
    """The facts about the client that were typed, None without any, and what is wrong with its metadata."""
    before = kept.client if kept is not None else None
    if before is not None and typed.metadata.splitlines() == _metadata_lines(before).strip().splitlines():
        metadata, problem = dict(before.metadata), ""
    else:
        metadata, problem = _metadata(typed.metadata)
    facts = ClientFacts(typed.identity, typed.node_id, typed.node_cluster, metadata)
    return (facts if facts != ClientFacts() else None), problem


def _metadata_lines(client: ClientFacts) -> str:
    return "\n".join(f"{key}={value}" for key, value in client.metadata.items())


def _metadata(text: str) -> tuple[dict[str, str], str]:
    """The metadata in lines such as `zone=eu-1`, and what is wrong with them."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, equals, value = (part.strip() for part in line.partition("="))
        if not line.strip():
            continue
        if not equals or not key or key in found:
            return {}, f"Line {number}: metadata is written as 'key=value', each key once."
        found[key] = value
    return found, ""


def _clusters(text: str) -> tuple[tuple[Share, ...], str]:
    """The clusters in lines such as `pay` or `pay 90`, and what is wrong with them."""
    shares: list[Share] = []
    lines = [line.split() for line in text.splitlines() if line.strip()]
    for words in lines:
        name, *percent = words
        if len(words) > 2 or (not percent and len(lines) > 1):
            return (), "Of several clusters each has a line with its share in percent, such as 'pay 90'."
        number = _percent(percent[0]) if percent else _ALL
        if number is None:
            return (), f"'{percent[0][:20]}' is no share in percent."
        shares.append(Share(name, number))
    return tuple(shares), ""


def _percent(text: str) -> float | None:
    digits = text.removesuffix("%").replace(".", "", 1)
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 9:
        return None
    number = float(text.removesuffix("%"))
    return number if number <= _ALL else None


def _lines(shares: tuple[Share, ...]) -> str:
    if len(shares) == 1 and shares[0].percent == _ALL:
        return shares[0].cluster
    return "\n".join(f"{each.cluster} {each.percent:g}" for each in shares)
