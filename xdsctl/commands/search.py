"""`search`: everything that words stand in."""

from enum import Enum
from typing import Annotated, Final

import typer

from xdsctl.exits import JsonObject
from xdsctl.output import Column, ago
from xdsctl.session import command, session_of

HELP_POSITION: Final = 66
_MAX_WHAT_CHARS: Final = 100


class Kind(Enum):
    """What can be searched for."""

    ENVIRONMENT = "environment"
    RESOURCE = "resource"
    CLIENT = "client"
    INCIDENT = "incident"
    CHANGE = "change"
    CHANGE_SET = "change-set"
    ROLLOUT = "rollout"
    SNAPSHOT = "snapshot"
    GROUP = "group"
    RULE = "rule"
    COMMENT = "comment"
    CHANNEL = "channel"
    TOKEN = "token"  # noqa: S105 - a kind of thing, not a password
    CLIENT_TOKEN = "client-token"  # noqa: S105 - a kind of thing, not a password
    PERSON = "person"


_COLUMNS: Final = (
    Column("KIND", lambda row: row["kind"]),
    Column("ENVIRONMENT", lambda row: row["environment"] or ""),
    Column("NAME", lambda row: "/".join(filter(None, (_word(row), row["name"])))),
    Column("WHAT", lambda row: " ".join(f"{row['state']} {_said(row)}".split())[:_MAX_WHAT_CHARS]),
    Column("WHEN", lambda row: ago(row["at"]) if row["at"] else ""),
    Column("ID", lambda row: row["id"], wide=True),
)


def register(app: typer.Typer) -> None:
    """Add the command `search`."""
    app.command()(search)


@command
def search(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="WORD…", help="Each has to stand somewhere in what is found.")],
    kind: Annotated[list[Kind] | None, typer.Option(help="Only this kind; several may be given.")] = None,
    here: Annotated[bool, typer.Option("--here", help="Only in the environment of the context.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many of each kind.")] = 10,
    names: Annotated[bool, typer.Option("--no-contents", help="Leave out the contents of resources.")] = False,
) -> None:
    """Look for words in everything you may read: names, contents, owners, rules, messages, clients, people."""
    session = session_of(ctx)
    found = session.api.get(
        "/search",
        q=" ".join(words),
        environment=session.context.environment if here else None,
        kind=",".join(each.value for each in kind or ()) or None,
        limit=limit,
        contents=not names,
    )
    session.printer.rows(found["results"], _COLUMNS, lambda row: str(row["id"]))
    if found["more"]:
        session.printer.say(f"There is more of: {', '.join(found['more'])} (--kind, --limit).")
    left = found["unsearched"] or {"older": 0, "sealed": 0}
    if left["older"]:
        session.printer.say(f"The contents of {left['older']} resources were not searched: others were written later.")
    if left["sealed"]:
        session.printer.say(f"Nor were {left['sealed']} contents that hold secrets.")


def _word(row: JsonObject) -> str:
    return str(row["type"]) if row["kind"] in ("resource", "incident") else ""


def _said(row: JsonObject) -> str:
    return f"{row['pointer']}: {row['excerpt']}" if row["pointer"] else str(row["text"])
