"""`watch`, `resolve` and `doctor --as-client`: what a data plane would see, from a client that speaks xDS itself."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from xdscore.lazily import Lazily
from xdsctl.exits import Exit, JsonObject, Outcome, UsageError
from xdsctl.follow import seconds_of
from xdsctl.output import Column, Format, harmless
from xdsctl.session import command, session_of

if TYPE_CHECKING:
    import asyncio

    from rich import live as screen
    from rich import table as tables
else:
    asyncio, screen, tables = Lazily("asyncio"), Lazily("rich.live"), Lazily("rich.table")

Connect = Callable[[], Any]

EXTRA_NEEDED: Final = "This command speaks gRPC and needs more: pip install 'xdsctl[client]' ({error})."

_COLUMNS: Final = (
    Column("TYPE", lambda row: row["type"]),
    Column("NAME", lambda row: row["name"]),
    Column("STATE", lambda row: row["state"]),
    Column("VERSION", lambda row: row["version"]),
    Column("ERROR", lambda row: row["error"]),
)


HELP_POSITION: Final = 150


def register(app: typer.Typer) -> None:
    """Add the commands that speak xDS to a server."""
    app.command()(watch)
    app.command()(resolve)


def connection_of(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    bootstrap: Annotated[str, typer.Option(help="A bootstrap file of gRPC; else GRPC_XDS_BOOTSTRAP says which.")] = "",
    ads: Annotated[str, typer.Option("--ads", metavar="HOST:PORT", help="The server, in place of a bootstrap.")] = "",
    node: Annotated[str, typer.Option("--node", help="The node id to connect as, with --ads.")] = "xdsctl",
    node_cluster: Annotated[str, typer.Option("--node-cluster", help="The node's cluster, with --ads.")] = "",
    ca: Annotated[
        str, typer.Option("--ca", metavar="FILE", help="Who signs the server's certificate; means TLS.")
    ] = "",
    cert: Annotated[str, typer.Option("--cert", metavar="FILE", help="The client's certificate.")] = "",
    key: Annotated[str, typer.Option("--key", metavar="FILE", help="The client's key.")] = "",
    token_file: Annotated[str, typer.Option("--token-file", metavar="FILE", help="A data plane's bearer token.")] = "",
    delta: Annotated[bool, typer.Option("--delta", help="Speak the delta variant.")] = False,
) -> Any:
    """The connection that the common options of xDS commands describe. Raises UsageError when grpcio is not
    installed.
    """
    return loaded().Connection(bootstrap, ads, node, node_cluster, ca, cert, key, token_file, delta)


def speaks_xds(work: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Turn a function into a command that has the options of `connection_of` as well. The function is called with
    `connect`, which makes the connection they describe.
    """
    own, shared = inspect.signature(work).parameters, inspect.signature(connection_of).parameters
    options = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shared.values()]

    @wraps(work)
    def run(ctx: typer.Context, **given: Any) -> Outcome:
        connect = partial(connection_of, **{name: given.pop(name) for name in shared})
        return work(ctx, connect=connect, **given)

    # Typer reads a command's options from these.
    vars(run)["__signature__"] = inspect.Signature([*(own[name] for name in own if name != "connect"), *options])
    run.__annotations__ = {**work.__annotations__, **connection_of.__annotations__}
    return run


@command
@speaks_xds
def watch(
    ctx: typer.Context,
    type_: Annotated[str, typer.Argument(metavar="TYPE", help="A type such as cluster, or a type URL.")],
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME…", help="What to watch; '*' (cluster, listener) and xdstp://…/* are collections."),
    ],
    *,
    connect: Connect,
    once: Annotated[bool, typer.Option("--once", help="End when each name has an answer.")] = False,
    timeout: Annotated[str, typer.Option(help="End after this time.")] = "1h",
    nack: Annotated[
        list[str] | None, typer.Option("--nack", metavar="NAME=TEXT", help="Refuse this resource: a drill.")
    ] = None,
) -> Outcome:
    """Watch resources as a data plane does.

    States, versions and errors, while they change: a table that changes, or where standard output is no terminal a line
    for each change. Exit status 1 when a name ends in an error, 3 when no server answers, 5 when time ran out before
    all had an answer.
    """
    session = session_of(ctx)
    dataplane, connection = loaded(), connect()
    kind = dataplane.refusing(dataplane.type_of(type_), dataplane.nacks_of(nack or []))
    limit_s = seconds_of(timeout, "--timeout")
    for_people = session.printer.form in {Format.TABLE, Format.WIDE}
    found = None
    # Whoever watches by eye ends it by hand.
    with suppress(KeyboardInterrupt), screen.Live(auto_refresh=False, transient=True) as live:
        in_lines = for_people and not once and not live.console.is_terminal
        lines = _Lines(session.printer.text)

        def show(rows: Sequence[JsonObject]) -> None:
            if in_lines:
                lines(rows)
            elif for_people and live.console.is_terminal:
                live.update(_table(rows), refresh=True)

        found = asyncio.run(dataplane.watch(connection, kind, names, show=show, seconds=limit_s, once=once))
    if found is None:
        return Outcome()
    if not in_lines:
        session.printer.rows(found.rows, _COLUMNS, lambda row: f"{row['type']}/{row['name']}")
    return _watched(found)


class _Lines:
    """Prints a line for each row that differs from how it was printed last."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._told: dict[str, JsonObject] = {}

    def __call__(self, rows: Sequence[JsonObject]) -> None:
        for row in rows:
            if row != self._told.get(row["name"]):
                self._told[row["name"]] = row
                self._write("  ".join(harmless(str(column.read(row) or "-")) for column in _COLUMNS))


def _watched(found: Any) -> Outcome:
    # A member that is gone is a fact, and no error.
    wrong = sum(bool(row["error"]) and row["state"] != "gone" for row in found.rows)
    if found.unreachable:
        return Outcome(Exit.NO_ANSWER, "No server answers.")
    if found.undecided:
        return Outcome(Exit.UNDECIDED, "Time ran out before every name had an answer.")
    return Outcome(Exit.NO, f"{wrong} of {len(found.rows)} are in error.") if wrong else Outcome()


@command
@speaks_xds
def resolve(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="xds:///SERVICE, as a gRPC channel has it.")],
    *,
    connect: Connect,
    timeout: Annotated[str, typer.Option(help="How long to wait for all of it.")] = "20s",
) -> Outcome:
    """Follow a gRPC target to its endpoints.

    Through listener, route and clusters. Exit status 1 when something on the way is in error, 3 when no server
    answers, 5 when time ran out.
    """
    session = session_of(ctx)
    dataplane, connection = loaded(), connect()
    found = asyncio.run(dataplane.resolve(connection, target, seconds_of(timeout, "--timeout")))
    if found is None:
        return Outcome(Exit.UNDECIDED, "Time ran out before the whole tree was there.")
    if isinstance(found, dataplane.Status):
        return Outcome(Exit.NO, found.message)
    tree = dataplane.config_json(found)
    session.printer.document(tree, lambda: _tree_text(tree))
    broken = [name for name, each in tree["clusters"].items() if "error" in each or each.get("endpoints") == []]
    return Outcome(Exit.NO, f"No endpoints: {', '.join(broken)}.") if broken else Outcome()


def loaded() -> Any:
    """The module `xdsctl.dataplane`, imported when it is first needed. Raises UsageError where grpcio is
    not installed.
    """
    try:
        from xdsctl import dataplane  # noqa: PLC0415 - an extra: the other commands do without grpcio
    except ModuleNotFoundError as error:
        raise UsageError(EXTRA_NEEDED.format(error=error)) from error
    return dataplane


def _table(rows: Sequence[JsonObject]) -> "tables.Table":
    table = tables.Table(*(column.title for column in _COLUMNS), box=None)
    for row in rows:
        table.add_row(*(harmless(str(column.read(row))) for column in _COLUMNS))
    return table


def _tree_text(tree: JsonObject) -> str:
    lines = [f"{what}  {tree[what]}" for what in ("listener", "route", "virtual_host")]
    for name, cluster in tree["clusters"].items():
        if "error" in cluster:
            lines.append(f"cluster  {name}  {cluster['error']}")
        elif "leaves" in cluster:
            lines.append(f"cluster  {name}  aggregate of {', '.join(cluster['leaves'])}")
        else:
            lines.append(f"cluster  {name}  {', '.join(cluster['endpoints']) or 'no endpoints'}  ({cluster['note']})")
    return "\n".join(lines)
