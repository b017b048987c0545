"""`explain`: why a client does, or does not, have a resource."""

from typing import Annotated, Final

import typer

from xdsctl.commands.clients import Client
from xdsctl.exits import Exit, JsonObject, Outcome
from xdsctl.session import command, session_of

_STATES: Final = {"ok": "ok", "fail": "FAIL", "unknown": "?", "skipped": "-"}
_ANSWERS: Final = {"yes": "has", "no": "does not get", "unknown": "may or may not have"}
_ANSWERED_THEN: Final = {"yes": "had", "no": "did not get", "unknown": "may or may not have had"}
_EXITS: Final = {"yes": Exit.DONE, "no": Exit.NO, "unknown": Exit.UNDECIDED}


HELP_POSITION: Final = 60


def register(app: typer.Typer) -> None:
    """Add the command `explain`."""
    app.command()(explain)


@command
def explain(
    ctx: typer.Context,
    client: Client,
    type_: Annotated[str, typer.Argument(metavar="TYPE", help="Its type, e.g. cluster.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    at: Annotated[
        str,
        typer.Option(
            metavar="EPOCH|TIME",
            help="As of an earlier snapshot, or of a time such as 2026-07-01T02:10:00Z, with what the client had then.",
            show_default=False,
        ),
    ] = "",
) -> Outcome:
    """Say why a client has a resource, or not.

    Exit status 1 when it does not have it, 5 when nobody can know.
    """
    session = session_of(ctx)
    environment = session.context.environment
    found = session.api.get("/explain", environment=environment, client=client, type=type_, name=name, at=at)
    session.printer.document(found, lambda: _ladder(found), name=found["answer"])
    return Outcome(_EXITS[found["answer"]])


def _ladder(found: JsonObject) -> str:
    subject = f"{found['type']} '{found['name']}'"
    at = f" in snapshot {found['at']}" if found["at"] else ""
    time = found.get("time")  # a server of the version before knows none
    at = f" at {time}, in snapshot {found['at']}" if time else at
    verb = (_ANSWERED_THEN if time else _ANSWERS)[found["answer"]]
    head = f"{found['answer'].upper():<8}client {found['client']} (env {found['environment']}) {verb} {subject}{at}"
    lines = [f"{head}  {found['code']}".rstrip()]
    lines += [
        f" {_STATES[rung['state']]:<4} {rung['number']} {rung['title']:<12} {rung['text']}" for rung in found["rungs"]
    ]
    if found["told"]:
        lines.append(f"told: {found['told']}")
    lines += [f"next: {step}" for step in found["next"]]
    return "\n".join(lines)
