"""`get clients --of TYPE/NAME` and `get resources --client CLIENT`: what clients have of resources."""

from typing import Annotated, Final

import typer

from xdsctl.api import segment
from xdsctl.commands.clients import client_id, content_called
from xdsctl.exits import JsonObject, Outcome
from xdsctl.kinds import resource_named
from xdsctl.output import Column, ago
from xdsctl.session import command, session_of

State = Annotated[
    str,
    typer.Option(
        help="Only in these states, separated by commas: ACKED, SENT, NACKED, ERROR_SENT, SILENT, REQUESTED, UNKNOWN.",
        show_default=False,
    ),
]


_OF_ONE: Final = (
    Column("STATE", lambda row: row["state"]),
    Column("REVISION", lambda row: content_called(row["revision"], row["version"])),
    Column("ACKED", lambda row: content_called(row["acked_revision"], row["acked_version"])),
    Column("SINCE", lambda row: ago(row["since"])),
    Column("CODE", lambda row: row["code"] or ""),
    Column("MESSAGE", lambda row: row["message"] or ""),
    Column("VERSION", lambda row: row["version"] or "", wide=True),
)
_RESOURCE_COLUMNS: Final = (
    Column("TYPE", lambda row: row["type"]),
    Column("NAME", lambda row: row["name"]),
    *_OF_ONE,
)
_CLIENT_COLUMNS: Final = (
    Column("CLIENT", lambda row: row["client"]),
    Column("NODE", lambda row: row["node_id"]),
    *_OF_ONE,
)


HELP_POSITION: Final = 51


def register(app: typer.Typer) -> None:
    """Add the commands about what clients have."""
    app.command("get client")(get_clients)
    app.command("get resource")(get_resources)


@command
def get_clients(
    ctx: typer.Context,
    of: Annotated[str, typer.Option(metavar="TYPE/NAME", help="The resource, such as cluster/pay.")],
    state: State = "",
    revision: Annotated[
        str, typer.Option(help="Only those that have, or are to have, this revision.", show_default=False)
    ] = "",
) -> Outcome:
    """List the connected clients that ask for a resource, and what each has of it.

    Standard error says how many of all of them are in which state with which revision. 'xdsctl ps' lists clients
    whatever they ask for.
    """
    session = session_of(ctx)
    resource = resource_named(of, "--of")
    path = session.api.resource(resource["type"], resource["name"], "/clients")
    filters = {"state": state.upper() or None, "revision": revision or None}
    counts = session.api.get(path, limit=1, **filters)["counts"]
    session.printer.rows(session.api.pages(path, **filters), _CLIENT_COLUMNS, lambda row: str(row["client"]))
    return Outcome(text=_counted(counts))


@command
def get_resources(
    ctx: typer.Context,
    client: Annotated[str, typer.Option(metavar="CLIENT", help="A client's id, or its node id.")],
    state: State = "",
    at: Annotated[
        str,
        typer.Option(metavar="TIME", help="What it had then, such as 2026-07-01T12:00:00Z.", show_default=False),
    ] = "",
) -> None:
    """List what a client has of each resource that it asks for. 'xdsctl get' lists what is stored."""
    session = session_of(ctx)
    found = session.api.pages(
        f"/clients/{segment(client_id(session, client))}/resources", state=state.upper() or None, at=at or None
    )
    session.printer.rows(found, _RESOURCE_COLUMNS, lambda row: f"{row['type']}/{row['name']}")


def _counted(counts: JsonObject) -> str:
    """The counts by state and revision as one line, such as `ACKED: 950 r12; NACKED: 10 r12.`; empty where there are
    none.
    """
    states = (
        f"{state}: {', '.join(f'{number} {label}' for label, number in of_state.items())}"
        for state, of_state in counts.items()
    )
    return "; ".join(states) + "." if counts else ""
