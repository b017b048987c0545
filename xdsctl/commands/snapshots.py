"""`snapshots` and `compare`: what an environment served at one epoch, and how two of them differ."""

from typing import Annotated, Final

import typer

from xdsctl.exits import Exit, Outcome
from xdsctl.output import Format
from xdsctl.session import Session, command, session_of
from xdsctl.snapshots import COLUMNS, DIFFERENCE_COLUMNS, snapshot_text

Epoch = Annotated[int, typer.Argument(metavar="EPOCH", min=1, help="Which one, as 'xdsctl snapshots list' lists them.")]

HELP_POSITION: Final = 140


def register(app: typer.Typer) -> None:
    """Add the commands about snapshots."""
    snapshots = typer.Typer(no_args_is_help=True, help="What an environment served at each epoch, because of whom.")
    snapshots.command("list")(listed)
    snapshots.command()(show)
    snapshots.command()(export)
    app.add_typer(snapshots, name="snapshots")
    app.command()(compare)
    # As it was called first: pipelines have it.
    earlier = typer.Typer(no_args_is_help=True, help="The same as 'snapshots'.")
    earlier.command()(export)
    app.add_typer(earlier, name="snapshot", hidden=True)


@command
def listed(ctx: typer.Context) -> None:
    """List the snapshots of the environment, newest first, with who changed what was served, and why."""
    snapshots_listed(session_of(ctx))


@command
def show(ctx: typer.Context, epoch: Epoch) -> None:
    """Show one snapshot: the changes it was built for, how much it serves, and what was held back."""
    session = session_of(ctx)
    found = session.api.get(session.api.environment(f"/snapshots/{epoch}"))
    session.printer.document(found, lambda: snapshot_text(found), name=str(epoch))


@command
def export(ctx: typer.Context, epoch: Epoch) -> Outcome:
    """Print the resources of a snapshot as manifests that apply takes."""
    session = session_of(ctx)
    path = session.api.environment(f"/snapshots/{epoch}/resources")
    found = [row["manifest"] for row in session.api.pages(path, manifests=True)]
    session.printer.data(found)
    return Outcome(text=f"{len(found):,} resources of epoch {epoch}.")


@command
def compare(
    ctx: typer.Context,
    before: Annotated[str, typer.Argument(metavar="EPOCH", help="An epoch, or 'live': what is written now.")],
    after: Annotated[str, typer.Argument(metavar="EPOCH", help="The same; what is written now without it.")] = "live",
    text: Annotated[bool, typer.Option("--text", help="As a patch, resource by resource.")] = False,
) -> Outcome:
    """Compare two snapshots, or one with what is written now: a line for each resource that differs.

    Exit status 1 when there are differences.
    """
    session = session_of(ctx)
    path = session.api.environment("/diff")
    found = session.api.get(path, **{"from": before, "to": after, "text": text or None})
    rows, count = found["diff"], found["count"]
    if session.printer.form in {Format.JSON, Format.YAML}:
        session.printer.data(found)
    elif text and session.printer.form is not Format.NAME:
        session.printer.text("".join(each["text"] for each in rows))
    elif rows:
        session.printer.rows(rows, DIFFERENCE_COLUMNS, lambda row: f"{row['type']}/{row['name']}")
    if not count:
        return Outcome(text="No difference.")
    shown = f", of which the first {len(rows):,} are shown" if count > len(rows) else ""
    return Outcome(Exit.NO, f"{count:,} resource{'' if count == 1 else 's'} differ{'s' if count == 1 else ''}{shown}.")


def snapshots_listed(session: Session) -> None:
    """Print the snapshots of the environment, newest first."""
    found = session.api.pages(session.api.environment("/snapshots"))
    session.printer.rows(found, COLUMNS, lambda row: str(row["epoch"]))
