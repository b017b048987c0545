"""`rollout`: how far one change has come, and the way back."""

from typing import Annotated, Final

import typer

from xdsctl.commands.resources import HISTORY_COLUMNS, revision_text
from xdsctl.commands.snapshots import snapshots_listed
from xdsctl.exits import JsonObject, NotThereError, Outcome
from xdsctl.follow import Tolerance, follow, summary
from xdsctl.kinds import resource_named
from xdsctl.losses import AcceptCases, AcceptLoss, accepting
from xdsctl.session import Session, command, session_of
from xdsctl.snapshots import differences, snapshot_text
from xdsctl.spread import with_spread

ChangeId = Annotated[str, typer.Argument(metavar="CHANGE", help="The change's id, as apply prints it.")]

HELP_POSITION: Final = 30


def register(app: typer.Typer) -> None:
    """Add the commands about rollouts."""
    rollout = typer.Typer(no_args_is_help=True, help="Follow a change through the fleet, or go back.")
    rollout.command()(status)
    rollout.command()(history)
    rollout.command()(undo)
    rollout.command()(release)
    app.add_typer(rollout, name="rollout")


@command
def status(
    ctx: typer.Context,
    change: ChangeId,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is decided.")] = False,
    timeout: Annotated[str, typer.Option(help="How long to wait, like 90s or 5m.")] = "5m",
    fail_on: Annotated[str, typer.Option(help="What makes it fail: nack, silent, silent>N%.")] = "nack",
    spread: Annotated[bool, typer.Option("--spread", help="And how fast clients took it.")] = False,
) -> Outcome | None:
    """Show how far a change has come: published, acknowledged, refused, by how many clients, and what they hold and do
    not use yet.
    """
    session = session_of(ctx)
    if wait:
        return follow(session, change, Tolerance.of(fail_on, timeout), spread=spread)
    found = session.api.get(f"/changes/{change}")
    if spread:
        found = with_spread(session, found)
    session.printer.document(found, lambda: summary(found), name=change)
    return None


@command
def history(
    ctx: typer.Context,
    resource: Annotated[
        str, typer.Argument(metavar="TYPE/NAME", help="The revisions of one resource instead.", show_default=False)
    ] = "",
    revision: Annotated[
        int,
        typer.Option("--revision", metavar="N", min=0, help="Show this one: what it changed.", show_default=False),
    ] = 0,
) -> None:
    """List what the environment served, newest first, with who changed it and why: what 'undo' can go back to.

    A revision of the environment is an epoch.
    """
    session = session_of(ctx)
    if resource:
        _history_of_resource(session, resource, revision)
    elif revision:
        found = _epoch(session, revision)
        session.printer.document(found, lambda: _epoch_text(found), name=str(revision))
    else:
        snapshots_listed(session)


def _history_of_resource(session: Session, resource: str, revision: int) -> None:
    named = resource_named(resource, "The resource")
    rows = session.api.pages(session.api.resource(named["type"], named["name"], "/revisions"))
    if not revision:
        session.printer.rows(rows, HISTORY_COLUMNS, lambda row: f"r{row['revision']}")
        return
    found = next((row for row in rows if row["revision"] == revision), None)
    if found is None:
        raise NotThereError(f"There is no revision r{revision} of {resource} in '{session.context.environment}'.")
    session.printer.document(found, lambda: revision_text(found), name=f"r{revision}")


def _epoch(session: Session, epoch: int) -> JsonObject:
    """The snapshot of an epoch, and how it differs from the one that is kept before it: `before`, `diff`, `count`."""
    api = session.api
    found: JsonObject = api.get(api.environment(f"/snapshots/{epoch}"))
    rows = api.pages(api.environment("/snapshots"))
    before = next((row["epoch"] for row in rows if row["epoch"] < epoch), None)
    nothing: JsonObject = {"diff": [], "count": 0}
    differ = nothing if before is None else api.get(api.environment("/diff"), **{"from": before, "to": epoch})
    return {**found, "before": before, **differ}


def _epoch_text(found: JsonObject) -> str:
    if found["before"] is None:
        return f"{snapshot_text(found)}\nDiffers:    no snapshot before it is kept"
    lines = [f"  {line}" for line in differences(found["diff"])]
    return "\n".join([snapshot_text(found), f"Differs:    from epoch {found['before']} in {found['count']}", *lines])


@command
def undo(
    ctx: typer.Context,
    to: Annotated[int, typer.Option("--to", min=1, help="The epoch to go back to.")],
    reason: Annotated[str, typer.Option(help="Why; kept with the change.")],
    no_hold: Annotated[bool, typer.Option("--no-hold", help="Let the next apply change things at once.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Until the fleet has taken it.")] = False,
    timeout: Annotated[str, typer.Option(help="How long to wait, like 90s or 5m.")] = "5m",
    accept_loss: AcceptLoss = 0,
    accept_cases: AcceptCases = 0,
) -> Outcome:
    """Go back to an epoch, and hold there.

    The resources become what they were, as a new change.
    Access rules stay as they are. A hold refuses further applies until 'xdsctl rollout release'.
    """
    session = session_of(ctx)
    tolerance = Tolerance.of("nack", timeout)
    body = {"to_epoch": to, "reason": reason, "hold": not no_hold}
    path = session.api.environment("/rollback")
    made = accepting(
        session,
        accept_loss,
        lambda accepted: session.api.post(path, body, accept_loss=accepted, accept_cases=accept_cases or None),
    )
    if not made.get("id"):
        session.printer.document(made, lambda: "unchanged")
        return Outcome(text=f"The resources already are as at epoch {to}.")
    if wait:
        return follow(session, made["id"], tolerance)
    session.printer.document(made, lambda: f"change {made['id']}", name=made["id"])
    return Outcome(
        text=f"Back to epoch {to}."
        + ("" if no_hold else " The environment is on hold now; 'xdsctl rollout release' ends that.")
    )


@command
def release(ctx: typer.Context) -> Outcome:
    """Release a hold: applies are taken again."""
    session = session_of(ctx)
    api = session.api
    written = api.request("PATCH", api.environment(), body={"hold": None}).json()
    session.printer.document(written, lambda: f"{written['key']} released", name=written["key"])
    return Outcome()
