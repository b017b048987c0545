"""`clients`: who is connected, and what each was told."""

from typing import Annotated, Final

import typer

from xdsctl.api import segment
from xdsctl.exits import Exit, JsonObject, Outcome
from xdsctl.output import Column, ago
from xdsctl.session import Session, command, session_of

Client = Annotated[str, typer.Argument(metavar="CLIENT", help="A client's id, or its node id.")]


def _standing(row: JsonObject) -> str:
    """How a client stands, in words; empty when the server is of the version before and does not say."""
    return str(row.get("standing", "")).replace("_", " ")


_COLUMNS: Final = (
    Column("ID", lambda row: row["id"]),
    Column("NODE", lambda row: row["node_id"]),
    Column("IDENTITY", lambda row: row["identity"] or "(not verified)"),
    Column("FAMILY", lambda row: row["family"]),
    Column("STREAMS", lambda row: row["streams"]),
    Column("STATE", _standing),
    Column("SEEN", lambda row: ago(row["last_seen"])),
    Column("ENVIRONMENT", lambda row: row["environment"], wide=True),
    Column("CLUSTER", lambda row: row["node_cluster"], wide=True),
    Column("VERSION", lambda row: f"{row['user_agent']} {row['user_agent_version']}".strip(), wide=True),
)


HELP_POSITION: Final = 50


def register(app: typer.Typer) -> None:
    """Add the commands about clients."""
    clients = typer.Typer(no_args_is_help=True, help="Who is connected, and what each was told.")
    clients.command("list")(listed)
    clients.command()(describe)
    clients.command()(diff)
    app.add_typer(clients, name="clients")
    app.command("ps")(listed)


@command
def listed(
    ctx: typer.Context,
    everybody: Annotated[bool, typer.Option("--all", help="Those that left within a day, too.")] = False,
) -> None:
    """List clients, a line each. 'ps' is short for it."""
    session = session_of(ctx)
    found = session.api.pages("/clients", environment=session.context.environment, connected=not everybody)
    session.printer.rows(found, _COLUMNS, lambda row: str(row["id"]))


@command
def describe(ctx: typer.Context, client: Client) -> None:
    """Show one client: its streams, and what it asks for, was sent and said."""
    session = session_of(ctx)
    found = _whole(session, client)
    session.printer.document(found, lambda: _description(found), name=found["id"])


@command
def diff(ctx: typer.Context, client: Client, other: Client) -> Outcome:
    """Compare what two clients have of each resource. Exit status 1 when they differ."""
    session = session_of(ctx)
    sides = [_by_name(session, each) for each in (client, other)]
    rows = [
        {"type": key[0], "name": key[1], "one": sides[0].get(key, ""), "other": sides[1].get(key, "")}
        for key in sorted({*sides[0], *sides[1]})
        if sides[0].get(key) != sides[1].get(key)
    ]
    columns = (
        Column("TYPE", lambda row: row["type"]),
        Column("NAME", lambda row: row["name"]),
        Column(client, lambda row: row["one"] or "does not ask"),
        Column(other, lambda row: row["other"] or "does not ask"),
    )
    session.printer.rows(rows, columns, lambda row: f"{row['type']}/{row['name']}")
    return Outcome(Exit.NO if rows else Exit.DONE, "" if rows else "They have the same.")


def client_id(session: Session, client: str) -> str:
    """The id of the client whose node id is `client` (of several, the one that was seen last); `client` itself, taken
    for an id, when no client has that node id.
    """
    named = list(session.api.pages("/clients", environment=session.context.environment, node_id=client))
    # Several identities may declare one node id; the one that was seen last is the one that is meant.
    return str(max(named, key=lambda row: row["last_seen"])["id"]) if named else client


def _whole(session: Session, client: str) -> JsonObject:
    identity = client_id(session, client)
    found: JsonObject = session.api.get(f"/clients/{identity}")
    subscriptions = session.api.get(f"/clients/{identity}/subscriptions")["results"]
    return {**found, "subscriptions": subscriptions}


def _by_name(session: Session, client: str) -> dict[tuple[str, str], str]:
    """What a client has, by type and name, in words that are equal only where it is."""
    rows = session.api.pages(f"/clients/{segment(client_id(session, client))}/resources")
    return {(row["type"], row["name"]): _has(row) for row in rows}


def _has(row: JsonObject) -> str:
    sent = content_called(row["revision"], row["version"])
    parts = [f"{row['state']} {row['code'] or sent}".strip(), f"version {row['version']}" if row["version"] else ""]
    if row["acked_version"] != row["version"]:
        parts.append(f"goes on with version {row['acked_version']}" if row["acked_version"] else "has nothing of it")
    return ", ".join(filter(None, parts))


def content_called(revision: int | None, version: str | None) -> str:
    """What to call a content: its revision, else its version; empty where there is none."""
    return f"r{revision}" if revision is not None else version or ""


def _description(client: JsonObject) -> str:
    lines = [
        f"Id:           {client['id']}",
        f"Node:         {client['node_id']}",
        f"Identity:     {client['identity'] or '(not verified)'}",
        f"Environment:  {client['environment']}",
        f"Cluster:      {client['node_cluster'] or '-'}",
        f"Client:       {client['family']} {client['user_agent_version']}",
        f"State:        {_standing(client)}",
        f"Seen:         {ago(client['first_seen'])} first, {ago(client['last_seen'])} last",
        "Streams:",
    ]
    for stream in client["recent_streams"]:
        ended = f"ended {ago(stream['closed_at'])}: {stream['cause']}" if stream["closed_at"] else "open"
        lines.append(f"  {stream['id']}  {stream['variant']}  from {stream['peer'] or '?'}  {ended}")
    lines.append("Subscriptions:")
    for each in client["subscriptions"]:
        names = "everything" if each["wildcard"] else ", ".join(each["names"])
        lines.append(
            f"  {each['type']}: {each['state']}, sent {each['sent'] or '-'}, acked {each['acked'] or '-'}: {names}"
        )
    return "\n".join(lines)
