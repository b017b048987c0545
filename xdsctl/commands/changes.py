"""`get changes`: what was changed, when, by whom and why, and what became of it."""

from enum import Enum
from itertools import islice
from typing import Annotated, Final

import typer

from xdsctl.exits import JsonObject
from xdsctl.options import option
from xdsctl.output import Column
from xdsctl.session import command, session_of

HELP_POSITION: Final = 125


class Kind(Enum):
    """What a change is about."""

    RESOURCES = "resources"
    POLICY = "policy"
    QUARANTINE = "quarantine"
    ACCESS = "access"
    ROLLBACK = "rollback"
    LABELS = "labels"


class Findings(Enum):
    """Whether something was said of what a change wrote."""

    WITH = "with"
    WITHOUT = "without"


def _status(row: JsonObject) -> str:
    """What became of a change, in words, with how many clients refuse or lost something."""
    clients = row["lost_by"] or row["refused_by"]
    return str(row["status"]).replace("_", " ") + (f" ({clients})" if clients else "")


_COLUMNS: Final = (
    Column("AT", lambda row: row["created_at"]),
    Column("CHANGE", lambda row: row["id"]),
    Column("AUTHOR", lambda row: row["author"]),
    Column("KIND", lambda row: row["kind"]),
    Column("WROTE", lambda row: row["edit_count"]),
    Column("STATUS", _status),
    Column("MESSAGE", lambda row: row["message"]),
    Column("ENVIRONMENT", lambda row: row["environment"], wide=True),
    Column("OWNER", lambda row: row["owner"], wide=True),
    Column("REQUEST", lambda row: row["request_id"], wide=True),
)


def register(app: typer.Typer) -> None:
    """Add the command `get changes`."""
    app.command("get change")(get_changes)


@command
def get_changes(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    ctx: typer.Context,
    since: Annotated[str, option("Only since a time, or an age such as 2h.")] = "",
    until: Annotated[str, option("Only until a time, or an age such as 1h.")] = "",
    author: Annotated[str, option("Only by this author, by the name of then.")] = "",
    kind: Annotated[Kind | None, option("Only changes of this kind.")] = None,
    resource: Annotated[str, option("Only what wrote this: TYPE/NAME, or a name of any type.")] = "",
    owner: Annotated[str, option("Only what was written for this owner.")] = "",
    text: Annotated[str, option("Only with this in the message, or in the name of what was written.")] = "",
    findings: Annotated[Findings | None, option("Only those of which something was found, or nothing.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most, the newest.")] = 100,
    everywhere: Annotated[bool, option("Of all environments you may see.", "--all-environments", "-A")] = False,
) -> None:
    """List changes of the environment, newest first, with what became of each. 'rollout status CHANGE' has the rest."""
    session = session_of(ctx)
    found = session.api.pages(
        "/changes",
        limit=min(limit, 1_000),
        environment=None if everywhere else session.context.environment,
        since=since,
        until=until,
        author=author,
        kind=kind.value if kind else None,
        resource=resource,
        owner=owner,
        text=text,
        findings=findings.value if findings else None,
    )
    session.printer.rows(islice(found, limit), _COLUMNS, lambda row: str(row["id"]))
