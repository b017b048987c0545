"""Tokens of the API and of data planes: listed, made, revoked. What makes one is told once, and here on one line."""

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote, unquote

import typer

from xdsctl.exits import CommandError, Exit, JsonObject, NotThereError, Outcome, UsageError
from xdsctl.kinds import CLIENT_TOKEN, TOKEN
from xdsctl.output import Column, Format, ago
from xdsctl.session import Session, command, session_of
from xdsctl.times import time_to_come

TokenId = Annotated[int, typer.Argument(metavar="ID", min=1, help="Its id, as 'get' lists it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed where nobody sits at a terminal.")]
Expires = Annotated[str, typer.Option(help="When it ends: 90d, 12h, or a time; never without it.", show_default=False)]
Out = Annotated[
    str,
    typer.Option(help="Write the token to this new file, which only you can read, and not to the screen."),
]
_OneId = Annotated[int, typer.Argument(metavar="ID", min=0, help="One of them.", show_default=False)]
_All = Annotated[bool, typer.Option("--all", help="Those that have ended, too.")]

_SCOPE: Final = re.compile(r"([a-z-]+)(?:@(.+))?")
_PLAIN: Final = "*.:@?=&"  # what is written as it is in a limit
_SHOWN: Final = 5
_PATHS: Final = {TOKEN: "/tokens", CLIENT_TOKEN: "/client-tokens"}


def _scopes(row: JsonObject) -> str:
    return ", ".join(f"{each['role']}@{each['environment'] or '*'}{_limits(each)}" for each in row["scopes"])


def _limits(scope: JsonObject) -> str:
    """The limits of a scope, as `--scope` takes them."""
    owner = [scope["owner"]] if "owner" in scope else []
    given = {"owner": owner, "types": scope.get("types", []), "names": scope.get("names", [])}
    return "".join(
        f"/{key}:{'+'.join(quote(each, safe=_PLAIN) for each in values)}" for key, values in given.items() if values
    )


def _ended(row: JsonObject) -> str:
    """Why the token is not valid any more: revoked or expired; empty while it is valid."""
    if row["revoked_at"]:
        return "revoked"
    if row["expires_at"] and datetime.fromisoformat(row["expires_at"]) <= datetime.now(UTC):
        return "expired"
    return ""


_TOKEN_COLUMNS: Final = (
    Column("ID", lambda row: row["id"]),
    Column("NAME", lambda row: row["name"]),
    Column("KIND", lambda row: row["kind"]),
    Column("OWNER", lambda row: row["owner"]),
    Column("SCOPES", _scopes),
    Column("EXPIRES", lambda row: row["expires_at"] or "never"),
    Column("USED", lambda row: row["last_used_on"] or "never"),
    Column("STATE", lambda row: _ended(row) or "good"),
    Column("BEGINS", lambda row: row["prefix"], wide=True),
    Column("MADE BY", lambda row: row["created_by"], wide=True),
)
_CLIENT_TOKEN_COLUMNS: Final = (
    Column("ID", lambda row: row["id"]),
    Column("SUBJECT", lambda row: row["subject"]),
    Column("ENVIRONMENT", lambda row: row["environment"] or "any"),
    Column("EXPIRES", lambda row: row["expires_at"] or "never"),
    Column("STATE", lambda row: _ended(row) or ("good" if row["usable"] else "leads nowhere")),
    Column("ENDS IN", lambda row: row["hint"], wide=True),
    Column("MADE BY", lambda row: row["created_by"], wide=True),
    Column("MADE", lambda row: ago(row["created_at"]), wide=True),
)


HELP_POSITION: Final = 120


def register(app: typer.Typer) -> None:
    """Add the commands about tokens."""
    app.command("get token")(get_tokens)
    app.command("get client-token")(get_client_tokens)
    app.command("create token")(create_token)
    app.command("create client-token")(create_client_token)
    app.command("delete token")(delete_token)
    app.command("delete client-token")(delete_client_token)


@command
def get_tokens(ctx: typer.Context, token: _OneId = 0, everything: _All = False) -> None:
    """List the API tokens you may administer and your own, newest first, or print one. What makes one is not kept."""
    _get(session_of(ctx), TOKEN, token, _TOKEN_COLUMNS, everything=everything)


@command
def get_client_tokens(
    ctx: typer.Context,
    token: _OneId = 0,
    subject: Annotated[str, typer.Option(help="Only those of this identity.", show_default=False)] = "",
    everything: _All = False,
) -> None:
    """List the tokens of data planes you may administer, newest first, or print one."""
    _get(session_of(ctx), CLIENT_TOKEN, token, _CLIENT_TOKEN_COLUMNS, everything=everything, subject=subject)


@command
def create_token(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people call it.")],
    scope: Annotated[
        list[str],
        typer.Option(
            help="What it may: ROLE in the chosen environment, ROLE@ENVIRONMENT, or 'ROLE@*' in all. May be repeated. "
            "Roles: viewer, reporter, rehearser, editor, access-editor, operator, admin. Behind viewer and editor, "
            "/owner:OWNER, /types:TYPE+TYPE and /names:NAME+NAME limit them to some resources, as in "
            "'editor@prod/types:cluster+route/names:pay*'; a slash or plus in a name is %2F or %2B."
        ),
    ],
    kind: Annotated[
        str, typer.Option(help="personal: yours; service: nobody's. The server decides without it.", show_default=False)
    ] = "",
    expires: Expires = "",
    out: Out = "",
) -> Outcome:
    """Make an API token. Standard output has it, alone on one line, this once.

    You need the role admin wherever it may anything.
    """
    session = session_of(ctx)
    scopes = [_scope(each, session.context.environment) for each in scope]
    body: JsonObject = {"name": name, "scopes": scopes, "expires_at": time_to_come(expires)}
    if kind:
        body["kind"] = kind
    return _made(session, TOKEN, body, out)


@command
def create_client_token(
    ctx: typer.Context,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="The identity of the data planes that show it.")],
    anywhere: Annotated[
        bool, typer.Option("--any-environment", help="Good for every environment, not for the chosen one alone.")
    ] = False,
    expires: Expires = "",
    out: Out = "",
) -> Outcome:
    """Make a token for data planes. Standard output has it, alone on one line, this once.

    It is good for the environment that -e or the context names. You need the role admin there.
    """
    session = session_of(ctx)
    environment = None if anywhere else session.context.environment
    return _made(
        session,
        CLIENT_TOKEN,
        {"subject": subject, "environment": environment, "expires_at": time_to_come(expires)},
        out,
    )


@command
def delete_token(ctx: typer.Context, token: TokenId, yes: Yes = False) -> Outcome:
    """Revoke an API token, and every token that was made with it. It stays listed."""
    session = session_of(ctx)
    everything = list(session.api.pages(_PATHS[TOKEN]))
    row = _one(everything, TOKEN, token)
    made = _made_with(everything, token)
    told = [f"API token {token} '{row['name']}' ({_scopes(row)}) ends now."]
    if made:
        named = [f"{each['id']} '{each['name']}'" for each in made]
        told.append(f"So do those that were made with it: {_first(named)}.")
    if session.context.token.startswith(row["prefix"]):
        told.append("It seems to be the one that this command uses.")
    return _revoked(session, TOKEN, row, told, yes=yes)


@command
def delete_client_token(ctx: typer.Context, token: TokenId, yes: Yes = False) -> Outcome:
    """Revoke a token of data planes: the streams that it opened end within seconds. It stays listed."""
    session = session_of(ctx)
    row = _one(session.api.pages(_PATHS[CLIENT_TOKEN]), CLIENT_TOKEN, token)
    told = [f"Client token {token} of '{row['subject']}' (ends in {row['hint']}) ends now.", _streams(session, row)]
    return _revoked(session, CLIENT_TOKEN, row, told, yes=yes)


def _get(
    session: Session, kind: str, one: int, columns: tuple[Column, ...], *, everything: bool, subject: str = ""
) -> None:
    rows = session.api.pages(_PATHS[kind])
    if one:
        found = _one(rows, kind, one)
        session.printer.document(found, lambda: _text(found, columns), name=str(found["id"]))
        return
    wanted = [row for row in rows if (everything or not _ended(row)) and (not subject or row["subject"] == subject)]
    session.printer.rows(wanted, columns, lambda row: str(row["id"]))


def _text(row: JsonObject, columns: Iterable[Column]) -> str:
    return "\n".join(f"{each.title.capitalize() + ':':<13} {each.read(row) or '-'}" for each in columns)


def _one(rows: Iterable[JsonObject], kind: str, token: int) -> JsonObject:
    """The row with this id among the tokens that the user may administer. Raises CommandError when there is none;
    `kind` is what its text calls such a token.
    """
    for row in rows:
        if row["id"] == token:
            return row
    raise NotThereError(f"There is no {kind} {token} that you may administer. Nothing was changed.")


def _made(session: Session, kind: str, body: JsonObject, out: str) -> Outcome:
    """Make a token of this kind, then print it or write it to the file `out`. No token is made when the file cannot be
    written. Raises UsageError and CommandError.
    """
    if not out and session.printer.form in {Format.NAME, Format.GITHUB}:
        raise UsageError(
            f"With -o {session.printer.form.value} the token would be lost or stand in a log. Give --out FILE. "
            "Nothing was made."
        )
    keep = _new_file(out) if out else None
    try:
        made: JsonObject = session.api.post(_PATHS[kind], body)
    except BaseException:
        if out:
            Path(out).unlink(missing_ok=True)
        raise
    secret = made["token"]
    if keep is not None:
        _kept(keep, secret, out, f"{kind} {made['id']}")
        made = {key: value for key, value in made.items() if key != "token"}
        session.printer.document(made, lambda: f"{kind} {made['id']}", name=str(made["id"]))
    else:
        session.printer.document(made, lambda: secret)
    where = f"It is in '{out}', which only you can read." if out else "It is not shown again."
    ends = (
        f"It ends at {made['expires_at']}." if made["expires_at"] else "It never ends; --expires makes one that does."
    )
    more = [] if made.get("usable", True) else ["No selector leads its subject to that environment: it opens nothing."]
    return Outcome(text=f"{kind} {made['id']} is made. {where} {ends}", more=tuple(more))


def _new_file(path: str) -> int:
    """The descriptor of a new file that only its owner may read. Raises UsageError when the file exists or cannot be
    made.
    """
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise UsageError(f"'{path}' exists already. Name a new file. Nothing was made.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be made: {error.strerror}. Nothing was made.") from error


def _kept(file: int, secret: str, path: str, what: str) -> None:
    try:
        with os.fdopen(file, "w", encoding="ascii") as open_file:
            open_file.write(secret)
    except OSError as error:
        text = f"{what} is made, but cannot be written to '{path}': {error.strerror}. It is told once: revoke it with "
        raise CommandError(Exit.NO, f"{text}'xdsctl delete {what}'.") from error


def _revoked(session: Session, kind: str, row: JsonObject, told: list[str], *, yes: bool) -> Outcome:
    if row["revoked_at"]:
        text = f"It was revoked {ago(row['revoked_at'])}; nothing was changed."
    else:
        session.printer.confirm(told, "Revoke it?", meant=yes)
        session.api.request("DELETE", f"{_PATHS[kind]}/{row['id']}")
        text = " ".join(told)
    session.printer.document({"deleted": f"{kind}/{row['id']}"}, lambda: f"{kind} {row['id']}", name=str(row["id"]))
    return Outcome(text=text)


def _made_with(rows: Iterable[JsonObject], token: int) -> list[JsonObject]:
    """The valid tokens that are revoked together with this one: those made with it, those made with one of these, and
    so on.
    """
    good = [row for row in rows if not _ended(row)]
    ending, found = [token], []
    while ending:
        maker = f"token:{ending.pop()}"
        next_ones = [row for row in good if row["created_by_id"] == maker]
        found += next_ones
        ending += [row["id"] for row in next_ones]
    return found


def _streams(session: Session, row: JsonObject) -> str:
    """A sentence about the streams that end when this token is revoked. It is not exact: clients are known by identity,
    and several tokens may have the same one.
    """
    clients = session.api.pages("/clients", environment=row["environment"], identity=row["subject"], connected=True)
    nodes = sorted(str(each["node_id"]) for each in clients)
    if not nodes:
        return "No client is connected as that identity."
    many = f"{len(nodes)} clients are" if len(nodes) > 1 else "1 client is"
    return f"{many} connected as that identity; those that show this token lose their streams: {_first(nodes)}."


def _first(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _scope(text: str, environment: str) -> JsonObject:
    """A scope like `viewer`, `viewer@prod`, `viewer@*` or `viewer@prod/owner:pay` as an object of the API; without `@`
    it is for `environment`. Raises UsageError.
    """
    place, *limits = text.split("/")
    match = _SCOPE.fullmatch(place)
    if match is None:
        raise UsageError(f"--scope must be ROLE, ROLE@ENVIRONMENT or ROLE@*; '{text}' is none.")
    where = match[2] or environment
    scope: JsonObject = {"role": match[1], "environment": None if where == "*" else where}
    for limit in limits:
        key, colon, value = limit.partition(":")
        if key not in ("owner", "types", "names") or not colon or key in scope:
            raise UsageError(
                f"--scope is limited by /owner:OWNER, /types:TYPE+TYPE and /names:NAME+NAME, each once; '/{limit}' is "
                "none of them, or the second."
            )
        scope[key] = unquote(value) if key == "owner" else [unquote(each) for each in value.split("+")]
    return scope
