"""`tail`: what happens on the streams of an environment, line by line, while it happens."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any, Final

import typer

from xdsctl.events import ServerEvent
from xdsctl.exits import CommandError, Exit, JsonObject, NoAnswerError, Outcome, UsageError
from xdsctl.follow import seconds_of
from xdsctl.output import Format, Printer, as_yaml
from xdsctl.session import Session, command, session_of

_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 10.0
_NAMES: Final = 3

HELP_POSITION: Final = 145


def register(app: typer.Typer) -> None:
    """Add the command `tail`."""
    app.command()(tail)


@command
def tail(
    ctx: typer.Context,
    resource: Annotated[str, typer.Argument(metavar="TYPE/NAME", help="Only about this resource, or TYPE/.")] = "",
    client: Annotated[str, typer.Option("--client", metavar="CLIENT", help="Only of this client: id or node id.")] = "",
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND,…",
            help="Only these: opened, subscribed, sent, acked, nacked, error, moved, closed.",
        ),
    ] = "",
    timeout: Annotated[str, typer.Option(help="End after this time; else with Ctrl-C.")] = "",
) -> Outcome:
    """Watch what happens on the streams of an environment.

    A line for each event, as JSON with -o json. A broken connection is made again, and it is said for how long nothing
    was seen. Exit status 3 when there is no server, or no broker behind it.
    """
    session = session_of(ctx)
    word, _slash, name = resource.partition("/")
    if resource and not word:
        raise UsageError("The resource must be TYPE/NAME, for example cluster/pay.")
    wanted: dict[str, str | None] = {"type": word, "name": name, "client": client, "kind": kind}
    ends = time.monotonic() + seconds_of(timeout, "--timeout") if timeout else None
    # Whoever watches by eye ends it by hand.
    with suppress(KeyboardInterrupt):
        for event in _events(session, wanted, ends):
            if reason := _shown(session.printer, event):
                return Outcome(Exit.NO_ANSWER, reason)
    return Outcome()


def _events(session: Session, wanted: dict[str, str | None], ends: float | None) -> Iterator[ServerEvent]:
    """Every event until the time is up. What breaks after the first event is tried again, with longer and longer
    pauses. Raises CommandError where nothing came yet, or another try would be refused, too.
    """
    last, pause_s, path = "", _PAUSE_S, session.api.environment("/tail")
    while ends is None or time.monotonic() < ends:
        left = None if ends is None else max(1, round(ends - time.monotonic()))
        try:
            for event in session.api.events(path, {**wanted, "seconds": left and min(left, 600)}, last):
                last, pause_s = event.id, _PAUSE_S
                yield event
        except CommandError as error:
            if not last or error.exit_status is not Exit.NO_ANSWER:
                raise
            session.printer.say(f"{error.text} Trying again in {pause_s:g} s.")
        else:
            if not last:
                raise NoAnswerError("The server ended the answer before it began.")
        if ends is None or time.monotonic() + pause_s < ends:
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        else:
            return


def _shown(printer: Printer, event: ServerEvent) -> str:
    """Print an event; returns why there will be no more, empty while there may be."""
    content: JsonObject = json.loads(event.data) if event.data else {}
    match event.name:
        case "state":
            printer.say(_state(content))
        case "left_out":
            printer.say(f"{content['count']} events were left out: too many at once.")
        case "end":
            if not content["again"]:
                return str(content["reason"])
        case _ if content:
            _write(printer, content)
    return ""


def _state(content: JsonObject) -> str:
    unseen = f"For {content['unseen_s']} s nothing was seen. " if content["unseen_s"] else ""
    if not content["processes"]:
        return f"{unseen}No ADS process hears: none runs, or none reaches the broker."
    some = "1 ADS process tells." if content["processes"] == 1 else f"{content['processes']} ADS processes tell."
    return f"{unseen}Live: {some}"


def _write(printer: Printer, content: JsonObject) -> None:
    match printer.form:
        case Format.JSON:
            sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")
        case Format.YAML:
            sys.stdout.write(f"---\n{as_yaml(content)}\n")
        case Format.NAME:
            printer.text(str(content["client"]))
        case _:
            printer.text(line_of(content, wide=printer.form is Format.WIDE))
    sys.stdout.flush()


def line_of(event: JsonObject, *, wide: bool) -> str:
    """An event as one line of text: time, kind, client, what it is about, and the words that belong to it. `wide`: all
    names that the event has, instead of the first ones.
    """
    at = str(event["at"])[11:23]
    parts = [at, f"{event['kind']:<10}", str(event["node_id"]), _about(event, len(event["names"]) if wide else _NAMES)]
    if event["version"]:
        parts.append(f"version {event['version']}")
    errors = [f"{each['status']} {each['name']}: {each['text']}" for each in _told(event)]
    words = [*errors, " ".join(str(event["text"]).split())]
    return "  ".join(filter(None, [*parts, *words]))


def _told(event: JsonObject) -> list[Any]:
    # What was sent says that there were errors; their texts stand in the event of their own.
    return list(event["errors"]) if event["kind"] == "error" else []


def _about(event: JsonObject, most: int) -> str:
    if not event["type"]:
        return ""
    names = [f"{event['type']}/{name}" for name in event["names"][:most]]
    if event["wildcard"]:
        names.insert(0, f"{event['type']}/*")
    names += [f"-{event['type']}/{name}" for name in event["removed"][:most]]
    if (more := event["name_count"] - min(len(event["names"]), most)) > 0:
        names.append(f"and {more} more")
    return " ".join(names) or str(event["type"])
