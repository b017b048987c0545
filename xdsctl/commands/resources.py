"""`get`, `describe`, `history`, `edit`, `delete`: one resource, or a list of them."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from xdscore.lazily import Lazily
from xdsctl.api import remark_of
from xdsctl.editing import draft_edited, draft_written
from xdsctl.exits import CommandError, JsonObject, Outcome, UsageError
from xdsctl.files import StrictForm, manifests_read
from xdsctl.follow import is_loss
from xdsctl.freezes import BreakGlass
from xdsctl.kinds import words_beginning
from xdsctl.losses import AcceptCases, AcceptLoss, accepting
from xdsctl.output import Column, Format, ago, as_yaml
from xdsctl.session import command, session_of

if TYPE_CHECKING:
    from xdscore import labels
else:
    labels = Lazily("xdscore.labels")

Type = Annotated[str, typer.Argument(metavar="TYPE", help="cluster, listener, route, endpoint, …")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The resource's name, as clients ask for it.")]
Selector = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="SELECTOR",
        help="Only those with such labels: team=pay, team!=pay, team, '!team', or several with commas.",
        show_default=False,
    ),
]
Message = Annotated[str, typer.Option("--message", "-m", help="Why; kept with the change.")]


def _revision_state(row: JsonObject) -> str:
    if row["deleted"]:
        return "deleted"
    if row["quarantined"]:
        return "quarantined"
    return "acked" if row["proven"] else "new"


_COLUMNS: Final = (
    Column("TYPE", lambda row: row["type"]),
    Column("NAME", lambda row: row["name"]),
    Column("REVISION", lambda row: f"r{row['revision']}"),
    Column("STATUS", lambda row: row["status"]),
    Column("OWNER", lambda row: row["owner"]),
    Column("UPDATED", lambda row: ago(row["updated_at"])),
    Column("REASON", lambda row: row["reason"]),
    Column("VERSION", lambda row: row["version"], wide=True),
    Column("FINDINGS", lambda row: row["findings"], wide=True),
    Column("LABELS", lambda row: ",".join(labels.label_words(row.get("labels", {}))), wide=True),
)
HISTORY_COLUMNS: Final = (
    Column("REVISION", lambda row: f"r{row['revision']}"),
    Column("WHEN", lambda row: ago(row["created_at"])),
    Column("AUTHOR", lambda row: row["author"]),
    Column("STATE", _revision_state),
    Column("MESSAGE", lambda row: row["message"]),
    Column("CHANGE", lambda row: row["change"], wide=True),
    Column("CONTENT", lambda row: row["content_hash"], wide=True),
)


HELP_POSITION: Final = 20


def register(app: typer.Typer) -> None:
    """Add the commands about resources."""
    app.command()(get)
    app.command()(describe)
    app.command()(history)
    app.command()(edit)
    app.command()(delete)


@command
def get(
    ctx: typer.Context,
    type: Annotated[  # noqa: A002
        str,
        typer.Argument(
            metavar="TYPE",
            help="cluster, listener, route, endpoint, …; all types without it.",
            autocompletion=words_beginning,
        ),
    ] = "",
    name: Annotated[str, typer.Argument(metavar="NAME", help="One resource.", show_default=False)] = "",
    owner: Annotated[str, typer.Option(help="Only what this owner has.", show_default=False)] = "",
    status: Annotated[
        str,
        typer.Option(
            help="Only what stands so: published, waiting, stalled, refused, quarantined or withheld.",
            show_default=False,
        ),
    ] = "",
    selector: Selector = "",
) -> Outcome:
    """List resources and how they stand, or print one of them.

    One is printed as the manifest that would store it again; standard error says how it stands, unless it is published.

    With -o json a list holds what the API says of each, with its manifest. With -o yaml it holds the manifests alone:
    'xdsctl get -o yaml | xdsctl -e other apply -f -' copies them.

    In place of TYPE: environments, groups, rules, tokens, client-tokens or audit, which have options of their own
    ('xdsctl get audit --help').
    """
    session = session_of(ctx)
    if name:
        found = session.api.get(session.api.resource(type, name), status=True)
        session.printer.document(found["manifest"], lambda: as_yaml(found["manifest"]), name=f"{type}/{name}")
        return Outcome(text=_standing(found) if found["reason"] else "")
    whole = session.printer.form in {Format.JSON, Format.YAML}
    rows = session.api.pages(
        session.api.environment("/resources"),
        type=type,
        owner=owner,
        status=status,
        label=selector or None,
        manifests=whole,
    )
    if session.printer.form is Format.YAML:
        session.printer.data([row["manifest"] for row in rows])
    else:
        session.printer.rows(rows, _COLUMNS, lambda row: f"{row['type']}/{row['name']}")
    return Outcome()


@command
def describe(ctx: typer.Context, type: Type, name: Name) -> None:  # noqa: A002
    """Show all that is known of one resource.

    How it stands, its content, findings, history and incidents.
    """
    session = session_of(ctx)
    api = session.api
    found = api.get(api.resource(type, name), status=True)
    revisions = list(api.get(api.resource(type, name, "/revisions"), limit=10)["results"])
    about = f"{found['type']}/{name}"
    incidents = [
        each
        for state in ("open", "acknowledged")
        for each in api.pages("/incidents", environment=api.context.environment, state=state, resource=about)
    ]
    content = {**found, "revisions": revisions, "incidents": incidents}
    session.printer.document(content, lambda: _description(content), name=f"{type}/{name}")


@command
def history(ctx: typer.Context, type: Type, name: Name) -> None:  # noqa: A002
    """List the revisions of a name, newest first."""
    session = session_of(ctx)
    found = session.api.pages(session.api.resource(type, name, "/revisions"))
    session.printer.rows(found, HISTORY_COLUMNS, lambda row: f"r{row['revision']}")


@command
def edit(
    ctx: typer.Context,
    type: Type,  # noqa: A002
    name: Name,
    message: Message = "",
    break_glass: BreakGlass = "",
    strict: StrictForm = False,
) -> Outcome:
    """Change one resource in $EDITOR.

    What was saved is stored, unless somebody else changed the resource meanwhile (exit status 4).
    """
    session = session_of(ctx)
    path = session.api.resource(type, name)
    response = session.api.request("GET", path)
    before = as_yaml(response.json())
    file = draft_written(before)
    draft_edited(file)
    if file.read_text("utf-8") == before:
        file.unlink()
        return Outcome(text="Nothing was changed.")
    # From here on the file stays until it is stored: what somebody typed is not thrown away for a mistake.
    try:
        manifests = manifests_read([str(file)], strict=strict)
        if len(manifests.items) != 1:
            raise UsageError(f"'{file}' must hold one resource; it holds {len(manifests.items)}.")
        made = session.api.request(
            "PUT",
            path,
            body=manifests.trees[0],
            parameters={"message": message, "break_glass": break_glass or None, "strict": strict or None},
            headers={"If-Match": response.headers["ETag"]},
        ).json()
    except CommandError as error:
        error.text = f"{error.text} Your text is in '{file}'."
        raise
    file.unlink()
    if not made.get("id"):
        return Outcome(text="Nothing was changed: it says the same in another way.")
    session.printer.remarks(remark_of(each) for each in made["findings"])
    session.printer.document(made, lambda: f"change {made['id']}", name=made["id"])
    return Outcome(text="Saved; it is published within seconds.")


@command
def delete(
    ctx: typer.Context,
    type: Type,  # noqa: A002
    name: Name,
    message: Message = "",
    accept_loss: AcceptLoss = 0,
    accept_cases: AcceptCases = 0,
    break_glass: BreakGlass = "",
) -> Outcome:
    """Take a resource out of the environment."""
    session = session_of(ctx)
    path = session.api.resource(type, name)
    seen = session.api.request("GET", path).headers["ETag"]  # an environment may want to know what is deleted
    headers = {"If-Match": seen}

    def deleted(accepted: int | None) -> JsonObject:
        parameters = {
            "message": message,
            "accept_loss": accepted,
            "accept_cases": accept_cases or None,
            "break_glass": break_glass or None,
        }
        answer: JsonObject = session.api.request("DELETE", path, parameters=parameters, headers=headers).json()
        return answer

    made = accepting(session, accept_loss, deleted)
    session.printer.document(made, lambda: f"change {made['id']}", name=made["id"])
    return Outcome(text=f"The {type} '{name}' is deleted; clients learn it within seconds.")


def revision_text(row: JsonObject) -> str:
    """One revision of a resource as lines of text for people."""
    lines = [
        f"Revision:  r{row['revision']}",
        f"When:      {ago(row['created_at'])} ({row['created_at']})",
        f"Author:    {row['author']}",
        f"Message:   {row['message'] or '-'}",
        f"Change:    {row['change']}",
        f"State:     {_revision_state(row)}",
        "Findings:  " + ("none" if not row["findings"] else ""),
        *(f"  {each['severity']} {each['code']}: {each['detail']}" for each in row["findings"]),
    ]
    return "\n".join(lines)


def _standing(row: JsonObject) -> str:
    """How a resource stands (its status), and the reason for that."""
    return f"{row['status']}: {row['reason']}" if row["reason"] else str(row["status"])


def _description(content: JsonObject) -> str:
    revisions, incidents = content["revisions"], content["incidents"]
    current = revisions[0]
    lines = [
        f"Type:       {content['type']}",
        f"Name:       {content['name']}",
        f"Revision:   r{current['revision']}, {ago(current['created_at'])}, by {current['author']}",
        f"Labels:     {' '.join(labels.label_words(content.get('labels', {}))) or 'none'}",
        f"Status:     {_standing(content)}",
        *(
            f"  {each['type']}: {each['status']}, {each['reason']}, since {ago(each['since'])}. {each['message']}"
            for each in content["conditions"]
        ),
        f"Change:     {current['change']}  {current['message']}",
        "Findings:   " + ("none" if not current["findings"] else ""),
        *(f"  {each['severity']} {each['code']}: {each['detail']}" for each in current["findings"]),
        "Incidents:  " + ("none open" if not incidents else ""),
        *(
            f"  {each['id']} {each['clients']['nacked']} of {each['clients']['sent']} clients "
            f"{'lost it' if is_loss(each) else 'refuse it'}"
            for each in incidents
        ),
        "History:",
        *(
            f"  r{each['revision']}  {ago(each['created_at'])}  {each['author']}  {each['message']}"
            for each in revisions
        ),
        "Manifest:",
        *(f"  {line}" for line in as_yaml(content["manifest"]).split("\n")),
    ]
    return "\n".join(lines)
