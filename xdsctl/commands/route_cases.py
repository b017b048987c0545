"""`route-cases`: requests that are kept with the end that is expected of each, and judged at every change."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from xdscore.lazily import Lazily
from xdsctl.api import remark_of
from xdsctl.exits import CommandError, Exit, JsonObject, NotThereError, Outcome, Remark, UsageError
from xdsctl.files import STDIN, STDIN_NAME, document_of_file
from xdsctl.output import Column, as_yaml
from xdsctl.session import Session, command, session_of

if TYPE_CHECKING:
    from xdscore.schema import positions as places
else:
    places = Lazily("xdscore.schema.positions")

HELP_POSITION: Final = 62
_PATH: Final = "/requests/cases"
# What only the server says of a case.
_TOLD: Final = frozenset(
    {"id", "revision", "created_by", "created_at", "author", "updated_at", "holds", "since", "end"}
)
_STATE: Final = Column("STATE", lambda row: "holds" if row["holds"] else "FAILS")
_END: Final = Column("END", lambda row: row["end"]["text"])
_COLUMNS: Final = (
    Column("ID", lambda row: row["id"]),
    Column("NAME", lambda row: row["name"]),
    _STATE,
    Column("REQUEST", lambda row: f"{row['method']} {row['scheme']}://{row['authority']}{row['path']}"),
    _END,
    Column("BLOCKS", lambda row: "yes" if row["blocking"] else "no", wide=True),
    Column("SINCE", lambda row: row["since"] or "written", wide=True),
    Column("AUTHOR", lambda row: row["author"], wide=True),
)
_RUN_COLUMNS: Final = (
    Column("NAME", lambda row: row["name"]),
    _STATE,
    _END,
)
_WRITTEN_COLUMNS: Final = (Column("WRITTEN", lambda row: row["written"]), *_RUN_COLUMNS)

CaseName = Annotated[str, typer.Argument(metavar="NAME", help="The case's name, as 'route-cases list' prints it.")]
File = Annotated[str, typer.Option("--filename", "-f", help="A file, or - for standard input.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would become of each case, and keep none.")]


def register(app: typer.Typer) -> None:
    """Add the commands about route cases."""
    cases = typer.Typer(
        no_args_is_help=True,
        help="Requests that are kept with the end that is expected of each, and judged at every change.",
    )
    cases.command("list")(listed)
    cases.command("import")(imported)
    for work in (get, run, apply, export, delete):
        cases.command()(work)
    app.add_typer(cases, name="route-cases")


@command
def listed(
    ctx: typer.Context,
    fails: Annotated[bool, typer.Option("--fails", help="Only those that do not hold.")] = False,
) -> None:
    """List the route cases of the environment by name, with how each stands."""
    session = session_of(ctx)
    session.printer.rows(_cases(session, state="fails" if fails else None), _COLUMNS, lambda row: str(row["name"]))


@command
def get(ctx: typer.Context, case: CaseName) -> None:
    """Show one case, with the end that its request has now."""
    session = session_of(ctx)
    found = _named(session, case)
    session.printer.document(found, lambda: as_yaml(found), name=case)


@command
def run(
    ctx: typer.Context,
    case: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these cases.")] = None,
    filename: Annotated[
        str, typer.Option("--filename", "-f", help="Cases that need not be kept: a file, or -.", show_default=False)
    ] = "",
) -> Outcome:
    """Judge the kept cases by what is written now, or those of a file; exit status 1 when one fails.

    By the newest revisions, whether or not they are served. Nothing is kept.
    """
    session = session_of(ctx)
    if filename and case:
        raise UsageError("Name cases, or give a file of them; not both.")
    body: JsonObject = {}
    placing = _Placing()
    if filename:
        placing = _Placing.of(filename)
        body = {"cases": placing.cases}
    elif case:
        body = {"ids": [_named(session, each)["id"] for each in case]}
    found = placing.sent(session, "/run", body)
    session.printer.rows(found["results"], _RUN_COLUMNS, lambda row: str(row["name"]))
    return _judged(found)


@command
def apply(ctx: typer.Context, filename: File, dry_run: DryRun = False) -> Outcome:
    """Keep the cases of a file, all or none: each is made, or replaces the case with its name; others stay.

    The file has a list of cases, or 'cases:', as 'export' prints them.
    """
    session = session_of(ctx)
    placing = _Placing.of(filename)
    done = placing.sent(session, "/apply", {"cases": placing.cases}, dry_run=dry_run or None)
    session.printer.rows(done["results"], _WRITTEN_COLUMNS, lambda row: str(row["name"]))
    return _kept(done)


@command
def imported(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Tests of router_check_tool, JSON or YAML; - for input.")],
    listener: Annotated[
        str, typer.Option(help="The listener that they come to; else the one with their port.", show_default=False)
    ] = "",
    warn_only: Annotated[bool, typer.Option("--warn-only", help="What breaks one of them is not refused.")] = False,
    dry_run: DryRun = False,
) -> Outcome:
    """Keep the tests of a file of Envoy's router_check_tool as cases.

    What no case can say is named, test by test; a test whose request no case can make is not kept.
    """
    session = session_of(ctx)
    document = document_of_file(file)
    try:
        done = session.api.post(
            session.api.environment(f"{_PATH}/import"),
            document.tree,
            listener=listener or None,
            blocking=False if warn_only else None,
            dry_run=dry_run or None,
        )
    except CommandError as error:
        remarks = [_placed(each, file, document) for each in (error.document or {}).get("errors", ())]
        raise CommandError(error.exit_status, error.text, remarks=remarks, document=error.document) from error
    session.printer.rows(done["results"], _WRITTEN_COLUMNS, lambda row: str(row["name"]))
    return replace(_kept(done), remarks=tuple(_placed(each, file, document) for each in done["findings"]))


@command
def export(ctx: typer.Context) -> None:
    """Print all cases as YAML, as 'apply -f' takes them."""
    session = session_of(ctx)
    kept = [{key: value for key, value in row.items() if key not in _TOLD} for row in _cases(session)]
    session.printer.document({"cases": kept}, lambda: as_yaml({"cases": kept}))


@command
def delete(ctx: typer.Context, case: CaseName) -> Outcome:
    """Forget a case, so that changes are no longer judged by it."""
    session = session_of(ctx)
    found = _named(session, case)
    path = session.api.environment(f"{_PATH}/{found['id']}")
    session.api.request("DELETE", path, headers={"If-Match": f'"r{found["revision"]}"'})
    session.printer.document({"deleted": f"route-case/{case}"}, lambda: f"route case {case}", name=case)
    return Outcome(text="Changes are not judged by it any more.")


class _Placing:
    """Cases from a file, and where each stands in it."""

    def __init__(self, cases: Sequence[Any] = (), file: str = "", document: Any = None, *, within: bool = True) -> None:
        self.cases = cases
        self._file = file
        self._document = document
        self._within = within

    @classmethod
    def of(cls, file: str) -> "_Placing":
        """The cases of a file: a list, or an object with `cases`. Raises UsageError."""
        document = document_of_file(file)
        tree = document.tree
        within = isinstance(tree, dict)
        cases = tree.get("cases") if isinstance(tree, dict) else tree
        if not isinstance(cases, list):
            raise UsageError(f"'{file}' must hold a list of cases, or 'cases:', as 'route-cases export' prints them.")
        kept = [
            {key: value for key, value in each.items() if key not in _TOLD} for each in cases if isinstance(each, dict)
        ]
        if len(kept) != len(cases):
            raise UsageError(f"Each case in '{file}' must be an object.")
        return cls(kept, file, document, within=within)

    def sent(self, session: Session, path: str, body: JsonObject, **parameters: bool | None) -> JsonObject:
        """The answer to these cases; what is wrong with them is told with its place in the file."""
        try:
            answer: JsonObject = session.api.post(session.api.environment(_PATH + path), body, **parameters)
        except CommandError as error:
            if self._document is None:
                raise
            remarks = [self._remark(each) for each in (error.document or {}).get("errors", ())]
            raise CommandError(error.exit_status, error.text, remarks=remarks, document=error.document) from error
        return answer

    def _remark(self, finding: JsonObject) -> Remark:
        pointer = finding.get("pointer", "")
        return _placed(
            {**finding, "pointer": pointer if self._within else pointer[len("/cases") :]}, self._file, self._document
        )


def _placed(finding: JsonObject, file: str, document: Any) -> Remark:
    line, column = document.positions.at(places.path_of(finding.get("pointer", ""), document.tree))
    return replace(remark_of(finding), file=STDIN_NAME if file == STDIN else file, line=line, column=column)


def _cases(session: Session, state: str | None = None) -> Iterable[JsonObject]:
    return session.api.pages(session.api.environment(_PATH), state=state)


def _named(session: Session, name: str) -> JsonObject:
    """The case with this name. Raises NotThereError where there is none."""
    found = next((each for each in _cases(session) if each["name"] == name), None)
    if found is None:
        text = (
            f"There is no route case '{name}' in '{session.context.environment}'. 'xdsctl route-cases list' has them."
        )
        raise NotThereError(text)
    return found


def _judged(found: JsonObject) -> Outcome:
    every, fails = len(found["results"]), found["fails"]
    if not fails:
        return Outcome(text=f"All {every} hold." if every else "There are no cases.")
    return Outcome(Exit.NO, f"{fails} of {every} fail.")


def _kept(done: JsonObject) -> Outcome:
    every, fails = len(done["results"]), done["fails"]
    what = "would be kept" if done["dry_run"] else "kept"
    more = f" {fails} of them fail now: they stop nothing until a change mends them." if fails else ""
    return Outcome(text=f"{every} case{'' if every == 1 else 's'} {what}.{more}")
