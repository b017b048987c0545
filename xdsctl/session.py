"""What every command has at hand: the printer and the server; and how its outcome becomes an exit status."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec

import typer

from xdscore.ending import unread_dropped
from xdsctl.api import Api
from xdsctl.exits import CommandError, Exit, Outcome
from xdsctl.nearest import question_about
from xdsctl.output import Printer
from xdsctl.settings import Context, context_chosen

P = ParamSpec("P")
# An unknown type in a query is refused as a mistake.
_NAMES_NOTHING: Final = frozenset({Exit.NOT_THERE, Exit.NO})


class Session:
    """One run of xdsctl: its options, its printer and its connection to the server."""

    def __init__(self, printer: Printer, options: Context, context_name: str, arguments: tuple[str, ...] = ()) -> None:
        self.printer = printer
        # As they were typed, to say how to do it again.
        self.arguments = arguments
        # What the command line and the variables say, without any context.
        self.options = options
        self._context_name = context_name
        self._api: Api | None = None

    @property
    def api(self) -> Api:
        """The API of the chosen server. Raises UsageError when no server is named."""
        if self._api is None:
            self._api = Api(self.context, self.printer.say)
        return self._api

    def question_about(self, error: CommandError) -> str:
        """What to ask about a request that named something that is not there: ` Did you mean 'pay'?`; mostly empty."""
        return question_about(self.api, error) if error.asked and error.exit_status in _NAMES_NOTHING else ""

    @property
    def context(self) -> Context:
        """The server, token and environment of this run. Raises UsageError when no server is named."""
        return context_chosen(self.options, self._context_name)


def command(work: Callable[Concatenate[typer.Context, P], Outcome | None]) -> Callable[..., None]:
    """Turn a function into a command: its outcome, or the CommandError that it raises, is printed and becomes the exit
    status.
    """

    @wraps(work)
    def run(ctx: typer.Context, *args: P.args, **kwargs: P.kwargs) -> None:
        session = session_of(ctx)
        try:
            outcome = work(ctx, *args, **kwargs) or Outcome()
            session.printer.outcome(outcome)
        except CommandError as error:
            error.text += session.question_about(error)
            session.printer.error(error)
            raise typer.Exit(error.exit_status) from error
        except BrokenPipeError as error:
            unread_dropped()
            raise typer.Exit(Exit.DONE) from error
        raise typer.Exit(outcome.exit_status)

    return run


def session_of(ctx: typer.Context) -> Session:
    """The session (options, printer, API) of this run of xdsctl."""
    found = ctx.find_object(Session)
    if found is None:
        raise RuntimeError("a command outside of xdsctl's root")
    return found
