"""All commands in one tree, and the options that every one of them takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from xdscore.build import BUILD_VERSION
from xdscore.modules import modules_of
from xdsctl import commands
from xdsctl.exits import Exit
from xdsctl.kinds import command_words
from xdsctl.nearest import did_you_mean
from xdsctl.output import Format, Printer
from xdsctl.session import Session
from xdsctl.settings import CACERT_VARIABLE, ENVIRONMENT_VARIABLE, SERVER_VARIABLE, TOKEN_VARIABLE, Context

EPILOG = (
    "To begin: 'xdsctl context set NAME --url URL', 'xdsctl login', 'xdsctl doctor'. In a pipeline the variables "
    "XDSCTL_SERVER and XDSCTL_TOKEN are enough. A server's first token is in the file admin.token of its home; "
    "'xdsctl create token', or 'Tokens' in its console, makes others.\n\n"
    "A change, from file to fleet: 'xdsctl validate -f DIR', 'xdsctl diff -f DIR', 'xdsctl apply -f DIR -m WHY "
    "--wait', and back: 'xdsctl undo CHANGE --reason WHY' for that change alone, 'xdsctl rollout history' and 'xdsctl "
    "rollout undo --to EPOCH --reason WHY' for all resources.\n\n"
    # After \b the lines stay as they are.
    "\b\nExit status:\n" + "\n".join(f"  {status.value}  {status.meaning}" for status in Exit)
)

_ARGUMENTS = "xdsctl.arguments"
_ENVIRONMENT_HELP = "The environment; the context's, else 'default'."
_CACERT_HELP = "Who signs the server's certificate, as PEM, where this machine does not trust them."
_CONTEXT_HELP = "A context of 'xdsctl context list', instead of the one in use."


class _GlobalOptions(TyperGroup):
    """A group of commands that takes the common options anywhere on the command line: `xdsctl get cluster -o json`."""

    _WITH_VALUE = frozenset({"--server", "--token", "--cacert", "--context", "--environment", "-e", "--output", "-o"})
    _FLAGS = frozenset({"--no-color", "--quiet", "-q"})

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the arguments call."""
        with self._suggesting():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that these arguments call; its name may have a second word, as in `get audit`."""
        kinds = [name.partition(" ")[2] for name in self.commands if name.startswith(f"{args[0]} ")]
        words = command_words(args, self.commands)
        if kinds and words[0] not in self.commands:
            ctx.fail(f"'{args[0]}' needs a kind: {', '.join(kinds)}. 'xdsctl {args[0]} {kinds[0]} --help' says more.")
        return super().resolve_command(ctx, words)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands. While a shell completes, only those of one word, because it completes one word at
        a time.
        """
        names = super().list_commands(ctx)
        return [name for name in names if " " not in name] if ctx.resilient_parsing else names

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move the common options to the front of the arguments, then parse them."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        ours: list[str] = []
        theirs: list[str] = []
        rest = iter(args)
        for each in rest:
            if each == "--":
                theirs += [each, *rest]
            elif each in self._FLAGS or (each.partition("=")[0] in self._WITH_VALUE and "=" in each):
                ours.append(each)
            elif each in self._WITH_VALUE:
                ours += [each, *_next(rest)]
            else:
                theirs.append(each)
        with self._suggesting():
            return super().parse_args(ctx, ours + theirs)

    @contextmanager
    def _suggesting(self) -> Iterator[None]:
        """A block in which an option that a command does not have is answered with those that are like it."""
        try:
            yield
        except Exception as error:
            # The class of this error is another one in each version of Typer.
            if wrong := getattr(error, "option_name", None):
                own = {option for each in vars(error)["ctx"].command.params for option in each.opts}
                vars(error)["message"] += f".{did_you_mean(wrong, own | self._WITH_VALUE | self._FLAGS)}"
                vars(error)["possibilities"] = None
            raise


def _next(rest: Any) -> list[str]:
    value = next(rest, None)
    return [] if value is None else [value]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"xdsctl {BUILD_VERSION}")
        raise typer.Exit


app = typer.Typer(
    name="xdsctl",
    cls=_GlobalOptions,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=EPILOG,
    help="Look at, change and understand what a Parley control plane serves.",
)


@app.callback(epilog=EPILOG)
def root(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    ctx: typer.Context,
    server: Annotated[str, typer.Option(help="The server's address.", envvar=SERVER_VARIABLE, show_default=False)] = "",
    token: Annotated[
        str, typer.Option(help="An API token; better in the variable.", envvar=TOKEN_VARIABLE, show_default=False)
    ] = "",
    environment: Annotated[
        str,
        typer.Option(
            "--environment",
            "-e",
            help=_ENVIRONMENT_HELP,
            envvar=ENVIRONMENT_VARIABLE,
            show_default=False,
        ),
    ] = "",
    cacert: Annotated[
        str, typer.Option(metavar="FILE", help=_CACERT_HELP, envvar=CACERT_VARIABLE, show_default=False)
    ] = "",
    context: Annotated[str, typer.Option(help=_CONTEXT_HELP, show_default=False)] = "",
    output: Annotated[Format, typer.Option("--output", "-o", help="How data is written.")] = Format.TABLE,
    no_color: Annotated[bool, typer.Option("--no-color", help="Plain text. NO_COLOR says the same.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only data and errors.")] = False,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", help="Show the version of xdsctl.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Look at, change and understand what a Parley control plane serves.

    These options may stand anywhere on the command line.
    """
    printer = Printer(output, color=not no_color, quiet=quiet)
    ctx.obj = Session(printer, Context(server, token, environment, cacert), context, ctx.meta[_ARGUMENTS])


for _module in sorted(modules_of(commands), key=lambda module: int(module.HELP_POSITION)):
    _module.register(app)
