"""`channels`: where notifications go, and whether they arrive there."""

from typing import Annotated, Final

import typer

from xdsctl.api import Api, segment
from xdsctl.exits import Exit, JsonObject, NotThereError, Outcome
from xdsctl.nearest import did_you_mean
from xdsctl.output import Column, ago
from xdsctl.session import command, session_of


def _state(row: JsonObject) -> str:
    if row["paused_at"]:
        return "paused"
    return "failing" if row["failures"] else "ok"


def _last(row: JsonObject) -> str:
    last = row["last_delivery"]
    return f"{last['state']} {ago(last['at'])}" if last else "never"


_COLUMNS: Final = (
    Column("NAME", lambda row: row["name"]),
    Column("KIND", lambda row: row["kind"]),
    Column("STATE", _state),
    Column("LAST", _last),
    Column("ENVIRONMENTS", lambda row: ", ".join(row["environments"]) or "all"),
    Column("TARGET", lambda row: row["target"]),
    Column("TELLS OF", lambda row: ", ".join(row["kinds"]) or "everything", wide=True),
    Column("ID", lambda row: row["id"], wide=True),
)

HELP_POSITION: Final = 135


def register(app: typer.Typer) -> None:
    """Add the commands about channels."""
    channels = typer.Typer(no_args_is_help=True, help="Where notifications go, and whether they arrive.")
    channels.command("list")(listed)
    channels.command("test")(tried)
    app.add_typer(channels, name="channels")


@command
def listed(ctx: typer.Context) -> None:
    """List the channels of notifications, and whether the last one arrived."""
    session = session_of(ctx)
    session.printer.rows(session.api.get("/channels")["results"], _COLUMNS, lambda row: str(row["name"]))


@command
def tried(
    ctx: typer.Context, channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="Its name, or its id.")]
) -> Outcome:
    """Send a sample to a channel and say how it was taken. Exit status 1 when it was not."""
    session = session_of(ctx)
    found: JsonObject = session.api.post(f"/channels/{segment(_id(session.api, channel))}/test", None)
    session.printer.document(found, lambda: f"{'taken' if found['ok'] else 'not taken'}: {found['answer']}")
    return Outcome(Exit.DONE if found["ok"] else Exit.NO)


def _id(api: Api, channel: str) -> str:
    """The id of the channel with this name or id. Raises NotThereError."""
    rows = api.get("/channels")["results"]
    for row in rows:
        if channel in {row["id"], row["name"]}:
            return str(row["id"])
    raise NotThereError(f"There is no channel '{channel}'.{did_you_mean(channel, (row['name'] for row in rows))}")
