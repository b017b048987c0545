"""`snapshot export` and `bootstrap`: files for others."""

from enum import Enum
from typing import Annotated

import typer

from xdsctl.exits import Outcome
from xdsctl.session import command, session_of

_SWITCH = "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING=true"


class Family(Enum):
    """Whose bootstrap."""

    GRPC = "grpc"
    ENVOY = "envoy"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    snapshot = typer.Typer(no_args_is_help=True, help="What an environment served at one epoch.")
    snapshot.command()(export)
    app.add_typer(snapshot, name="snapshot")
    app.command()(bootstrap)


@command
def export(ctx: typer.Context, epoch: Annotated[int, typer.Argument(min=1, help="Which one.")]) -> Outcome:
    """Print the resources of a snapshot as manifests that apply takes."""
    session = session_of(ctx)
    path = session.api.environment(f"/snapshots/{epoch}/resources")
    found = [row["manifest"] for row in session.api.pages(path, manifests=True)]
    session.printer.data(found)
    return Outcome(text=f"{len(found):,} resources of epoch {epoch}.")


@command
def bootstrap(
    ctx: typer.Context,
    family: Annotated[Family, typer.Argument(help="For which client.")],
    client: Annotated[str, typer.Option("--client", help="The node id of the client.")],
) -> Outcome:
    """Print a bootstrap file for a client."""
    session = session_of(ctx)
    response = session.api.request(
        "GET",
        f"/bootstrap/{family.value}",
        parameters={"environment": session.context.environment, "node_id": client},
    )
    session.printer.text(response.text.rstrip("\n"))
    if family is Family.GRPC:
        return Outcome(text=f"Name the file in GRPC_XDS_BOOTSTRAP, and set {_SWITCH} to see reasons in RPC errors.")
    return Outcome()
