"""`version`: which versions client and server are, and whether they go together."""

from contextlib import suppress
from typing import Final

import typer

from xdscore.build import BUILD_VERSION, HEADER
from xdscore.version import Version, side_by_side
from xdsctl.api import Api
from xdsctl.exits import CommandError, JsonObject, Outcome
from xdsctl.session import command, session_of

HELP_POSITION: Final = 180


def register(app: typer.Typer) -> None:
    """Add the command `version`."""
    app.command()(version)


@command
def version(ctx: typer.Context) -> Outcome:
    """Show the versions of xdsctl and of the server.

    Says so when they are too far apart. 'xdsctl --version' asks no server.
    """
    session = session_of(ctx)
    found: JsonObject = {"client": BUILD_VERSION, "server": server_version(session.api)}
    session.printer.document(found, lambda: f"xdsctl {found['client']}\nserver {found['server'] or 'unknown'}")
    return Outcome(text=doubt(found["server"]))


def server_version(api: Api) -> str:
    """The version that the server reports; empty when it reports none. Raises NoAnswerError.

    It is in the answer to `/readyz`, for everybody. Where a proxy hides that, the API is asked, which needs a token.
    """
    told = str(api.probe("/readyz").headers.get(HEADER, ""))
    if told or not api.context.token:
        return told
    with suppress(CommandError):
        return str(api.request("GET", "/environments", parameters={"limit": 1}).headers.get(HEADER, ""))
    return ""


def doubt(server: str) -> str:
    """Why this xdsctl may not work with a server of version `server`, and what to do; empty when the two go
    together.
    """
    try:
        together = side_by_side(Version.parse(BUILD_VERSION), Version.parse(server))
    except ValueError:
        return "The server does not say which version it is, so nobody knows whether this xdsctl goes with it."
    if together:
        return ""
    return f"warning: xdsctl {BUILD_VERSION} and server {server} are too far apart: install the xdsctl of its version."
