"""`inspect`: what a data plane says of itself, and with `--report` how that compares with what Parley believes."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from xdscore.lazily import Lazily
from xdscore.said import Said, Word
from xdsctl.api import segment
from xdsctl.commands.clients import client_id
from xdsctl.commands.dataplane import EXTRA_NEEDED
from xdsctl.envoy_dump import word_of_dump
from xdsctl.exits import Exit, JsonObject, NoAnswerError, Outcome, UsageError
from xdsctl.follow import seconds_of
from xdsctl.output import Column, Format, ago
from xdsctl.session import Session, command, session_of

if TYPE_CHECKING:
    import httpx
else:
    httpx = Lazily("httpx")

_MAX_BYTES: Final = 64 * 1024 * 1024
_DUMP: Final = "/config_dump?include_eds"

_SAID: Final = (
    Column("TYPE", lambda row: row["type"]),
    Column("NAME", lambda row: row["name"]),
    Column("STATE", lambda row: row["state"]),
    Column("VERSION", lambda row: row["version"] or row["endpoints"]),
    Column("ERROR", lambda row: row["error"]),
    Column("SAYS", lambda row: row["version_info"], wide=True),
)
_DIFFERENCES: Final = (
    Column("TYPE", lambda row: row["type"]),
    Column("NAME", lambda row: row["name"]),
    Column("SINCE", lambda row: ago(row["since"])),
    Column("DIFFERENCE", lambda row: row["sentence"]),
    Column("ERROR", lambda row: row["error"]),
)


HELP_POSITION: Final = 160


def register(app: typer.Typer) -> None:
    """Add the command `inspect`."""
    app.command()(inspect)


@command
def inspect(  # noqa: PLR0913 - each is an option of the command line
    ctx: typer.Context,
    *,
    envoy_admin: Annotated[
        str, typer.Option("--envoy-admin", metavar="URL", help="Envoy's admin interface: http://127.0.0.1:9901.")
    ] = "",
    csds: Annotated[str, typer.Option("--csds", metavar="HOST:PORT", help="A gRPC process's CSDS service.")] = "",
    node_id: Annotated[
        str, typer.Option("--node-id", help="Whose word it is, where that is not clear or not what Parley sees.")
    ] = "",
    report: Annotated[bool, typer.Option("--report", help="Let Parley compare it with what it believes.")] = False,
    ca: Annotated[str, typer.Option("--ca", metavar="FILE", help="With --csds: who signs its certificate.")] = "",
    cert: Annotated[str, typer.Option("--cert", metavar="FILE", help="With --csds: our certificate.")] = "",
    key: Annotated[str, typer.Option("--key", metavar="FILE", help="With --csds: our key.")] = "",
    timeout: Annotated[str, typer.Option(help="How long to wait for its answer.")] = "10s",
) -> Outcome:
    """Read what a data plane says it has.

    From Envoy's admin interface or a CSDS service; a line for each name. With --report it is held against what Parley
    believes, a line for each difference. No content leaves this machine, only names, states, versions and errors.

    Exit status 1 when they differ, 3 when the data plane does not answer.
    """
    session = session_of(ctx)
    seconds = seconds_of(timeout, "--timeout")
    if bool(envoy_admin) == bool(csds):
        raise UsageError("Say where to look: --envoy-admin URL, or --csds HOST:PORT.")
    word = _envoy(envoy_admin, node_id, seconds) if envoy_admin else _csds(csds, (ca, cert, key), node_id, seconds)
    if report:
        return _reported(session, word)
    session.printer.rows(map(_row, word.names), _SAID, lambda row: f"{row['type']}/{row['name']}")
    return Outcome(Exit.DONE, f"{len(word.names)} names of '{word.node_id}'.")


def _envoy(address: str, node_id: str, seconds: float) -> Word:
    """Everything that an Envoy says it has, asked at its admin address. `node_id`, if given, replaces the one that it
    says. Raises UsageError and NoAnswerError.
    """
    try:
        with (
            httpx.Client(timeout=seconds, follow_redirects=False, trust_env=False) as http,
            http.stream("GET", f"{address.rstrip('/')}{_DUMP}") as answer,
        ):
            answer.raise_for_status()
            return word_of_dump(_json(b"".join(_bounded(answer))), node_id=node_id)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UsageError(f"--envoy-admin takes the URL of an admin interface: {error}") from error
    except httpx.HTTPError as error:
        raise NoAnswerError(f"{address} does not answer as Envoy's admin interface: {error}") from error


def _bounded(answer: "httpx.Response") -> Iterator[bytes]:
    left = _MAX_BYTES
    for part in answer.iter_bytes():
        left -= len(part)
        if left < 0:
            raise NoAnswerError(f"The dump is larger than {_MAX_BYTES // 2**20} MiB, which is as much as is read.")
        yield part


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise NoAnswerError("The answer is not JSON. Is this the address of Envoy's admin interface?") from error


def _csds(address: str, files: tuple[str, str, str], node_id: str, seconds: float) -> Word:
    """Everything that the client with this CSDS service says it has. `files`: those of CA, certificate and key for TLS,
    each empty without. Raises UsageError and NoAnswerError.
    """
    try:
        from xdsctl import client_status  # noqa: PLC0415 - an extra: an Envoy is read without grpcio
    except ModuleNotFoundError as error:
        raise UsageError(EXTRA_NEEDED.format(error=error)) from error
    response = client_status.status_of(address, client_status.Tls(*files), seconds=seconds)
    return client_status.word_of_status(response, node_id=node_id)


def _reported(session: Session, word: Word) -> Outcome:
    if not word.node_id:
        raise UsageError("The data plane does not say its node id. Name it with --node-id.")
    identity = client_id(session, word.node_id)
    body = {"source": word.source.value, "types": sorted(word.types), "names": list(map(_row, word.names))}
    found: JsonObject = session.api.post(f"/clients/{segment(identity)}/said", body)
    if session.printer.form in {Format.JSON, Format.YAML}:
        session.printer.data(found)
    elif found["differences"]:
        session.printer.rows(found["differences"], _DIFFERENCES, lambda row: f"{row['type']}/{row['name']}")
    report = found["report"]
    unsure = f"; {report['unsure']} more cannot be compared yet" if report["unsure"] else ""
    return Outcome(
        Exit.NO if report["differing"] else Exit.DONE,
        f"'{word.node_id}' and Parley agree in {report['agreeing']} of {report['compared']} names{unsure}.",
    )


def _row(said: Said) -> JsonObject:
    return {
        "type": said.type,
        "name": said.name,
        "state": said.state.value,
        "held": said.held,
        "version": said.version,
        "version_info": said.version_info,
        "endpoints": said.endpoints,
        "error": said.error,
    }
