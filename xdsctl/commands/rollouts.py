"""`rollouts`: what is on its way to the fleet, client by client, and what somebody decides about it."""

import time
from typing import Annotated, Any, Final

import typer

from xdsctl.exits import Exit, JsonObject, NotThereError, Outcome
from xdsctl.follow import seconds_of
from xdsctl.output import Column, ago
from xdsctl.session import Session, command, session_of

RolloutId = Annotated[str, typer.Argument(metavar="ROLLOUT", help="The rollout's id, as 'rollouts list' prints it.")]
Reason = Annotated[str, typer.Option(help="Why; kept with the rollout and in the audit log.")]
AtStep = Annotated[
    int | None,
    typer.Option("--step", min=1, help="The step that this is about: at a later one it changes nothing. Without: now."),
]

_ENDED: Final = frozenset({"done", "reverted", "aborted"})
_LOOK_S: Final = 0.5
_COLUMNS: Final = (
    Column("ID", lambda row: row["id"]),
    Column("STATE", lambda row: row["state"]),
    Column("STEP", lambda row: f"{row['step']} of {len(row['steps'])}"),
    Column("CANDIDATE", lambda row: row["cohort"]),
    Column("STABLE", lambda row: row["control"]),
    Column("TAKEN", lambda row: row["acked"]),
    Column("REFUSED", lambda row: row["refused"]),
    Column("SILENT", lambda row: row["silent"]),
    Column("RESOURCES", lambda row: len(row["resources"])),
    Column("STARTED", lambda row: ago(row["started_at"])),
    Column("WAITS FOR", lambda row: row["waits_for"], wide=True),
    Column("CHANGES", lambda row: ", ".join(row["changes"]), wide=True),
)

HELP_POSITION: Final = 35


def register(app: typer.Typer) -> None:
    """Add the commands about rollouts of an environment."""
    rollouts = typer.Typer(
        no_args_is_help=True, help="What reaches the fleet in steps, and who decides. 'rollout' is about one change."
    )
    rollouts.command("list")(listed)
    rollouts.command()(status)
    for name, work in (
        ("advance", advance),
        ("pause", pause),
        ("resume", resume),
        ("approve", approve),
        ("reject", reject),
        ("abort", abort),
    ):
        rollouts.command(name)(work)
    app.add_typer(rollouts, name="rollouts")


@command
def listed(ctx: typer.Context) -> None:
    """List the rollouts of the environment, newest first; at most one of them is open."""
    session = session_of(ctx)
    found = session.api.pages(session.api.environment("/rollouts"))
    session.printer.rows(found, _COLUMNS, lambda row: str(row["id"]))


@command
def status(
    ctx: typer.Context,
    rollout: Annotated[
        str, typer.Argument(metavar="ROLLOUT", help="Without one: the newest.", show_default=False)
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Until it has ended; says each step on the way.")] = False,
    timeout: Annotated[str, typer.Option(help="How long to wait, like 90s or 5m.")] = "30m",
) -> Outcome | None:
    """Show how far a rollout is: which step, who has it, what they say, and what it waits for.

    With --wait, exit status 0 means that everything of it reached the fleet, 1 that something was taken back, and 5
    that time ran out.
    """
    session = session_of(ctx)
    deadline = time.monotonic() + seconds_of(timeout, "--timeout")
    found = session.api.get(f"/rollouts/{rollout}") if rollout else _newest(session)
    if not wait:
        session.printer.document(found, lambda: summary(found), name=found["id"])
        return None
    said = ""
    with session.printer.progress(f"waiting for the end of rollout {found['id']}"):
        while found["state"] not in _ENDED and time.monotonic() < deadline:
            if (line := _where(found)) != said:
                session.printer.say(line)
                said = line
            time.sleep(_LOOK_S)
            found = session.api.get(f"/rollouts/{found['id']}")
    session.printer.document(found, lambda: summary(found), name=found["id"])
    return outcome_of(found)


@command
def advance(ctx: typer.Context, rollout: RolloutId, reason: Reason, step: AtStep = None) -> Outcome:
    """Go to the next step, or behind the last one to the whole fleet, although a gate still waits."""
    return _act(ctx, rollout, "advance", reason, step)


@command
def pause(ctx: typer.Context, rollout: RolloutId, reason: Reason) -> Outcome:
    """Stay at this step until 'resume', whatever the gates say; a failure still stops it."""
    return _act(ctx, rollout, "pause", reason)


@command
def resume(ctx: typer.Context, rollout: RolloutId, reason: Reason) -> Outcome:
    """Go on after 'pause'."""
    return _act(ctx, rollout, "resume", reason)


@command
def approve(ctx: typer.Context, rollout: RolloutId, reason: Reason, step: AtStep = None) -> Outcome:
    """Say that this step may be left, where it asks for a person's word."""
    return _act(ctx, rollout, "approve", reason, step)


@command
def reject(ctx: typer.Context, rollout: RolloutId, reason: Reason) -> Outcome:
    """Say that this step must not be left: what the rollout carries is taken back."""
    return _act(ctx, rollout, "reject", reason)


@command
def abort(ctx: typer.Context, rollout: RolloutId, reason: Reason) -> Outcome:
    """Take back everything that the rollout carries and has not given to the fleet yet."""
    return _act(ctx, rollout, "abort", reason)


def _act(ctx: typer.Context, rollout: str, action: str, reason: str, step: int | None = None) -> Outcome:
    session = session_of(ctx)
    body = {"reason": reason, **({"step": step} if step is not None else {})}
    done: JsonObject = session.api.post(f"/rollouts/{rollout}/{action}", body)
    session.printer.document(done, lambda: summary(done), name=done["id"])
    return Outcome(text="" if done["changed"] else "It was so already.")


def _newest(session: Session) -> JsonObject:
    page: Any = session.api.get(session.api.environment("/rollouts"), limit=1)
    if not page["results"]:
        raise NotThereError(f"There was no rollout in '{session.context.environment}' yet.")
    newest: JsonObject = session.api.get(f"/rollouts/{page['results'][0]['id']}")
    return newest


def _where(rollout: JsonObject) -> str:
    """One line about where an open rollout is."""
    step = f"step {rollout['step']} of {len(rollout['steps'])}"
    waits = f"; waits for {rollout['waits_for']}" if rollout["waits_for"] else ""
    return f"{rollout['state']}, {step}: {rollout['cohort']} clients, {_answers(rollout)}{waits}"


def _answers(rollout: JsonObject) -> str:
    return f"{rollout['acked']} took it, {rollout['refused']} refused, {rollout['silent']} silent"


def summary(rollout: JsonObject) -> str:
    """A rollout as lines of text for people."""
    ended = f", ended {ago(rollout['ended_at'])}" if rollout["ended_at"] else ""
    lines = [
        f"rollout   {rollout['id']}",
        f"state     {rollout['state']}, started {ago(rollout['started_at'])}{ended}",
        *(_step_line(each, rollout) for each in rollout["steps"]),
        f"clients   {rollout['cohort']} on the candidate side, {rollout['control']} on the stable side",
        f"answers   {rollout['exposed']} ask for it: {_answers(rollout)}",
        *([f"verdict   {rollout['verdict']}"] if rollout["verdict"] else ()),
        *(f"          {each}" for each in rollout["reasons"]),
    ]
    if rollout["waits_for"]:
        until = f" until {rollout['until']}" if rollout["until"] else ""
        lines.append(f"waits for {rollout['waits_for']}{until}")
    lines += [f"uncovered {each}: no client of this kind has it" for each in rollout["uncovered"]]
    lines += [_resource_line(each) for each in rollout["resources"]]
    lines += [_reverted_line(each) for each in rollout["reverted"]]
    lines += [f"change    {each}" for each in rollout["changes"]]
    return "\n".join(lines)


def _step_line(step: JsonObject, rollout: JsonObject) -> str:
    here = ">" if step["number"] == rollout["step"] and rollout["state"] not in _ENDED else " "
    means = f", {step['clients']} clients" if step["clients"] is not None else ""
    approval = ", then a person's word" if step["approve"] else ""
    return f"step    {here} {step['number']} {step['who']}{means}{approval}"


def _resource_line(resource: JsonObject) -> str:
    before = f"r{resource['from']}" if resource["from"] else "new"
    after = f"r{resource['to']}" if resource["to"] else "deleted"
    return f"resource  {resource['type']}/{resource['name']}: {before} -> {after}"


def _reverted_line(reverted: JsonObject) -> str:
    incident = f", incident {reverted['incident']}" if reverted["incident"] else ""
    return f"reverted  {reverted['type']}/{reverted['name']}{incident}"


def outcome_of(rollout: JsonObject) -> Outcome:
    """The outcome of waiting for a rollout: whether everything that it carries reached the fleet."""
    if rollout["state"] not in _ENDED:
        return Outcome(Exit.UNDECIDED, f"Time ran out: {_where(rollout)}. It goes on without this command.")
    names = ", ".join(f"{each['type']} '{each['name']}'" for each in rollout["reverted"])
    why = " ".join(rollout["reasons"])
    if rollout["state"] == "done" and not names:
        return Outcome(text="Every client may have it now.")
    taken = (
        f"{names} {'was' if len(rollout['reverted']) == 1 else 'were'} taken back" if names else "Nothing is left of it"
    )
    rest = "; the rest reached the fleet" if rollout["state"] == "done" else ""
    return Outcome(Exit.NO, f"{taken}{rest}. {why}".rstrip())
