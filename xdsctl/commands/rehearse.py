"""`rehearse`: what some clients make of files before anybody makes a change of them."""

from typing import Annotated, Final

import typer

from xdsctl.exits import CommandError, Exit, JsonObject, Outcome, UsageError
from xdsctl.files import StrictForm, manifests_read
from xdsctl.kinds import resource_named
from xdsctl.output import Column, Format
from xdsctl.session import command, session_of

HELP_POSITION: Final = 15
_COLUMNS: Final = (
    Column("NODE ID", lambda row: row["node_id"]),
    Column("KIND", lambda row: row["kind"]),
    Column("TYPE", lambda row: row["type"]),
    Column("NAME", lambda row: row["name"]),
    Column("STATE", lambda row: row["state"]),
    Column("CLIENT", lambda row: row["client"], wide=True),
    Column("MESSAGE", lambda row: row["message"]),
)


def register(app: typer.Typer) -> None:
    """Add the command that has clients rehearse files of manifests."""
    app.command()(rehearse)


@command
def rehearse(
    ctx: typer.Context,
    filename: Annotated[
        list[str] | None,
        typer.Option("--filename", "-f", help="A file, a folder, or - for standard input. May be repeated."),
    ] = None,
    client: Annotated[
        list[str] | None, typer.Option(help="The node id or id of a client that rehearses. May be repeated.")
    ] = None,
    each_kind: Annotated[
        int, typer.Option(min=0, help="Instead: so many clients of each kind.", show_default=False)
    ] = 0,
    delete: Annotated[
        list[str] | None, typer.Option(help="Take TYPE/NAME from the clients, too. May be repeated.")
    ] = None,
    strict: StrictForm = False,
    within: Annotated[str, typer.Option(help="How long to wait for their answers, like 10s; at most 60s.")] = "10s",
) -> Outcome:
    """Send files to some clients for a moment, say what they make of them, and withdraw them.

    No change comes of it, and no other client is sent anything. The clients are of the environment's rehearsal group;
    they may drain listeners and rebuild clusters for it. Exit status 0 when they took everything, 1 when one refused
    something or a blocking route case would not hold any more, 5 when that is not certain, and 4 while a rollout or
    another rehearsal is open.
    """
    session = session_of(ctx)
    if bool(client) == bool(each_kind):
        raise UsageError("Say who rehearses: either --client, or --each-kind 1.")
    if not filename and not delete:
        raise UsageError("Say what is rehearsed: -f FILE, or --delete TYPE/NAME.")
    manifests = manifests_read(filename or (), strict=strict)
    session.printer.remarks(manifests.notes)
    body: JsonObject = {
        "resources": manifests.trees,
        "delete": [resource_named(each, "--delete") for each in delete or ()],
        "clients": client or {"each_kind": each_kind},
        "within": within,
    }
    api = session.api
    try:
        with session.printer.progress("waiting for the clients' answers"):
            found: JsonObject = api.post(api.environment("/rehearsals"), body, strict=strict or None)
    except CommandError as error:
        raise manifests.located(error) from error
    session.printer.remarks(manifests.remark(each) for each in found.get("findings", ()))
    if session.printer.form in {Format.JSON, Format.YAML}:
        session.printer.data(found)
    else:
        session.printer.rows(found["results"], _COLUMNS, lambda row: f"{row['type']}/{row['name']}")
    return outcome_of(found)


def outcome_of(rehearsal: JsonObject) -> Outcome:
    """The outcome of a rehearsal: whether its clients took everything, refused something, or neither is certain; and
    whether a write of it would be refused for route cases.
    """
    results: list[JsonObject] = rehearsal["results"]
    clients = len({each["client"] for each in results})
    who = "The client" if clients == 1 else f"Each of {clients} clients"
    if rehearsal["verdict"] == "taken":
        return Outcome(text=f"{who} took all that it asks for. Nothing of it is left.")
    if rehearsal["verdict"] == "refused":
        refused = [each for each in results if each["state"] == "refused"]
        if not refused:
            return Outcome(Exit.NO, "A change of it would be refused: blocking route cases would not hold any more.")
        first = refused[0]
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        said = f"{first['node_id']} refuses {first['type']} '{first['name']}'{more}: {first['message']}"
        return Outcome(Exit.NO, said)
    return Outcome(Exit.UNDECIDED, _doubt(results))


def _doubt(results: list[JsonObject]) -> str:
    silent = [each for each in results if each["state"] == "silent"]
    taken = {each["client"] for each in results if each["state"] == "taken"}
    if silent:
        return f"{silent[0]['node_id']} did not answer to all of it: {silent[0]['message']}"
    bare = next((each for each in results if each["client"] not in taken), None)
    if bare is not None:
        return f"{bare['node_id']} asks for nothing of it, so it proves nothing."
    return "Not all of it could be sent; the messages say why."
