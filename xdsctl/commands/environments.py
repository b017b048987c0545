"""`environments`: the environments one may see, and how each stands."""

from typing import Final

import typer

from xdsctl.output import Column
from xdsctl.session import command, session_of

ENVIRONMENT_COLUMNS: Final = (
    Column("ENVIRONMENT", lambda row: row["key"]),
    Column("STATUS", lambda row: row["status"]),
    Column("RESOURCES", lambda row: sum(row["statuses"].values())),
    Column("EPOCH", lambda row: row["epoch"]),
    Column("SUMMARY", lambda row: row["summary"]),
    Column("REASON", lambda row: row["reason"], wide=True),
    Column("DEFAULT", lambda row: row["default_effect"], wide=True),
    Column("QUARANTINE", lambda row: row["quarantine"], wide=True),
)


HELP_POSITION: Final = 90


def register(app: typer.Typer) -> None:
    """Add the command `environments`."""
    app.command()(environments)


@command
def environments(ctx: typer.Context) -> None:
    """List environments and how they stand, in the order in which clients try them."""
    session = session_of(ctx)
    session.printer.rows(session.api.pages("/environments"), ENVIRONMENT_COLUMNS, lambda row: str(row["key"]))
