"""`doctor`: can this machine work with that server, and if not, what to do about it."""

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer

from xdscore.build import BUILD_VERSION
from xdsctl.api import Api
from xdsctl.commands.dataplane import Connect, loaded, speaks_xds
from xdsctl.commands.version import doubt, server_version
from xdsctl.exits import CommandError, DistrustError, Exit, JsonObject, NoAnswerError, Outcome
from xdsctl.kinds import resource_named
from xdsctl.output import Column
from xdsctl.session import Session, command, session_of
from xdsctl.trust import certificate_of, left_of

if TYPE_CHECKING:
    import httpx

_API_VERSION: Final = "1"
_SKEW_S: Final = 5.0  # more than this and "how long ago" is a lie; certificates start to matter at minutes
_LATER: Final = "Changes are published all the same, only later; look at this process."
_UNFIT: Final = "Mend it where that process runs and restart it; its log and the console's front page say which it is."
_RENEW: Final = timedelta(days=14)
_CONNECT_S: Final = 3.0
_NODE_ID: Final = "xdsctl"
_OK: Final = "ok"
_BAD: Final = "FAIL"
_ODD: Final = "warn"

_COLUMNS: Final = (
    Column("", lambda row: row["state"]),
    Column("CHECK", lambda row: row["check"]),
    Column("FOUND", lambda row: row["found"]),
    Column("DO", lambda row: row["fix"]),
)


HELP_POSITION: Final = 170


def register(app: typer.Typer) -> None:
    """Add the command `doctor`."""
    app.command()(doctor)


@command
@speaks_xds
def doctor(
    ctx: typer.Context,
    *,
    connect: Connect,
    as_client: Annotated[bool, typer.Option("--as-client", help="Look from a data plane's place, over xDS.")] = False,
    resource: Annotated[
        list[str] | None, typer.Option("--resource", metavar="TYPE/NAME", help="With --as-client: ask for it, too.")
    ] = None,
) -> Outcome:
    """Check server, certificate, clocks, health, token and its rights, environment, and the way to ADS.

    Exit status 1 when one fails, 3 when the server does not answer, 8 when it is not trusted.

    With --as-client: the bootstrap, the identity, the stream, and what a client would be told of resources.
    """
    session = session_of(ctx)
    rows = list(_client_checks(connect, resource or []) if as_client else _checks(session))
    session.printer.rows(rows, _COLUMNS, lambda row: str(row["check"]))
    failed = [row for row in rows if row["state"] == _BAD]
    if any(row["check"] in {"server", "stream"} for row in failed):
        return Outcome(Exit.NO_ANSWER, "The server does not answer.")
    if untrusted := next((row["found"] for row in failed if row["check"] == "certificate"), ""):
        return Outcome(Exit.NOT_ACCEPTED, f"{untrusted} Nothing was sent.")
    return Outcome(Exit.NO if failed else Exit.DONE, f"{len(failed)} of {len(rows)} checks failed." if failed else "")


def _client_checks(connect: Connect, resources: list[str]) -> Iterator[JsonObject]:
    dataplane = loaded()
    wanted = []
    for each in resources:
        resource = resource_named(each, "--resource")
        wanted.append((dataplane.type_of(resource["type"]), resource["name"]))
    checks: Iterator[JsonObject] = dataplane.checks(connect(), wanted)
    return checks


def _checks(session: Session) -> Iterator[JsonObject]:
    context = session.context
    api = session.api
    try:
        alive = api.probe("/healthz")
    except DistrustError as error:
        yield _row(_BAD, "certificate", error.text, "Name who signed it with --cacert, or renew it.")
        return
    except NoAnswerError as error:
        yield _row(_BAD, "server", error.text, "Start it, or name another with --server.")
        return
    found = f"{context.server} answers"
    if alive.status_code == HTTPStatus.OK:
        yield _row(_OK, "server", found, "")
    else:
        # A proxy may keep the path to itself; the rest shows whether a Parley is behind it.
        away = alive.is_server_error or alive.status_code == HTTPStatus.BAD_REQUEST
        found = f"{found} {alive.status_code} {alive.reason_phrase} to /healthz"
        fix = "Look whether a Parley is there, under the name of its PARLEY_PUBLIC_URL."
        yield _row(_BAD if away else _ODD, "server", found, fix)
        if away:
            return
    if urlsplit(context.server).scheme == "https":
        yield _certificate(context.server)
    yield _clocks(alive)
    yield _api_version(alive)
    yield _version(server_version(api))
    yield from _health(api)
    yield _token(api)
    yield _environment(api)
    yield _ads(api)


def _certificate(server: str) -> JsonObject:
    certificate = certificate_of(server)
    if certificate is None:
        return _row(_OK, "certificate", "trusted", "")
    left = left_of(certificate)
    found = f"trusted, signed by '{certificate.issuer.rfc4514_string()}', good for {left.days} days"
    if left < _RENEW:
        return _row(_ODD, "certificate", found, "Renew it before nobody trusts it any more.")
    return _row(_OK, "certificate", found, "")


def _clocks(response: "httpx.Response") -> JsonObject:
    try:
        theirs = parsedate_to_datetime(response.headers["Date"])
    except (KeyError, ValueError):
        return _row(_ODD, "clocks", "the server does not say what time it is", "Look at the proxy in front of it.")
    # A Date counts whole seconds.
    skew = max(0.0, abs((datetime.now(UTC) - theirs).total_seconds()) - 1)
    found = f"{skew:.0f} s apart"
    if skew > _SKEW_S:
        return _row(_ODD, "clocks", found, "Set both by NTP: times and certificates are judged by them.")
    return _row(_OK, "clocks", found, "")


def _api_version(response: "httpx.Response") -> JsonObject:
    theirs = response.headers.get("API-Version", _API_VERSION)
    if theirs != _API_VERSION:
        return _row(_BAD, "API", f"the server speaks version {theirs} of the API", "Install the xdsctl of its release.")
    return _row(_OK, "API", f"version {theirs}", "")


def _version(server: str) -> JsonObject:
    found = f"xdsctl {BUILD_VERSION}, server {server or 'unknown'}"
    return _row(_ODD if doubt(server) else _OK, "version", found, doubt(server))


def _health(api: Api) -> Iterator[JsonObject]:
    ready = api.probe("/readyz")
    lines = ready.text.strip().splitlines()
    if ready.status_code != HTTPStatus.OK:
        for line in lines or [str(ready.status_code)]:
            yield _row(_BAD, "ready", line, "The server's log says more.")
        return
    for line in lines[1:]:
        what, _, state = line.partition(": ")
        if what == "version":
            continue
        good = state == _OK
        fix = _LATER if what in {"broker", "worker"} else _UNFIT
        yield _row(_OK if good else _ODD, what, state, "" if good else fix)


def _token(api: Api) -> JsonObject:
    if not api.context.token:
        return _row(_BAD, "token", "none is given", "Set XDSCTL_TOKEN, or run 'xdsctl login'.")
    try:
        api.get("/environments", limit=1)
    except CommandError as error:
        return _row(_BAD, "token", error.text, "Make one in the console, or ask an administrator.")
    return _row(_OK, "token", f"accepted; {_rights(api)}", "")


def _rights(api: Api) -> str:
    """A sentence about what the token may do in the environment, found out by a dry run of an empty apply."""
    where = f"in '{api.context.environment}'"
    try:
        api.post(api.environment("/apply"), {"resources": []}, dry_run=True)
    except CommandError as error:
        if (error.document or {}).get("status") == HTTPStatus.FORBIDDEN:
            return f"it may look, and apply nothing, {where}"
        if error.exit_status is not Exit.CONFLICT:  # held, or frozen: who may not is told so first
            return f"it is not known what it may do {where}"
    return f"it may apply {where}"


def _environment(api: Api) -> JsonObject:
    try:
        found = api.get(api.environment())
    except CommandError as error:
        return _row(_BAD, "environment", error.text, "Name another with --environment; 'xdsctl get' needs one.")
    if found["hold"]:
        return _row(_ODD, "environment", f"'{found['key']}' is on hold: {found['hold']}", "Release the hold to apply.")
    behind = found["generation"] - found["built_generation"]
    told = f"'{found['key']}' at epoch {found['epoch']}" + (f", {behind} changes to build" if behind else "")
    return _row(_OK, "environment", told, "")


def _ads(api: Api) -> JsonObject:
    """The check whether this machine can reach the ADS address that bootstraps have. A failure need not mean much:
    clients may be in another network.
    """
    fix = "Data planes must reach it from where they are: PARLEY_ADS_PUBLIC_ADDRESS names it."
    try:
        parameters = {"environment": api.context.environment, "node_id": _NODE_ID}
        tree = api.request("GET", "/bootstrap/grpc", parameters=parameters).json()
        address = urlsplit(f"//{tree['xds_servers'][0]['server_uri']}")
        place = (address.hostname or "", address.port or 0)
    except (CommandError, ValueError, LookupError, TypeError) as error:
        return _row(_ODD, "ads", f"its address is not known: {error}", "'xdsctl doctor --as-client' takes it from you.")
    try:
        with socket.create_connection(place, timeout=_CONNECT_S):
            return _row(_OK, "ads", f"{address.netloc} takes connections", "")
    except OSError as error:
        return _row(_ODD, "ads", f"{address.netloc} cannot be reached from here: {error.strerror or error}", fix)


def _row(state: str, check: str, found: str, fix: str) -> JsonObject:
    return {"state": state, "check": check, "found": found, "fix": fix}
