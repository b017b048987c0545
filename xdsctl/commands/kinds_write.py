"""`create`, `edit` and `delete` of environments, client groups and access rules: by options, files, or in an editor.

A file holds one object with the API's own members, as `get … -o yaml` prints it; what only the server says is passed
over, so that what one environment has can be made in another.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import typer

from xdsctl.api import remark_of, segment
from xdsctl.commands.kinds_read import Key, RuleId
from xdsctl.commands.manifests import DryRun
from xdsctl.commands.tokens import Yes
from xdsctl.editing import draft_edited, draft_written
from xdsctl.exits import CommandError, Exit, JsonObject, Outcome, UsageError
from xdsctl.files import Draft, draft_read
from xdsctl.freezes import BreakGlass
from xdsctl.kinds import ENVIRONMENT, GROUP, RULE
from xdsctl.losses import AcceptCases, AcceptLoss, accepting, dry_run_lines, foreseen_lines
from xdsctl.output import as_yaml
from xdsctl.session import Session, command, session_of

Message = Annotated[str, typer.Option("--message", "--reason", "-m", help="Why; kept with the change.")]
DryRunOption = Annotated[DryRun, typer.Option(help="'server': say which clients would lose what, and do nothing.")]
File = Annotated[
    str,
    typer.Option(
        "--filename", "-f", help="A file as 'get -o yaml' prints it, or - for standard input.", show_default=False
    ),
]
_EditFile = Annotated[
    str,
    typer.Option(
        "--filename", "-f", help="A file with what is to change, or - for standard input; without it an editor opens."
    ),
]

_HINT: Final = "# What is left out stays as it is."
_DONE: Final = {"POST": "Made.", "PATCH": "Changed.", "DELETE": "Deleted."}


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of object in the API: environment, client group or access rule.

    word: its name in sentences.
    path: returns the path of the list of such objects.
    named_by: the member by which one is found.
    told: the members that only the server sets.
    """

    word: str
    path: Callable[[Session], str]
    named_by: str
    told: frozenset[str]

    def settable(self, row: JsonObject) -> JsonObject:
        """The object without the members that only the server sets."""
        return {key: value for key, value in row.items() if key not in self.told}


_STANDING: Final = (
    *("epoch", "generation", "built_generation"),
    *("status", "reason", "summary", "statuses", "losses", "frozen"),
)
_WRITTEN: Final = ("id", "change", "findings", "history")
_ENVIRONMENT: Final = _Kind(
    ENVIRONMENT,
    lambda _: "/environments",
    "key",
    frozenset({"key", "position", "groups", "rules", *_STANDING, *_WRITTEN}),
)
_GROUP: Final = _Kind(
    GROUP, lambda session: session.api.environment("/client-groups"), "key", frozenset({"rules", *_WRITTEN})
)
_RULE: Final = _Kind(RULE, lambda session: session.api.environment("/rules"), "id", frozenset(_WRITTEN))


@dataclass(frozen=True, slots=True)
class _How:
    """How a write is carried out: the message for its change, the number of clients whose loss is accepted, whether it
    is only tried, for which reason it breaks a freeze (empty: it does not), and how many route cases it may break.
    """

    message: str
    accept_loss: int
    dry_run: DryRun
    break_glass: str = ""
    accept_cases: int = 0


def _said(text: str) -> Any:
    return typer.Option(help=text, show_default=False)


HELP_POSITION: Final = 110


def register(app: typer.Typer) -> None:
    """Add the commands that create, edit and delete environments, client groups and access rules."""
    app.command("create environment")(create_environment)
    app.command("create group")(create_group)
    app.command("create rule")(create_rule)
    app.command("edit environment")(edit_environment)
    app.command("edit group")(edit_group)
    app.command("edit rule")(edit_rule)
    app.command("delete environment")(delete_environment)
    app.command("delete group")(delete_group)
    app.command("delete rule")(delete_rule)


@command
def create_environment(
    ctx: typer.Context,
    key: Key,
    filename: File = "",
    selector: Annotated[list[str] | None, _said("Whom it takes: FIELD=PATTERN,… May be repeated: any of them.")] = None,
    default_effect: Annotated[str, _said("allow or deny: what holds where no rule speaks.")] = "",
    message: Message = "",
    dry_run: DryRunOption = DryRun.NONE,
    accept_loss: AcceptLoss = 0,
) -> Outcome:
    """Make an environment, behind the others. It denies by default unless told otherwise.

    KEY goes before a key in the file, so that one environment can be made like another.
    """
    given = {"key": key, "selectors": _selectors(selector), "default_effect": default_effect}
    return _create(session_of(ctx), _ENVIRONMENT, filename, given, _How(message, accept_loss, dry_run))


@command
def create_group(
    ctx: typer.Context,
    key: Key,
    filename: File = "",
    matcher: Annotated[list[str] | None, _said("Who is in it: FIELD=PATTERN,… May be repeated: any of them.")] = None,
    trust: Annotated[str, _said("verified (identity alone) or declared. Verified without it.")] = "",
    message: Message = "",
    dry_run: DryRunOption = DryRun.NONE,
    break_glass: BreakGlass = "",
) -> Outcome:
    """Make a client group. No rule speaks of it yet, so nobody loses anything. KEY goes before a key in the file."""
    given = {"key": key, "matchers": _selectors(matcher), "trust": trust}
    how = _How(message, 0, dry_run, break_glass)
    return _create(session_of(ctx), _GROUP, filename, given, how, {"trust": "verified", "matchers": []})


@command
def create_rule(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    ctx: typer.Context,
    filename: File = "",
    effect: Annotated[str, _said("allow, deny or hide.")] = "",
    pattern: Annotated[str, _said("Of which names it speaks; * stands for any run of characters.")] = "",
    group: Annotated[list[str] | None, _said("Of which client group. May be repeated; anybody without it.")] = None,
    type: Annotated[list[str] | None, _said("Of which type. May be repeated; any without it.")] = None,  # noqa: A002
    position: Annotated[int, typer.Option(min=0, show_default=False, help="Its place; behind all without it.")] = 0,
    text: Annotated[str, _said("With deny: what clients are told. It must not be confidential.")] = "",
    message: Message = "",
    dry_run: DryRunOption = DryRun.NONE,
    break_glass: BreakGlass = "",
    accept_loss: AcceptLoss = 0,
    accept_cases: AcceptCases = 0,
) -> Outcome:
    """Make an access rule, by options, by a file, or by both: options go before the file."""
    given = {
        "effect": effect,
        "pattern": pattern,
        "client_groups": group or None,
        "types": type or None,
        "position": position or None,
        "message": text,
    }
    return _create(
        session_of(ctx), _RULE, filename, given, _How(message, accept_loss, dry_run, break_glass, accept_cases)
    )


@command
def edit_environment(
    ctx: typer.Context,
    key: Key,
    filename: _EditFile = "",
    message: Message = "",
    dry_run: DryRunOption = DryRun.NONE,
    break_glass: BreakGlass = "",
    accept_loss: AcceptLoss = 0,
    accept_cases: AcceptCases = 0,
) -> Outcome:
    """Change policies of an environment in $EDITOR, or by a file that holds what is to change."""
    return _edit(
        session_of(ctx), _ENVIRONMENT, key, filename, _How(message, accept_loss, dry_run, break_glass, accept_cases)
    )


@command
def edit_group(
    ctx: typer.Context,
    key: Key,
    filename: _EditFile = "",
    message: Message = "",
    dry_run: DryRunOption = DryRun.NONE,
    break_glass: BreakGlass = "",
    accept_loss: AcceptLoss = 0,
    accept_cases: AcceptCases = 0,
) -> Outcome:
    """Change a client group in $EDITOR, or by a file that holds what is to change."""
    return _edit(session_of(ctx), _GROUP, key, filename, _How(message, accept_loss, dry_run, break_glass, accept_cases))


@command
def edit_rule(
    ctx: typer.Context,
    rule: RuleId,
    filename: _EditFile = "",
    message: Message = "",
    dry_run: DryRunOption = DryRun.NONE,
    break_glass: BreakGlass = "",
    accept_loss: AcceptLoss = 0,
    accept_cases: AcceptCases = 0,
) -> Outcome:
    """Change an access rule in $EDITOR, or by a file that holds what is to change."""
    return _edit(
        session_of(ctx), _RULE, str(rule), filename, _How(message, accept_loss, dry_run, break_glass, accept_cases)
    )


@command
def delete_environment(
    ctx: typer.Context,
    key: Key,
    message: Message = "",
    dry_run: DryRunOption = DryRun.NONE,
    break_glass: BreakGlass = "",
    accept_loss: AcceptLoss = 0,
    yes: Yes = False,
) -> Outcome:
    """Delete an environment with everything in it, for good."""
    told = "All its resources, their history, its groups, rules and tokens go with it. Nothing brings them back."
    return _delete(session_of(ctx), _ENVIRONMENT, key, _How(message, accept_loss, dry_run, break_glass), told, yes=yes)


@command
def delete_group(
    ctx: typer.Context,
    key: Key,
    message: Message = "",
    dry_run: DryRunOption = DryRun.NONE,
    break_glass: BreakGlass = "",
    yes: Yes = False,
) -> Outcome:
    """Delete a client group that no access rule mentions. 'xdsctl undo' brings it back."""
    return _delete(session_of(ctx), _GROUP, key, _How(message, 0, dry_run, break_glass), "", yes=yes)


@command
def delete_rule(
    ctx: typer.Context,
    rule: RuleId,
    message: Message = "",
    dry_run: DryRunOption = DryRun.NONE,
    break_glass: BreakGlass = "",
    accept_loss: AcceptLoss = 0,
    accept_cases: AcceptCases = 0,
    yes: Yes = False,
) -> Outcome:
    """Delete an access rule. 'xdsctl undo' brings it back."""
    return _delete(
        session_of(ctx), _RULE, str(rule), _How(message, accept_loss, dry_run, break_glass, accept_cases), "", yes=yes
    )


def _create(
    session: Session,
    kind: _Kind,
    filename: str,
    given: JsonObject,
    how: _How,
    otherwise: JsonObject | None = None,
) -> Outcome:
    """Create an object of this kind. Where members differ, those in `given` (from options) win over those in the file,
    and these over those in `otherwise` (defaults).
    """
    draft = draft_read(filename) if filename else Draft({})
    said = {key: value for key, value in given.items() if value not in (None, "")}
    # Nothing of the file is anybody's word on the members that options name.
    draft = replace(draft, tree={**(otherwise or {}), **kind.settable(draft.tree), **said})
    return _write(session, kind, "POST", kind.path(session), draft, how, f"create {kind.word}")


def _edit(session: Session, kind: _Kind, name: str, filename: str, how: _How) -> Outcome:
    path = f"{kind.path(session)}/{segment(name)}"
    before = kind.settable(session.api.get(path))
    if filename:
        draft = draft_read(filename)
        return _patch(session, kind, path, replace(draft, tree=_changed(kind, before, draft.tree)), how)
    text = f"{_HINT}\n{as_yaml(before)}\n"
    file = draft_written(text)
    draft_edited(file)
    if file.read_text("utf-8") == text:
        file.unlink()
        return Outcome(text="Nothing was changed.")
    # From here on the file stays until it is stored: what somebody typed is not thrown away for a mistake.
    try:
        draft = draft_read(str(file))
        _still(before, kind.settable(session.api.get(path)))
        outcome = _patch(session, kind, path, replace(draft, tree=_changed(kind, before, draft.tree)), how)
    except CommandError as error:
        error.text = f"{error.text} Your text is in '{file}'."
        raise
    file.unlink()
    return outcome


def _still(before: JsonObject, now: JsonObject) -> None:
    """Check that an object was not changed by somebody else while it was open in the editor, from how it was before and
    is now. Raises CommandError when it was.
    """
    if now != before:
        raise CommandError(Exit.CONFLICT, "Somebody else changed it meanwhile. Nothing was changed.")


def _changed(kind: _Kind, before: JsonObject, after: JsonObject) -> JsonObject:
    """The members of `after` that a user may set and whose values differ from those in `before`."""
    return {key: value for key, value in kind.settable(after).items() if key not in before or before[key] != value}


def _patch(session: Session, kind: _Kind, path: str, draft: Draft, how: _How) -> Outcome:
    if not draft.tree:
        row = session.api.get(path)
        name = str(row[kind.named_by])
        session.printer.document({**row, "change": None}, lambda: f"{kind.word} {name}, unchanged", name=name)
        return Outcome(text="It was so already.")
    return _write(session, kind, "PATCH", path, draft, how, f"edit {kind.word}")


def _delete(session: Session, kind: _Kind, name: str, how: _How, told: str, *, yes: bool) -> Outcome:
    path = f"{kind.path(session)}/{segment(name)}"
    row = session.api.get(path)
    if how.dry_run is DryRun.NONE:
        about = [as_yaml(kind.settable(row)), *([told] if told else [])]
        session.printer.confirm("\n".join(about).split("\n"), f"Delete {kind.word} '{name}'?", meant=yes)
    return _write(session, kind, "DELETE", path, Draft({}), how, f"delete {kind.word}")


def _write(session: Session, kind: _Kind, method: str, path: str, draft: Draft, how: _How, verb: str) -> Outcome:
    """Send a write and print the result. When the server refuses it because clients would lose something, the person at
    a terminal is asked to accept that.
    """

    def sent(accepted: int | None) -> JsonObject:
        parameters = {
            "message": how.message,
            "accept_loss": accepted,
            "accept_cases": how.accept_cases or None,
            "dry_run": True if how.dry_run is DryRun.SERVER else None,
            "break_glass": how.break_glass or None,
        }
        body = draft.tree if method != "DELETE" else None
        try:
            response = session.api.request(method, path, body=body, parameters=parameters)
        except CommandError as error:
            raise draft.located(error) from error
        answer: JsonObject = response.json() if response.content else {}
        return answer

    made = accepting(session, how.accept_loss, sent)
    session.printer.remarks(remark_of(each) for each in made.get("findings", ()))
    if how.dry_run is DryRun.SERVER:
        lines = foreseen_lines(made["loss"]) or ("No connected client would lose anything.",)
        session.printer.document(made, lambda: "\n".join(lines), name=str(made["loss"]["clients"]))
        asked = dry_run_lines(made["loss"], verb)[-1:] if made["loss"]["asks"] else ()
        return Outcome(text="Nothing was done.", more=asked)
    if method == "DELETE" and not made:
        name = path.rpartition("/")[2]
        session.printer.document({"deleted": f"{kind.word}/{name}"}, lambda: f"{kind.word} {name}", name=name)
        return Outcome(text="It is deleted.")
    name = str(made[kind.named_by])
    change = made["change"]
    session.printer.document(
        made, lambda: f"{kind.word} {name}, {f'change {change}' if change else 'unchanged'}", name=name
    )
    if not change:
        return Outcome(text="It was so already.")
    return Outcome(text=f"{_DONE[method]} 'xdsctl rollout status {change}' follows it.")


def _selectors(texts: list[str] | None) -> list[JsonObject] | None:
    """Texts like `identity=a*,metadata.role=b` as objects of the API; None when no text is given. Raises UsageError for
    a text of another form.
    """
    return [_selector(text) for text in texts] if texts else None


def _selector(text: str) -> JsonObject:
    found: JsonObject = {}
    for part in text.split(","):
        field, equals, pattern = part.partition("=")
        if not (field and equals and pattern):
            raise UsageError(f"'{text}' must be FIELD=PATTERN, with several fields behind commas. '{part}' is none.")
        if field.startswith("metadata."):
            found.setdefault("metadata", {})[field.removeprefix("metadata.")] = pattern
        else:
            found[field] = pattern
    return found
