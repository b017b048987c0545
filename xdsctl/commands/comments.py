"""`comments`: what people say of changes, incidents and resources; `ticket-links`: words in it that lead to tickets."""

from typing import Annotated, Final

import typer

from xdsctl.exits import Outcome, UsageError
from xdsctl.options import option
from xdsctl.output import Column, ago
from xdsctl.session import Session, command, session_of

CommentId = Annotated[str, typer.Argument(metavar="COMMENT", help="The comment's id, as 'list' shows it.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="Plain text; @ and a login tells that person.")]
Change = Annotated[str, option("About this change: its id.")]
Incident = Annotated[str, option("About this incident: its id.")]
Resource = Annotated[str, option("About this resource: TYPE/NAME.")]

_COLUMNS: Final = (
    Column("ID", lambda row: row["id"]),
    Column("WHEN", lambda row: ago(row["at"])),
    Column("AUTHOR", lambda row: row["author"]),
    Column("TEXT", lambda row: " ".join(row["text"].split())),
    Column("EDITED", lambda row: ago(row["edited_at"]) if row["edited_at"] else "", wide=True),
)
_LINK_COLUMNS: Final = (
    Column("ID", lambda row: row["id"]),
    Column("WORDS", lambda row: row["form"]),
    Column("LEAD TO", lambda row: row["url"]),
    Column("ENVIRONMENT", lambda row: row["environment"] or "all"),
)
HELP_POSITION: Final = 75


def register(app: typer.Typer) -> None:
    """Add the commands about comments and ticket links."""
    comments = typer.Typer(no_args_is_help=True, help="What people say of changes, incidents and resources.")
    comments.command("list")(listed)
    comments.command()(add)
    comments.command()(edit)
    comments.command()(delete)
    app.add_typer(comments, name="comments")
    links = typer.Typer(no_args_is_help=True, help="Words in texts, such as PAY-12, that lead to tickets.")
    links.command("list")(links_listed)
    links.command("add")(link_add)
    links.command("delete")(link_delete)
    app.add_typer(links, name="ticket-links")


@command
def listed(ctx: typer.Context, change: Change = "", incident: Incident = "", resource: Resource = "") -> None:
    """List the comments on a change, an incident or a resource, the newest first."""
    session = session_of(ctx)
    found = session.api.pages("/comments", **_about(session, change, incident, resource))
    session.printer.rows(found, _COLUMNS, lambda row: str(row["id"]))


@command
def add(
    ctx: typer.Context, text: Text, change: Change = "", incident: Incident = "", resource: Resource = ""
) -> Outcome:
    """Comment on a change, an incident or a resource."""
    session = session_of(ctx)
    made = session.api.post("/comments", {**_about(session, change, incident, resource), "text": text})
    session.printer.document(made, lambda: f"comment {made['id']}", name=made["id"])
    return Outcome()


@command
def edit(ctx: typer.Context, comment: CommentId, text: Text) -> Outcome:
    """Change the text of a comment of your own."""
    session = session_of(ctx)
    found = session.api.request("PATCH", f"/comments/{comment}", body={"text": text}).json()
    session.printer.document(found, lambda: f"comment {found['id']}", name=found["id"])
    return Outcome()


@command
def delete(ctx: typer.Context, comment: CommentId) -> Outcome:
    """Delete a comment of your own; as an administrator, anybody's."""
    session = session_of(ctx)
    session.api.request("DELETE", f"/comments/{comment}")
    session.printer.document({"deleted": f"comment/{comment}"}, lambda: f"comment {comment}", name=comment)
    return Outcome(text="Its text is gone; the audit log keeps that it was there.")


@command
def links_listed(ctx: typer.Context) -> None:
    """List which words lead to tickets in the environments you may see."""
    session = session_of(ctx)
    session.printer.rows(session.api.pages("/ticket-links"), _LINK_COLUMNS, lambda row: str(row["id"]))


@command
def link_add(
    ctx: typer.Context,
    form: Annotated[str, typer.Argument(metavar="WORDS", help="Such as 'PAY-{number}' or '#{number}'.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="Such as 'https://jira.example/browse/PAY-{number}'.")],
    everywhere: Annotated[bool, typer.Option("--everywhere", help="In all environments, not in one.")] = False,
) -> Outcome:
    """Make words lead to the tickets of a tracker, in the environment of the context."""
    session = session_of(ctx)
    environment = None if everywhere else session.context.environment
    made = session.api.post("/ticket-links", {"form": form, "url": url, "environment": environment})
    session.printer.document(made, lambda: f"ticket link {made['id']}", name=str(made["id"]))
    return Outcome()


@command
def link_delete(
    ctx: typer.Context, link: Annotated[int, typer.Argument(metavar="ID", min=1, help="Its id, as 'list' shows it.")]
) -> Outcome:
    """Have words lead nowhere again."""
    session = session_of(ctx)
    session.api.request("DELETE", f"/ticket-links/{link}")
    session.printer.document({"deleted": f"ticket-link/{link}"}, lambda: f"ticket link {link}", name=str(link))
    return Outcome(text="These words lead nowhere any more.")


def _about(session: Session, change: str, incident: str, resource: str) -> dict[str, str]:
    """What the options name, as parameters and as a body. Raises UsageError unless it is one thing."""
    given = {"change": change, "incident": incident, "resource": resource}
    found = {name: value for name, value in given.items() if value}
    if len(found) != 1:
        raise UsageError("Say what it is about: --change, --incident or --resource; one of them.")
    return {**found, "environment": session.context.environment} if resource else found
