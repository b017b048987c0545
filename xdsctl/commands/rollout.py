"""`rollout`: how far one change has come, and the way back."""

from typing import Annotated, Final

import typer

from xdsctl.exits import Outcome
from xdsctl.follow import Tolerance, follow, summary
from xdsctl.losses import AcceptCases, AcceptLoss, accepting
from xdsctl.output import Column, ago
from xdsctl.session import command, session_of
from xdsctl.spread import with_spread

ChangeId = Annotated[str, typer.Argument(metavar="CHANGE", help="The change's id, as apply prints it.")]

_COLUMNS = (
    Column("EPOCH", lambda row: row["epoch"]),
    Column("PUBLISHED", lambda row: ago(row["published_at"])),
    Column("RESOURCES", lambda row: sum(row["counts"].values())),
    Column("GENERATION", lambda row: row["generation"], wide=True),
    Column("LINEAGE", lambda row: row["lineage"], wide=True),
)


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
def history(ctx: typer.Context) -> None:
    """List the snapshots of the environment, newest first: what 'undo' can go back to."""
    session = session_of(ctx)
    found = session.api.pages(session.api.environment("/snapshots"))
    session.printer.rows(found, _COLUMNS, lambda row: str(row["epoch"]))


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
