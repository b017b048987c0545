"""`audit`, which is `get audit`, too: who did what to what, when, and by which request."""

import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Final

import typer

from xdsctl.exits import JsonObject
from xdsctl.options import option
from xdsctl.output import Column
from xdsctl.session import Session, command, session_of

_LOOK_S: Final = 2.0
_PAGE: Final = 100
_COLUMNS: Final = (
    Column("AT", lambda row: row["at"]),
    Column("ACTOR", lambda row: row["actor"]),
    Column("VERB", lambda row: row["verb"]),
    Column("SUBJECT", lambda row: row["subject"]),
    Column("ENVIRONMENT", lambda row: row["environment"]),
    Column("ACTOR ID", lambda row: row["actor_id"], wide=True),
    Column("REQUEST", lambda row: row["request_id"], wide=True),
    Column("ID", lambda row: row["id"], wide=True),
)


HELP_POSITION: Final = 130


def register(app: typer.Typer) -> None:
    """Add the command under both of its names."""
    app.command("audit")(get_audit)
    app.command("get audit")(get_audit)


@command
def get_audit(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    ctx: typer.Context,
    since: Annotated[str, option("Only since a time, or an age such as 2h.")] = "",
    until: Annotated[str, option("Only until a time, or an age such as 1h.")] = "",
    actor: Annotated[str, option("Only what this actor did, by the name of then.")] = "",
    actor_id: Annotated[str, option("Only what this actor did, by id: user:12, token:34.")] = "",
    verb: Annotated[str, option("Only this, e.g. access_rule.created.")] = "",
    request_id: Annotated[str, option("Only what this request did.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many events at most, the newest.")] = 100,
    everywhere: Annotated[
        bool, option("Of all environments you may see, and of none.", "--all-environments", "-A")
    ] = False,
    watch: Annotated[
        bool, option("Go on with what happens, oldest first, until interrupted.", "--watch", "-w")
    ] = False,
) -> None:
    """List what was done in the environment, newest first."""
    session = session_of(ctx)
    wanted = {"actor": actor, "actor_id": actor_id, "verb": verb, "request_id": request_id}
    wanted |= {"since": since, "until": until}
    wanted["environment"] = "" if everywhere else session.context.environment
    found = list(islice(session.api.pages("/audit", limit=min(limit, 1_000), **wanted), limit))
    if not watch:
        session.printer.rows(found, _COLUMNS, lambda row: str(row["id"]))
        return
    if since:
        # An age is counted back from each request; what was read once is told apart by its id instead.
        del wanted["since"]
    try:
        for event in _going_on(session, wanted, found):
            session.printer.document(event, lambda event=event: _line(event), name=str(event["id"]))  # type: ignore[misc]
            sys.stdout.flush()
    except KeyboardInterrupt:
        return


def _going_on(session: Session, wanted: dict[str, str], found: list[JsonObject]) -> Iterator[JsonObject]:
    """The events in `found`, oldest first, and then new ones as they are recorded, without end. `wanted` are the query
    parameters that choose them.

    An event gets its number before it is committed, so one may appear after an event with a higher number: the last
    page is therefore looked through again each time.
    """
    yield from reversed(found)
    newest = found or session.api.get("/audit", limit=1, **wanted)["results"]
    start = max((each["id"] for each in newest), default=0)
    known = {each["id"] for each in found}
    while True:
        time.sleep(_LOOK_S)
        fresh: list[JsonObject] = []
        for place, each in enumerate(session.api.pages("/audit", limit=_PAGE, **wanted)):
            if place >= _PAGE and (each["id"] in known or each["id"] <= start):
                break
            if each["id"] not in known and each["id"] > start:
                fresh.append(each)
        known |= {each["id"] for each in fresh}
        yield from reversed(fresh)


def _line(event: JsonObject) -> str:
    where = event["environment"] or "-"
    return f"{event['at']}  {event['actor']}  {event['verb']}  {event['subject'] or '-'}  {where}"
