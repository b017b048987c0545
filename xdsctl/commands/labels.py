"""`label`: what people note of resources in pairs, key=value."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from xdscore.lazily import Lazily
from xdsctl.commands.resources import Message, Selector, Type
from xdsctl.exits import JsonObject, Outcome, UsageError
from xdsctl.session import command, session_of

if TYPE_CHECKING:
    from xdscore import labels
else:
    labels = Lazily("xdscore.labels")

HELP_POSITION: Final = 21


def register(app: typer.Typer) -> None:
    """Add the command about labels."""
    app.command()(label)


@command
def label(
    ctx: typer.Context,
    type: Type,  # noqa: A002
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME LABEL…", help="The resource's name, and what to set (key=value) or remove (key-)."
        ),
    ],
    selector: Selector = "",
    message: Message = "",
) -> Outcome:
    """Set and remove labels of a resource: 'xdsctl label cluster pay team=pay old-'.

    With -l in place of NAME: of all resources of the type that have such labels, at most 1,000, as one change. Labels
    reach no client, and make no revision.
    """
    session = session_of(ctx)
    if selector:
        body = {"act": "labels", "select": {"type": type, "label": selector}, "labels": _edits(words)}
        made = session.api.post(session.api.environment("/resources/bulk"), body, message=message or None)
    else:
        name, *rest = words
        path = session.api.resource(type, name)
        body = {"labels": _edits(rest)}
        parameters = {"message": message or None}
        made = session.api.request("PATCH", path, body=body, parameters=parameters).json()
    if not made["changed"]:
        return Outcome(text="Nothing was changed: the labels are so already.")
    session.printer.document(made, lambda: f"change {made['id']}", name=made["id"])
    return Outcome(text=_told(made))


def _edits(words: list[str]) -> "labels.LabelEdits":
    """The edits that somebody typed. Raises UsageError with every problem."""
    try:
        edits = labels.edits_read(words)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if problems := labels.edit_problems(edits):
        raise UsageError(" ".join(problems))
    if not edits:
        raise UsageError("Say which labels to set or remove, such as team=pay or team-.")
    return edits


def _told(made: JsonObject) -> str:
    count = len(made["labels"])
    return f"Labels of {count:,} resource{'' if count == 1 else 's'} are set; no client is told of it."
