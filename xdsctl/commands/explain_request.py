"""`explain request`: where a request goes, and why."""

from typing import Annotated, Final
from urllib.parse import SplitResult, urlsplit

import typer

from xdsctl.exits import Exit, JsonObject, Outcome, UsageError
from xdsctl.session import command, session_of

HELP_POSITION: Final = 61
_STATES: Final = {"ok": "ok", "fail": "FAIL", "unknown": "?"}
_EXITS: Final = {"refused": Exit.NO, "unknown": Exit.UNDECIDED}
# So many of those that lost are written of each choice; the others are counted, and `-o json` has them.
_MOST_LOST: Final = 10
_TITLE_WIDTH: Final = 20


def register(app: typer.Typer) -> None:
    """Add the command `explain request`."""
    app.command("explain request")(explain_request)


@command
def explain_request(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="https://shop.example/pay, or xds:///TARGET of gRPC.")],
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", help="A header, 'name: value'. May be repeated.")
    ] = None,
    method: Annotated[str, typer.Option("--method", "-X", help="Its method.")] = "GET",
    path: Annotated[
        str, typer.Option(help="Of a gRPC target: the call, /package.Service/Method.", show_default=False)
    ] = "",
    client: Annotated[str, typer.Option(help="By what this client has: its node id or id.", show_default=False)] = "",
    listener: Annotated[
        str, typer.Option(help="The listener that it comes to; else the one with its port.", show_default=False)
    ] = "",
    at: Annotated[int, typer.Option(min=0, metavar="EPOCH", help="As of an earlier snapshot.", show_default=False)] = 0,
) -> Outcome:
    """Say where a request goes: listener, route, cluster, endpoints, and why others lost.

    Without --client by what is published. Nothing is sent. Exit status 1 when nothing takes it (404, 503), 5 when that
    depends on what is not judged.
    """
    session = session_of(ctx)
    body = _body(url, path) | {"method": method, "headers": _headers(header or ())}
    body |= {name: value for name, value in (("client", client), ("at", at)) if value}
    if listener:
        body["listener"] = listener
    api = session.api
    found: JsonObject = api.post(api.environment("/requests/explain"), body)
    session.printer.document(found, lambda: _way(f"{method} {url}", found), name=found["answer"])
    return Outcome(_EXITS.get(found["answer"], Exit.DONE))


def _body(url: str, path: str) -> JsonObject:
    """What the URL says of the request. Raises UsageError for one that no client would ask for."""
    if url.startswith("xds:///"):
        target = url.removeprefix("xds:///")
        return {"authority": target, "listener": target, "path": path or "/"}
    parts = _split(url)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.netloc:
        raise UsageError(f"'{url}' is no URL such as https://shop.example/pay or xds:///TARGET.")
    if path:
        raise UsageError("--path is for gRPC targets (xds:///TARGET); the path of a URL stands in it.")
    query = f"?{parts.query}" if parts.query else ""
    return {"scheme": parts.scheme, "authority": parts.netloc, "path": (parts.path or "/") + query}


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _headers(lines: list[str] | tuple[()]) -> dict[str, str]:
    """The headers in lines like `name: value`; values of one name are joined. Raises UsageError."""
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name:
            raise UsageError(f"-H takes 'name: value'; '{line}' is none.")
        key, value = name.strip().lower(), value.strip()
        found[key] = f"{found[key]},{value}" if key in found else value
    return found


def _way(asked: str, found: JsonObject) -> str:
    lines = [f"{found['answer'].upper():<8}{asked}{_target(found)}"]
    for rung in found["rungs"]:
        place = f"  [{' '.join(filter(None, _place(rung)))}]" if rung["type"] else ""
        lines.append(f" {_STATES[rung['state']]:<4} {rung['title']:<{_TITLE_WIDTH}} {rung['text']}{place}")
        lines += [f"      - {each['name']} {each['text']}  [{_where(each)}]" for each in rung["lost"][:_MOST_LOST]]
        more = len(rung["lost"][_MOST_LOST:]) + rung["more"]
        if more:
            lines.append(f"      - and {more} more lost")
    lines += [
        f" endpoint  {each['address']} {each['health']} {each['locality']}".rstrip() for each in found["endpoints"]
    ]
    lines += [f"not judged: {each}" for each in found["unsupported"]]
    return "\n".join(lines)


def _target(found: JsonObject) -> str:
    if found.get("weighted"):
        return " -> " + ", ".join(f"{each['cluster']} {each['percent']:g} %" for each in found["weighted"])
    return f" -> cluster {found['cluster']}" if found["answer"] == "routed" else ""


def _place(rung: JsonObject) -> tuple[str, str]:
    """The resource in which a choice was decided, and the pointer to the field; that is empty for all of it."""
    return f"{rung['type']}/{rung['resource']}", _where(rung)


def _where(found: JsonObject) -> str:
    """The pointer, and the line of the manifest that `xdsctl get` prints, where the server says it."""
    line = found.get("line")
    return f"{found['pointer']} line {line}" if line and found["pointer"] else str(found["pointer"])
