"""`access`: who may read what, and unit tests for it."""

from typing import Annotated, Final

import typer

from xdsctl.exits import Exit, JsonObject, Outcome, UsageError
from xdsctl.files import document_read
from xdsctl.output import Column
from xdsctl.session import command, session_of

RULE_COLUMNS: Final = (
    Column("POSITION", lambda row: row["position"]),
    Column("EFFECT", lambda row: row["effect"]),
    Column("GROUPS", lambda row: ",".join(row["client_groups"]) or "anybody"),
    Column("TYPES", lambda row: ",".join(row["types"]) or "any"),
    Column("PATTERN", lambda row: row["pattern"]),
    Column("ENABLED", lambda row: row["enabled"]),
    Column("MESSAGE", lambda row: row["message"]),
    Column("ID", lambda row: row["id"], wide=True),
)
_CASE_COLUMNS: Final = (
    Column("", lambda row: "ok" if row["ok"] else "FAIL"),
    Column("CLIENT", lambda row: row["client"]),
    Column("RESOURCE", lambda row: row["resource"]),
    Column("EXPECTED", lambda row: row["expect"]),
    Column("IS", lambda row: row["effect"]),
    Column("BY", lambda row: f"rule {row['rule']}" if row["rule"] is not None else "the default"),
)


HELP_POSITION: Final = 80


def register(app: typer.Typer) -> None:
    """Add the commands about access rules."""
    access = typer.Typer(no_args_is_help=True, help="Who may read what.")
    access.command()(rules)
    access.command()(test)
    app.add_typer(access, name="access")


@command
def rules(ctx: typer.Context) -> None:
    """List the access rules in the order in which they are asked."""
    session = session_of(ctx)
    found = session.api.pages(session.api.environment("/rules"))
    session.printer.rows(found, RULE_COLUMNS, lambda row: str(row["id"]))


@command
def test(
    ctx: typer.Context,
    filename: Annotated[str, typer.Option("--filename", "-f", help="A file of cases, or - for standard input.")],
) -> Outcome:
    """Ask the rules what each client of a file may read. Exit status 1 when one is not as expected.

    A file has 'cases': each with identity, node_id, node_cluster or metadata, and type, name and expect
    (allow, deny or hide).
    """
    session = session_of(ctx)
    tree = document_read(filename)
    cases = tree.get("cases") if isinstance(tree, dict) else tree
    if not isinstance(cases, list) or not cases:
        raise UsageError(f"'{filename}' holds no cases. Write them as a list under 'cases'.")
    results = session.api.post(session.api.environment("/access/test"), {"cases": cases})["results"]
    rows: list[JsonObject] = [
        {**result, "expect": case["expect"], "client": _client(case), "resource": f"{case['type']}/{case['name']}"}
        for case, result in zip(cases, results, strict=True)
        if isinstance(case, dict)
    ]
    session.printer.rows(rows, _CASE_COLUMNS, lambda row: f"{row['client']} {row['resource']}")
    failed = sum(not row["ok"] for row in rows)
    if not failed:
        return Outcome(text="1 case is as expected." if len(rows) == 1 else f"{len(rows)} cases are as expected.")
    return Outcome(Exit.NO, f"{failed} of {len(rows)} cases are not as expected.")


def _client(case: JsonObject) -> str:
    known = ("identity", "node_id", "node_cluster")
    return next((str(case[each]) for each in known if case.get(each)), "anybody")
