"""`undo`: takes one change back, whatever it wrote."""

from typing import Annotated, Final

import typer

from xdsctl.commands.rollout import ChangeId
from xdsctl.exits import Outcome
from xdsctl.follow import Tolerance, follow
from xdsctl.freezes import BreakGlass
from xdsctl.losses import AcceptCases, AcceptLoss, accepting
from xdsctl.session import command, session_of

HELP_POSITION: Final = 40


def register(app: typer.Typer) -> None:
    """Add the command `undo`."""
    app.command()(undo)


@command
def undo(
    ctx: typer.Context,
    change: ChangeId,
    reason: Annotated[str, typer.Option(help="Why; kept with the change.")],
    wait: Annotated[bool, typer.Option("--wait", help="Until the fleet has taken it.")] = False,
    timeout: Annotated[str, typer.Option(help="How long to wait, like 90s or 5m.")] = "5m",
    accept_loss: AcceptLoss = 0,
    accept_cases: AcceptCases = 0,
    break_glass: BreakGlass = "",
) -> Outcome:
    """Take one change back: resources, access rules, groups, settings or a quarantine become what it found.

    A new change does it, all or nothing.
    What was written again since stands in the way: each is named, with who wrote it and in which change. Where the
    environment asks for review, an undo that writes rules or groups needs --break-glass.
    """
    session = session_of(ctx)
    tolerance = Tolerance.of("nack", timeout)
    made = accepting(
        session,
        accept_loss,
        lambda accepted: session.api.post(
            f"/changes/{change}/undo",
            {"reason": reason},
            accept_loss=accepted,
            accept_cases=accept_cases or None,
            break_glass=break_glass or None,
        ),
    )
    text = "Taken back." if made["changed"] else f"{made['author']} had taken it back before; nothing was changed."
    if wait:
        return follow(session, made["id"], tolerance)
    session.printer.document(made, lambda: f"change {made['id']}", name=made["id"])
    return Outcome(text=text)
