"""`validate`, `diff`, `apply`: from files to the fleet, one step at a time or in one."""

import shlex
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from xdscore.lazily import Lazily
from xdsctl.exits import CommandError, Exit, JsonObject, Outcome, Remark
from xdsctl.files import Manifests, manifests_read, remark_in
from xdsctl.follow import Tolerance, follow
from xdsctl.freezes import BreakGlass
from xdsctl.losses import AcceptCases, AcceptLoss, accepting, dry_run_lines
from xdsctl.output import Column, Format, remark_json
from xdsctl.session import Session, command, session_of
from xdsctl.unjudged import BY_ENVOY, unjudged, unjudged_lines

if TYPE_CHECKING:
    from xdscore import codes, schema
    from xdscore.schema import leniency
else:
    codes, schema, leniency = Lazily("xdscore.codes"), Lazily("xdscore.schema"), Lazily("xdscore.schema.leniency")

Files = Annotated[
    list[str], typer.Option("--filename", "-f", help="A file, a folder, or - for standard input. May be repeated.")
]
Owner = Annotated[str, typer.Option(help="Whose resources these are; what --prune goes by.", show_default=False)]
Prune = Annotated[bool, typer.Option("--prune", help="Delete what the owner has and the files do not name.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Refuse what is not in its canonical form, and references to what does not exist."),
]
BaseEpoch = Annotated[
    int,
    typer.Option(
        min=0,
        show_default=False,
        help="Refuse (status 4) if resources changed since this epoch, as 'xdsctl rollout history' lists them.",
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until the fleet has taken it, or has not.")]
Timeout = Annotated[str, typer.Option(help="How long to wait, like 90s or 5m.")]
FailOn = Annotated[str, typer.Option(help="What makes a rollout fail: nack, and silent or silent>N% of the clients.")]

_DRY_RUN_HELP: Final = "'server': say what would change, and for which clients, and do nothing."
_ONLY_THERE: Final[tuple[str, ...]] = (
    "whether what they refer to exists",
    "whose resources they are",
    "limits, hold and rules of the environment",
    "what clients would lose",
    f"{BY_ENVOY} them",
)
_UNREVIEWED: Final = "XDS3031"
_ORDER: Final = ("note", "warning", "error")
_EDIT_COLUMNS: Final = (
    Column("ACTION", lambda row: row["action"]),
    Column("TYPE", lambda row: row["type"]),
    Column("NAME", lambda row: row["name"]),
    Column("REVISION", lambda row: f"r{row['revision']}"),
)


class FailLevel(Enum):
    """The severity of a finding from which on `validate` fails."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class DryRun(Enum):
    """Whether a command writes its change (NONE) or lets the server only try it (SERVER)."""

    NONE = "none"
    SERVER = "server"


HELP_POSITION: Final = 10


def register(app: typer.Typer) -> None:
    """Add the commands that take files of manifests."""
    app.command()(validate)
    app.command()(diff)
    app.command()(apply)


@command
def validate(
    ctx: typer.Context,
    filename: Files,
    owner: Owner = "",
    prune: Prune = False,
    strict: Strict = False,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no server: judge what the files say alone.")] = False,
    fail_level: Annotated[FailLevel, typer.Option(help="From which severity on the answer is no.")] = FailLevel.ERROR,
) -> Outcome:
    """Check manifests: every finding, with its place.

    What 'apply --dry-run server' with the same options would say of them in that environment, with the same exit
    status: 1 when something is wrong. It is said what was not judged: with a server what an Envoy would say, with
    --offline, which needs none, more.
    """
    session = session_of(ctx)
    manifests = manifests_read(filename, strict=strict)
    if offline:
        environment, found = None, _checked_here(manifests, strict=strict)
        not_judged, lines = _ONLY_THERE, [f"Not judged without a server: {'; '.join(_ONLY_THERE)}."]
    else:
        body = _body(manifests, owner=owner, prune=prune)
        environment = session.context.environment
        found, answer = _checked_there(session, manifests, body, strict=strict)
        not_judged, lines = unjudged(answer), [*unjudged_lines(answer)]
    remarks = [*manifests.notes, *found]
    refused = any(_ORDER.index(each.severity) >= _ORDER.index(fail_level.value) for each in remarks)
    if session.printer.form in {Format.JSON, Format.YAML}:
        findings = [remark_json(each) for each in remarks]
        session.printer.data(
            {"valid": not refused, "environment": environment, "not_judged": not_judged, "findings": findings}
        )
        remarks = []
    against = "" if environment is None else f" against '{environment}'"
    text = f"{_resources(len(manifests.items))} checked{against}: {'refused' if refused else 'valid'}."
    return Outcome(Exit.NO if refused else Exit.DONE, text, tuple(remarks), tuple(lines))


@command
def diff(
    ctx: typer.Context, filename: Files, owner: Owner = "", prune: Prune = False, strict: Strict = False
) -> Outcome:
    """Show what an apply would change.

    As a patch; with -o json field by field. Then how many clients of which groups would be sent something different,
    and who would lose what. Exit status 1 when there are differences.
    """
    session = session_of(ctx)
    manifests = manifests_read(filename, strict=strict)
    body = _body(manifests, owner=owner, prune=prune)
    planned = _planned(session, manifests, body, text=True, strict=strict or None)
    edits: list[JsonObject] = planned["diff"]
    remarks = (*manifests.notes, *(manifests.remark(each) for each in planned["findings"]))
    if session.printer.form is Format.NAME:
        session.printer.rows(edits, _EDIT_COLUMNS, lambda row: f"{row['type']}/{row['name']}")
    else:
        session.printer.document(planned, lambda: "".join(each["text"] for each in edits).rstrip("\n"))
    if not edits:
        return Outcome(text="No difference.", remarks=remarks)
    text = f"{_resources(len(edits))} would change. {impact_text(planned.get('impact'))}".rstrip()
    return Outcome(Exit.NO, text, remarks, (*dry_run_lines(planned.get("loss")), *unjudged_lines(planned)))


@command
def apply(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    ctx: typer.Context,
    filename: Files,
    message: Annotated[str, typer.Option("--message", "-m", help="Why; kept with the change.")] = "",
    owner: Owner = "",
    prune: Prune = False,
    base_epoch: BaseEpoch = 0,
    strict: Strict = False,
    dry_run: Annotated[DryRun, typer.Option(help=_DRY_RUN_HELP)] = DryRun.NONE,
    wait: Wait = False,
    timeout: Timeout = "5m",
    fail_on: FailOn = "nack",
    accept_loss: AcceptLoss = 0,
    accept_cases: AcceptCases = 0,
    break_glass: BreakGlass = "",
) -> Outcome:
    """Make the environment what the files say, as one change.

    The environment holds what the files say afterwards, or nothing was changed. With --wait, exit status 1 means that
    clients refuse it, and 5 that time ran out. Where the environment asks for review, 'xdsctl changesets create' takes
    the same files.
    """
    session = session_of(ctx)
    tolerance = Tolerance.of(fail_on, timeout)
    manifests = manifests_read(filename, strict=strict)
    body = _body(manifests, owner=owner, prune=prune, message=message, base_epoch=base_epoch)
    session.printer.remarks(manifests.notes)
    if dry_run is DryRun.SERVER:
        planned = _planned(session, manifests, body, strict=strict or None)
        session.printer.rows(planned["diff"], _EDIT_COLUMNS, lambda row: f"{row['type']}/{row['name']}")
        remarks = tuple(manifests.remark(each) for each in planned["findings"])
        text = (
            f"{_resources(len(planned['diff']))} would change; nothing was done. {impact_text(planned.get('impact'))}"
        )
        more = (*dry_run_lines(planned.get("loss")), *unjudged_lines(planned))
        refused = any(each.severity == "error" for each in remarks)
        return Outcome(Exit.NO if refused else Exit.DONE, text.rstrip(), remarks, more)

    def sent(accepted: int | None) -> JsonObject:
        parameters = {
            "strict": strict or None,
            "accept_loss": accepted,
            "accept_cases": accept_cases or None,
            "break_glass": break_glass or None,
        }
        return _sent(session, manifests, body, **parameters)

    try:
        made = accepting(session, accept_loss, sent)
    except CommandError as error:
        if (error.document or {}).get("code") == _UNREVIEWED:
            error.more = (_proposed_instead(session, filename, message, prune=prune),)
        raise
    if not made.get("id"):
        session.printer.document(made, lambda: "unchanged")
        return Outcome(text=f"'{session.context.environment}' already is as the files say.")
    session.printer.remarks(manifests.remark(each) for each in made["findings"])
    if wait:
        return follow(session, made["id"], tolerance)
    session.printer.document(made, lambda: f"change {made['id']}", name=made["id"])
    return Outcome(text=f"{_resources(made['edit_count'])} changed. 'xdsctl rollout status {made['id']}' follows it.")


def impact_text(impact: JsonObject | None) -> str:
    """A sentence about the impact of an apply: how many clients, of which groups, would be sent something different.
    Empty where the server does not say, for who may not read the environment as a whole or of what is published.
    """
    if not impact:
        return ""
    if not impact["connected"]:
        return "No client is connected."
    groups = ", ".join(f"{each['receive']} {_in_group(each['key'])}" for each in impact["groups"])
    concerned = f"{impact['receive']} of {_clients(impact['connected'])} would be sent something different"
    return f"{concerned} ({groups})." if groups else f"{concerned}."


def _in_group(key: str | None) -> str:
    return "in no group" if key is None else f"in {key}"


def _clients(count: int) -> str:
    return f"{count} connected client{'' if count == 1 else 's'}"


def _body(
    manifests: Manifests, *, owner: str = "", prune: bool = False, message: str = "", base_epoch: int = 0
) -> JsonObject:
    body: JsonObject = {"resources": manifests.trees, "message": message, "prune": prune}
    if owner:
        body["owner"] = owner
    if base_epoch:
        body["base_epoch"] = base_epoch
    return body


def _sent(session: Session, manifests: Manifests, body: JsonObject, **parameters: int | str | None) -> JsonObject:
    """The server's answer to an apply of these manifests with this body. Query parameters that are None are left
    out.
    """
    api = session.api
    try:
        answer: JsonObject = api.post(api.environment("/apply"), body, **parameters)
    except CommandError as error:
        raise manifests.located(error) from error
    return answer


def _proposed_instead(session: Session, filenames: list[str], message: str, *, prune: bool) -> str:
    """A line with the command that proposes the files of an apply as a change set."""
    environment = session.options.environment
    words = ["xdsctl", *(("-e", environment) if environment else ()), "changesets", "create"]
    words += ["--title", message or "TITLE", *(word for each in filenames for word in ("-f", each))]
    pruned = " (and --delete TYPE/NAME for each that --prune would delete)" if prune else ""
    return f"To propose the same files: {shlex.join(words)}{pruned}"


def _planned(session: Session, manifests: Manifests, body: JsonObject, **parameters: bool | None) -> JsonObject:
    return _sent(session, manifests, body, dry_run=True, **parameters)


def _checked_there(
    session: Session, manifests: Manifests, body: JsonObject, *, strict: bool
) -> tuple[list[Remark], JsonObject]:
    """The findings of a dry run on the server, and its answer. When it is refused because of findings, these are
    returned, and no answer; when it is refused for another reason, CommandError is raised.
    """
    try:
        answer = _planned(session, manifests, body, strict=strict or None)
    except CommandError as error:
        if error.exit_status is Exit.NO and error.remarks:
            return list(error.remarks), {}
        if error.exit_status in {Exit.NO_ANSWER, Exit.NOT_ACCEPTED}:
            text = f"{error.text} 'xdsctl validate --offline' judges what the files say alone."
            raise CommandError(error.exit_status, text, document=error.document) from error
        raise
    return [manifests.remark(each) for each in answer["findings"]], answer


def _checked_here(manifests: Manifests, *, strict: bool) -> list[Remark]:
    remarks: list[Remark] = []
    first: dict[tuple[str, str], str] = {}
    for item in manifests.items:
        found = schema.parse(replace(item.manifest, notes=()))  # which were told when the file was read
        said = leniency.strictly(found.findings) if strict else found.findings
        remarks += [remark_in(item.file, finding) for finding in said]
        if isinstance(found, schema.Refused):
            continue
        key = (found.type.word, found.name)
        if key in first:
            word, name = key
            twice = codes.CATALOGUE["XDS3006"].finding("", word=word, name=name, hint=f"{first[key]} has it, too.")
            remarks.append(remark_in(item.file, item.manifest.located(twice, ())))
        first.setdefault(key, item.file)
    return remarks


def _resources(count: int) -> str:
    return f"{count:,} resource{'' if count == 1 else 's'}"
