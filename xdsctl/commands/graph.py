"""`graph`: which resources refer to which, and how each stands."""

import sys
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Final

import typer

from xdsctl.exits import JsonObject
from xdsctl.kinds import words_beginning
from xdsctl.session import command, session_of

HELP_POSITION: Final = 65


class Drawing(Enum):
    """The file formats in which a graph can be printed."""

    DOT = "dot"
    SVG = "svg"


def register(app: typer.Typer) -> None:
    """Add the command `graph`."""
    app.command()(graph)


@command
def graph(
    ctx: typer.Context,
    type_: Annotated[
        str,
        typer.Argument(
            metavar="TYPE",
            help="Begin with this type, e.g. cluster; or with TYPE/NAME.",
            show_default=False,
            autocompletion=words_beginning,
        ),
    ] = "",
    name: Annotated[str, typer.Argument(metavar="NAME", help="Begin with this resource.", show_default=False)] = "",
    find: Annotated[str, typer.Option(help="Begin with resources whose name contains this.", show_default=False)] = "",
    depth: Annotated[
        int | None, typer.Option(min=0, help="How many references to go, in both directions.", show_default=False)
    ] = None,
    client: Annotated[
        str, typer.Option(metavar="NODE", help="Only what this client sees: its node id or id.", show_default=False)
    ] = "",
    drawn: Annotated[
        Drawing | None, typer.Option("--as", help="Print a drawing instead, as a file.", show_default=False)
    ] = None,
) -> None:
    """Print which resources refer to which, and how each stands.

    Without TYPE and NAME: of the whole environment. A graph is bounded; what is left out is counted.
    """
    session = session_of(ctx)
    if "/" in type_ and not name:
        type_, _, name = type_.partition("/")
    asked = {"type": type_, "name": name, "q": find, "depth": depth, "client": client}
    path = session.api.environment("/graph")
    if drawn is not None:
        sys.stdout.write(session.api.request("GET", path, parameters={**asked, "format": drawn.value}).text)
        return
    found = session.api.get(path, **asked)
    session.printer.document(found, lambda: "\n".join(_lines(found)))
    if found["left_out"]:
        least = "at least " if found["more_left_out"] else ""
        session.printer.say(f"Left out: {least}{found['left_out']} others; begin at a resource to see less.")


def _lines(found: JsonObject) -> Iterator[str]:
    """A line for each node, and below it one for each name that it refers to."""
    nodes = {(node["type"], node["name"]): node for node in found["nodes"]}
    targets: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for edge in found["edges"]:
        source, target = ((edge[end]["type"], edge[end]["name"]) for end in ("source", "target"))
        targets.setdefault(source, []).append(target)
    for key, node in nodes.items():
        yield f"{'/'.join(key)}  {_standing(node)}"
        for target in targets.get(key, ()):
            yield f"  -> {'/'.join(target)}  {nodes[target]['state']}"


def _standing(node: JsonObject) -> str:
    parts = [f"r{node['revision']}" if node["revision"] is not None else "", node["state"]]
    parts += [node["sight"].replace("_", " ") if node["sight"] else ""]
    parts += [f"asked by {node['asked_by']}" if node["asked_by"] else "", f"+{node['more']}" if node["more"] else ""]
    return "  ".join(filter(None, parts))
