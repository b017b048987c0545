"""What a write would take from connected clients: how people are told, and how they say that they mean it.

The server refuses such a write until whoever writes accepts the loss by its number of clients (XDS3013).
"""

import shlex
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import typer

from xdsctl.exits import CommandError, Exit, JsonObject
from xdsctl.session import Session

AcceptLoss = Annotated[
    int,
    typer.Option(
        "--accept-loss",
        metavar="N",
        min=0,
        show_default=False,
        help="Do it even if up to N connected clients lose something; without it that is refused (status 6).",
    ),
]
AcceptCases = Annotated[
    int,
    typer.Option(
        "--accept-cases",
        metavar="N",
        min=0,
        show_default=False,
        help="Do it even if up to N blocking route cases break; without it that is refused (status 4).",
    ),
]

_SHOWN: Final = 5  # names and clients; -o json has more
_OPTION: Final = "--accept-loss"
_SECRETS: Final = frozenset({"--token"})


def accepting(session: Session, accept_loss: int, send: Callable[[int | None], Any]) -> Any:
    """The answer of `send`, which is called with the number of clients whose loss is accepted (None: no loss).

    When the server refuses because clients would lose something, a person at a terminal is asked to type their number,
    and `send` is called again. Raises CommandError otherwise.
    """
    accepted = accept_loss
    while True:
        try:
            return send(accepted or None)
        except CommandError as error:
            if error.exit_status is not Exit.LOSS or error.document is None:
                raise
            refusal = _refusal(session, error.document, accepted)
            clients: int = error.document["loss"]["clients"]
            told = (refusal.text, *refusal.more)
            typed = session.printer.ask(told, f"To do it nevertheless, type the number of clients, {clients}:")
            if typed is None:
                raise refusal from error
            if typed != str(clients):
                text = f"'{typed}' is not {clients}. Nothing was changed."
                raise CommandError(Exit.LOSS, text, document=error.document) from error
            # Should more clients have come meanwhile, it is asked again.
            accepted = clients


def _refusal(session: Session, problem: JsonObject, accepted: int) -> CommandError:
    loss: JsonObject = problem["loss"]
    first, *rest = foreseen_lines(loss)
    only = f" You accepted {accepted}." if accepted else ""
    again = command_again(session.arguments, loss["clients"])
    more = (*rest, f"To do it nevertheless: {again}")
    return CommandError(Exit.LOSS, f"{first}{only} Nothing was changed.", more=more, document=problem)


def foreseen_lines(loss: JsonObject) -> tuple[str, ...]:
    """Lines about what clients would lose, from the member `loss` of an answer; none when they lose nothing."""
    if not loss["clients"]:
        return ()
    kinds = ", ".join(f"{count} {kind}" for kind, count in loss["kinds"].items())
    connected = loss["connected"]
    fleet = f"{connected} connected client{'' if connected == 1 else 's'}"
    lines = [f"{loss['clients']} of {fleet} would lose something ({kinds})."]
    if loss["doubtful"]:
        lines.append(f"Not certain: {loss['doubtful']} of them, which are counted because nobody can know.")
    names = [f"{each['type']}/{each['name']} ({each['clients']})" for each in loss["names"]]
    lines.append(f"What: {first_of(names, len(names), unknown=loss['truncated'])}")
    who = [f"{each['node_id'] or each['client']} ({each['kind']})" for each in loss["who"]]
    lines.append(f"Who: {first_of(who, loss['clients'])}")
    return tuple(lines)


def dry_run_lines(loss: JsonObject | None, command: str = "apply") -> tuple[str, ...]:
    """Lines about what clients would lose by a command that was only tried; none when the server, being of the version
    before, sends no `loss`.
    """
    if loss is None:
        return ()
    lines = foreseen_lines(loss)
    return (*lines, f"'xdsctl {command}' will ask for {_OPTION} {loss['clients']}.") if loss["asks"] else lines


def first_of(shown: Sequence[str], total: int, *, unknown: bool = False) -> str:
    """The words in `shown`, and how many there are beside them of `total`; `unknown`: there are more than `total`."""
    more = total - min(len(shown), _SHOWN)
    told = ", ".join(shown[:_SHOWN])
    return f"{told} and {'more than ' if unknown else ''}{more} more" if more else told


def command_again(arguments: Sequence[str], clients: int) -> str:
    """The command line, with the option that accepts the loss of this number of clients; a token in it is replaced by a
    word.
    """
    kept: list[str] = []
    rest = iter(arguments)
    for each in rest:
        option, _, value = each.partition("=")
        if each == "--":
            return _command([*kept, _OPTION, str(clients), each, *rest])
        if option == _OPTION or option in _SECRETS:
            if not value:
                next(rest, None)
            if option in _SECRETS:
                kept += [option, "TOKEN"]
        else:
            kept.append(each)
    return _command([*kept, _OPTION, str(clients)])


def _command(words: Sequence[str]) -> str:
    return shlex.join(["xdsctl", *words])
