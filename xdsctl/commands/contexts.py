"""`context` and `login`: the servers somebody works with."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from xdsctl.api import Api
from xdsctl.exits import JsonObject, Outcome, UsageError
from xdsctl.output import Column
from xdsctl.session import command, session_of
from xdsctl.settings import Context, contexts_path, contexts_read, contexts_write, server_url
from xdsctl.trust import trusted_by

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the context is called.")]

_COLUMNS = (
    Column("IN USE", lambda row: "*" if row["current"] else " "),
    Column("NAME", lambda row: row["name"]),
    Column("SERVER", lambda row: row["server"]),
    Column("ENVIRONMENT", lambda row: row["environment"]),
    Column("TOKEN", lambda row: row["token"]),
    Column("CACERT", lambda row: row["cacert"], wide=True),
)


HELP_POSITION: Final = 190


def register(app: typer.Typer) -> None:
    """Add the commands about contexts."""
    contexts = typer.Typer(no_args_is_help=True, help="The servers you work with.")
    contexts.command("list")(listed)
    contexts.command("set")(put)
    contexts.command()(use)
    contexts.command()(remove)
    app.add_typer(contexts, name="context")
    app.command()(login)


@command
def listed(ctx: typer.Context) -> None:
    """List contexts. Tokens are not shown."""
    known = contexts_read(contexts_path())
    rows: list[JsonObject] = [
        {
            "name": name,
            "current": name == known.current,
            "server": context.server,
            "environment": context.environment,
            "token": bool(context.token),
            "cacert": context.cacert,
        }
        for name, context in sorted(known.by_name.items())
    ]
    session_of(ctx).printer.rows(rows, _COLUMNS, lambda row: str(row["name"]))


@command
def put(
    ctx: typer.Context,
    name: Name,
    server: Annotated[str, typer.Option("--url", help="The server's address.", show_default=False)] = "",
    default_environment: Annotated[
        str, typer.Option(help="The environment, where none is named.", show_default=False)
    ] = "",
    default_cacert: Annotated[
        str, typer.Option(metavar="FILE", help="Who signs the server's certificate.", show_default=False)
    ] = "",
) -> Outcome:
    """Add a context, or change one. The token is asked for by 'xdsctl login'."""
    del ctx
    known = contexts_read(contexts_path())
    # Wherever xdsctl is run from later.
    cacert = str(Path(default_cacert).absolute()) if default_cacert else ""
    given = Context(server_url(server) if server else "", "", default_environment, cacert)
    trusted_by(given)
    context = given.over(known.by_name.get(name, Context()))
    if not context.server:
        raise UsageError("A new context needs --url, the server's address.")
    contexts_write(contexts_path(), known.with_context(name, context))
    return Outcome(text=f"Context '{name}' leads to {context.server}.")


@command
def use(ctx: typer.Context, name: Name) -> Outcome:
    """Use this context from now on."""
    del ctx
    contexts_write(contexts_path(), contexts_read(contexts_path()).using(name))
    return Outcome(text=f"Context '{name}' is in use.")


@command
def remove(ctx: typer.Context, name: Name) -> Outcome:
    """Forget a context and its token."""
    del ctx
    contexts_write(contexts_path(), contexts_read(contexts_path()).without(name))
    return Outcome(text=f"Context '{name}' is gone.")


@command
def login(
    ctx: typer.Context, name: Annotated[str, typer.Argument(help="The context; the one in use without it.")] = ""
) -> Outcome:
    """Ask for a token, try it, and keep it in the context."""
    options = session_of(ctx).options
    known = contexts_read(contexts_path())
    chosen = name or known.current
    if not chosen:
        raise UsageError("There is no context yet. Add one with 'xdsctl context set NAME --url URL'.")
    context = known.named(chosen)
    token = typer.prompt("API token", hide_input=True, err=True).strip()
    kept = replace(context, token=token)
    Api(Context(cacert=options.cacert).over(kept)).get("/environments", limit=1)
    contexts_write(contexts_path(), known.with_context(chosen, kept))
    return Outcome(text=f"The token works, and is kept in context '{chosen}'.")
