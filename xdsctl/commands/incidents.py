"""`incidents`: what clients refuse or lost, and what is done about it."""

from typing import Annotated, Final

import typer

from xdsctl.exits import JsonObject, Outcome
from xdsctl.follow import incident_sentence, is_loss, loss_lines
from xdsctl.losses import AcceptLoss, accepting
from xdsctl.options import option
from xdsctl.output import Column, ago
from xdsctl.session import Session, command, session_of

Incident = Annotated[str, typer.Argument(metavar="INCIDENT", help="The incident's id.")]
Reason = Annotated[str, typer.Option(help="Why; kept with the change.")]

_COLUMNS: Final = (
    Column("ID", lambda row: row["id"]),
    Column("CAUSE", lambda row: row.get("cause", "nack")),
    Column("STATE", lambda row: row["state"]),
    Column("RESOURCE", lambda row: f"{row['type']}/{row['name'] or '?'}"),
    Column("CLIENTS", lambda row: f"{row['clients']['nacked']} of {row['clients']['sent']}"),
    Column("WHO", lambda row: (row.get("assigned") or {}).get("name", "")),
    Column("CONFIDENCE", lambda row: row["confidence"]),
    Column("MESSAGE", lambda row: row["message"]),
    Column("CHANGE", lambda row: row["change"], wide=True),
)


HELP_POSITION: Final = 70


def register(app: typer.Typer) -> None:
    """Add the commands about incidents."""
    incidents = typer.Typer(no_args_is_help=True, help="What clients refuse or lost, and what is done about it.")
    incidents.command("list")(listed)
    incidents.command()(show)
    incidents.command()(acknowledge)
    incidents.command()(assign)
    incidents.command()(mute)
    incidents.command()(unmute)
    incidents.command()(resolve)
    incidents.command()(archive)
    incidents.command()(quarantine)
    incidents.command()(release)
    app.add_typer(incidents, name="incidents")


@command
def listed(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    ctx: typer.Context,
    state: Annotated[
        str, typer.Option(help="open, acknowledged, resolved or ignored; all of them when empty.")
    ] = "open",
    type: Annotated[str, option("Only about this type: cluster, listener, …")] = "",  # noqa: A002
    name: Annotated[str, option("Only about resources whose name contains this.")] = "",
    resource: Annotated[str, option("Only about this resource: TYPE/NAME.")] = "",
    client: Annotated[str, option("Only what this client refuses, or lost: its id or node id.")] = "",
    author: Annotated[str, option("Only where the suspect change is by this author.")] = "",
    assignee: Annotated[
        str, option("Only what this one is to look after: me, nobody, person:LOGIN or team:OWNER.")
    ] = "",
    since: Annotated[str, option("Only what was refused or lost since: a time, or an age such as 24h.")] = "",
) -> None:
    """List incidents, the one refused last first."""
    session = session_of(ctx)
    wanted = {"type": type, "name": name, "resource": resource, "client": client, "author": author, "since": since}
    wanted |= {"assignee": assignee} if assignee else {}
    found = session.api.pages("/incidents", environment=session.context.environment, state=state, **wanted)
    session.printer.rows(found, _COLUMNS, lambda row: str(row["id"]))


@command
def show(ctx: typer.Context, incident: Incident) -> None:
    """Show an incident: who refuses what, in whose words, since which change; or who lost what by which change."""
    session = session_of(ctx)
    found = session.api.get(f"/incidents/{incident}")
    session.printer.document(found, lambda: _description(found), name=found["id"])


@command
def acknowledge(ctx: typer.Context, incident: Incident) -> Outcome:
    """Acknowledge an incident: say that somebody looks after it."""
    return _state(ctx, incident, "acknowledged")


@command
def assign(
    ctx: typer.Context,
    incident: Incident,
    person: Annotated[str, option("The login of a person.")] = "",
    team: Annotated[str, option("An owner of resources.")] = "",
) -> Outcome:
    """Say who is to look after an incident; without --person and --team, nobody."""
    if person and team:
        raise typer.BadParameter("An incident is assigned to one person or one team: give --person or --team.")
    return _posted(ctx, incident, "assign", {"team": team} if team else {"person": person or None})


@command
def mute(
    ctx: typer.Context,
    incident: Incident,
    until: Annotated[str, typer.Option(help="A time, or how long from now on: 1h, 8h, 1d, 1w.")],
    reason: Annotated[str, typer.Option(help="Why; shown with the incident.")],
) -> Outcome:
    """Have channels told nothing of an incident until a time. Clients that refuse it in other words end that."""
    return _posted(ctx, incident, "mute", {"until": until, "reason": reason})


@command
def unmute(ctx: typer.Context, incident: Incident) -> Outcome:
    """Have channels told of an incident again."""
    return _posted(ctx, incident, "unmute", None)


@command
def resolve(
    ctx: typer.Context,
    incident: Incident,
    next_revision: Annotated[
        bool,
        typer.Option("--next-revision", help="Once a newer revision of the resource is published, which mends it."),
    ] = False,
) -> Outcome:
    """Resolve an incident: say that it is over. A refusal of a later epoch opens it again."""
    return _state(ctx, incident, "resolved", **({"in_next_revision": True} if next_revision else {}))


@command
def archive(ctx: typer.Context, incident: Incident) -> Outcome:
    """Ignore an incident from now on."""
    return _state(ctx, incident, "ignored")


@command
def quarantine(ctx: typer.Context, incident: Incident, reason: Reason, accept_loss: AcceptLoss = 0) -> Outcome:
    """Publish the last acknowledged revision in place of the refused one."""
    path, body = f"/incidents/{incident}/quarantine", {"reason": reason}
    session = session_of(ctx)
    return _done(
        session, accepting(session, accept_loss, lambda accepted: session.api.post(path, body, accept_loss=accepted))
    )


@command
def release(ctx: typer.Context, incident: Incident, reason: Reason) -> Outcome:
    """Publish the refused revision again."""
    session = session_of(ctx)
    return _done(session, session.api.post(f"/incidents/{incident}/release", {"reason": reason}))


def _posted(ctx: typer.Context, incident: str, act: str, body: JsonObject | None) -> Outcome:
    session = session_of(ctx)
    found = session.api.post(f"/incidents/{incident}/{act}", body)
    session.printer.document(found, lambda: f"{found['id']} {found['state']}{_agreed(found)}", name=found["id"])
    return Outcome()


def _agreed(incident: JsonObject) -> str:
    """Who is to look after an incident, and until when it is muted, in words with blanks before them."""
    # A server of the version before knows neither.
    who, mute = incident.get("assigned"), incident.get("muted")
    gone = ", who may not see it any more" if who and who["gone"] else ""
    said = f"  {'team ' if who['kind'] == 'team' else ''}{who['name']}{gone}" if who else ""
    return said + (f"  muted until {mute['until']} by {mute['by']}: {mute['reason']}" if mute else "")


def _state(ctx: typer.Context, incident: str, state: str, **more: bool) -> Outcome:
    session = session_of(ctx)
    found = session.api.request("PATCH", f"/incidents/{incident}", body={"state": state, **more}).json()
    session.printer.document(found, lambda: f"{found['id']} {found['state']}", name=found["id"])
    return Outcome()


def _done(session: Session, made: JsonObject) -> Outcome:
    session.printer.document(made, lambda: f"change {made['id']}" if made.get("id") else "unchanged")
    return Outcome(text="" if made.get("id") else "It was so already.")


def _description(incident: JsonObject) -> str:
    return _loss(incident) if is_loss(incident) else _refusal(incident)


def _loss(incident: JsonObject) -> str:
    loss = incident["loss"]
    lines = [
        f"Incident:     {incident['id']}  {incident['state']}{_agreed(incident)}",
        f"What:         {incident['message']}",
        f"Change:       {incident['change']} by {incident['author']}",
        f"Seen:         {ago(incident['first_at'])}",
        "Lost:",
        *(f"  {line}" for line in loss_lines(loss)),
        "Clients:",
        *(f"  {each['node_id']}  {each['kind']}" for each in loss["who"]),
        *([f"  and {loss['clients'] - len(loss['who'])} more"] if loss["clients"] > len(loss["who"]) else []),
    ]
    return "\n".join(lines)


def _verdict(verdict: JsonObject | None) -> str:
    if verdict is None:
        return "-"
    suggested = verdict["suggested"] and verdict["outcome"] == "fail"
    return f"{verdict['reason']}{'; quarantine is suggested' if suggested else ''}"


def _refusal(incident: JsonObject) -> str:
    needed = [f"{each['type']} {each['name']}" for each in incident["used_by"]]
    quarantined = "  quarantined" if incident["quarantined"] else ""
    lines = [
        f"Incident:     {incident['id']}  {incident['state']}{quarantined}{_agreed(incident)}",
        f"What:         {incident_sentence(incident)}",
        f"Confidence:   {incident['confidence']}",
        f"Revision:     r{incident['revision']} by {incident['author'] or '?'}, change {incident['change'] or '?'}",
        f"Seen:         {ago(incident['first_at'])} first, {ago(incident['last_at'])} last",
        f"Verdict:      {_verdict(incident['verdict'])}",
        f"Suspects:     {', '.join(incident['suspects']) or '-'}",
        f"Needed by:    {', '.join(needed) or '-'}",
        "Clients:",
        *(
            f"  {each['node_id']} {each['identity'] or '(not verified)'}  r{each['revision']}  {each['count']} times"
            for each in incident["refusing"]
        ),
        "Their words:",
        *(f"  {ago(each['at'])}  {each['node_id']}: {each['text']}" for each in incident["samples"]),
    ]
    return "\n".join(lines)
