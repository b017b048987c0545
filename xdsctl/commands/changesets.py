"""`changesets`: what is proposed, reviewed by others, and published as one change, now or at its time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final

import typer

from xdsctl.access_files import access_files_read
from xdsctl.api import segment
from xdsctl.change_sets import COLUMNS, standing, summary
from xdsctl.commands.manifests import FailOn, Timeout, Wait, impact_text
from xdsctl.commands.tokens import Yes
from xdsctl.editing import draft_edited, draft_written
from xdsctl.exits import CommandError, Exit, JsonObject, Outcome, UsageError
from xdsctl.files import Draft, Manifests, StrictForm, draft_read, manifests_read
from xdsctl.follow import Tolerance, follow
from xdsctl.freezes import BreakGlass
from xdsctl.kinds import GROUP, RULE, resource_named
from xdsctl.losses import AcceptCases, AcceptLoss, accepting, dry_run_lines
from xdsctl.options import option
from xdsctl.output import Format, as_yaml
from xdsctl.session import Session, command, session_of
from xdsctl.times import time_to_come

HELP_POSITION: Final = 18

Placing = Callable[[CommandError, JsonObject], CommandError]

_STATES: Final = ("draft", "review", "approved", "scheduled", "published", "rejected", "expired", "stale")
_TAKES: Final = frozenset({"ours", "theirs"})
_NOTHING: Final = "none"
# What an edit may change, in the order in which the editor shows it.
_ACCESS: Final = ("rules", "groups", "delete_rules", "delete_groups")
_MEMBERS: Final = ("title", "message", "not_before", "expires", "resources", "delete", *_ACCESS)
# What the server takes together, as all that the set does with resources, and with rules and groups.
_TOGETHER: Final = (("resources", "delete"), _ACCESS)
_DELETED: Final = {RULE: "delete_rules", GROUP: "delete_groups"}
_HINT: Final = "# What is left out stays as it is; [] empties a list."


def _states_beginning(incomplete: str) -> list[str]:
    return [state for state in _STATES if state.startswith(incomplete)]


SetId = Annotated[str, typer.Argument(metavar="ID", help="The change set's id, as 'changesets list' prints it.")]
Reason = Annotated[str, option("Why; kept in the audit log.")]
Message = Annotated[str, option("The message of the change that it becomes; the title without it.", "--message", "-m")]
Files = Annotated[
    list[str] | None,
    option("What it writes: a file, a folder, or - for standard input. May be repeated.", "--filename", "-f"),
]
Rules = Annotated[
    list[str] | None,
    option("Rules that it writes: a file as 'get rule -o yaml' prints it; without id, a new one. May be repeated."),
]
Groups = Annotated[
    list[str] | None,
    option("Client groups that it writes: a file as 'get group -o yaml' prints it. May be repeated."),
]
Delete = Annotated[
    list[str] | None,
    option(
        "What it deletes, if it is there; also rule/ID and group/KEY. May be repeated.", "--delete", metavar="TYPE/NAME"
    ),
]
NotBefore = Annotated[str, option("From when on it may be published by itself: a time, or 12h from now.")]
Expires = Annotated[str, option("Until when it may be published at all: a time, or 30d from now.")]
AtVersion = Annotated[
    int | None,
    typer.Option(
        "--version", min=1, show_default=False, help="The version that was looked at: refuse it if it is another one."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands about change sets."""
    changesets = typer.Typer(
        no_args_is_help=True,
        help="What is proposed, reviewed by others, and published as one change, now or at its time.",
    )
    changesets.command("list")(listed)
    for work in (get, diff, create, edit, merge, submit, approve, reject, publish, schedule, cancel, comment, delete):
        changesets.command()(work)
    app.add_typer(changesets, name="changesets")


@command
def listed(
    ctx: typer.Context,
    state: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Only those that stand so: {', '.join(_STATES)}. May be repeated.",
            show_default=False,
            autocompletion=_states_beginning,
        ),
    ] = None,
    title: Annotated[str, option("Only those with exactly this title.")] = "",
) -> None:
    """List the change sets of the environment, newest first."""
    session = session_of(ctx)
    found = session.api.pages(session.api.environment("/change-sets"), state=",".join(state or ()))
    wanted = (row for row in found if not title or row["title"] == title)
    session.printer.rows(wanted, COLUMNS, lambda row: str(row["id"]))


@command
def get(ctx: typer.Context, change_set: SetId) -> Outcome:
    """Show a change set: what it does, who approved it, what it waits for, what moved, and whom publishing it would
    reach.
    """
    session = session_of(ctx)
    found = _read(session, change_set)
    session.printer.document(found, lambda: summary(found), name=found["id"])
    return Outcome(text=impact_text(found["impact"]))


@command
def diff(ctx: typer.Context, change_set: SetId) -> Outcome:
    """Show what a change set changes of what it was made from.

    As a patch; with -o json field by field, too. Exit status 1 when there are differences.
    """
    session = session_of(ctx)
    found = _read(session, change_set, text=True)
    text = "".join(each["text"] for each in (*found["diff"], *found["access"])).rstrip("\n")
    if session.printer.form is Format.NAME:
        session.printer.rows((*found["diff"], *found["access"]), (), lambda row: f"{row['type']}/{row['name']}")
    else:
        session.printer.document(found, lambda: text)
    if not text:
        return Outcome(text="No difference.")
    more = dry_run_lines(found["loss"], f"changesets publish {found['id']}")
    return Outcome(Exit.NO, impact_text(found["impact"]), more=more)


@command
def create(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    ctx: typer.Context,
    title: Annotated[str, option("What it is about, in a few words.")],
    message: Message = "",
    filename: Files = None,
    rule: Rules = None,
    group: Groups = None,
    delete: Delete = None,
    not_before: NotBefore = "",
    expires: Expires = "",
    strict: StrictForm = False,
) -> Outcome:
    """Propose what files say, and what is to be deleted, as one change. Nothing of it is published.

    It is a draft, until 'changesets submit' asks others to review it. What it does not name stays as it is: there is no
    --prune.
    """
    session = session_of(ctx)
    manifests, access = manifests_read(filename or (), strict=strict), access_files_read(rule or (), group or ())
    session.printer.remarks(manifests.notes)
    body: JsonObject = {
        "title": title,
        "message": message,
        "resources": manifests.trees,
        **access.body,
        "delete": [],
        **_deletions(delete or ()),
        "not_before": time_to_come(not_before),
        "expires": time_to_come(expires),
    }
    try:
        made: JsonObject = session.api.post(session.api.environment("/change-sets"), body, strict=strict or None)
    except CommandError as error:
        raise access.located(error, manifests) from error
    session.printer.remarks(manifests.spellings(made["findings"]))
    session.printer.document(made, lambda: f"change set {made['id']}", name=made["id"])
    return Outcome(text=f"A draft. 'xdsctl changesets submit {made['id']}' asks others to review it.")


@command
def edit(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    ctx: typer.Context,
    change_set: SetId,
    title: Annotated[str, option("Its new title.")] = "",
    message: Message = "",
    filename: Files = None,
    rule: Rules = None,
    group: Groups = None,
    delete: Delete = None,
    not_before: NotBefore = "",
    expires: Expires = "",
    version: AtVersion = None,
    strict: StrictForm = False,
) -> Outcome:
    """Change a change set: in $EDITOR, or by options. It is a draft again, and approvals are void.

    The files of an option are all that it writes of their kind from then on, and --delete all that it deletes of the
    kinds that it names; what no option names stays as it is. 'none' takes a time away, or all deletions. Where nothing
    is different it stays approved. Exit status 4 when somebody edited it meanwhile, or it is published.
    """
    session = session_of(ctx)
    said: JsonObject = {key: value for key, value in (("title", title), ("message", message)) if value}
    for key, text in (("not_before", not_before), ("expires", expires)):
        if text:
            said[key] = None if text == _NOTHING else time_to_come(text)
    if delete:
        nothing: JsonObject = {"delete": [], **{member: [] for member in _DELETED.values()}}
        said |= nothing if delete == [_NOTHING] else _deletions(delete)
    manifests, access = manifests_read(filename or (), strict=strict), access_files_read(rule or (), group or ())
    said |= access.body
    if not (said or filename):
        return _edited_by_hand(session, change_set, version)
    session.printer.remarks(manifests.notes)
    if filename:
        said["resources"] = manifests.trees
    before = _read(session, change_set, manifests=True)
    return _patch(
        session,
        before,
        said,
        version,
        lambda error, _body: access.located(error, manifests),
        files=manifests,
        strict=strict,
    )


@command
def merge(
    ctx: typer.Context,
    change_set: SetId,
    choice: Annotated[list[str], typer.Argument(metavar="TYPE/NAME=ours|theirs", help="May be repeated.")],
    version: AtVersion = None,
) -> Outcome:
    """Decide about resources that were written since the change set was made ('moved'), so that it is not stale.

    'ours' is to put the set's content over what was written, 'theirs' leaves the name out of the set. It is a draft
    again.
    """
    session = session_of(ctx)
    merges = [_merge(each) for each in choice]
    return _patch(session, _read(session, change_set), {"merge": merges}, version, _placed_in(Draft({})))


@command
def submit(ctx: typer.Context, change_set: SetId, reason: Reason = "", version: AtVersion = None) -> Outcome:
    """Ask others to review a draft: what they approve is this version."""
    return _act(session_of(ctx), change_set, "submit", {"reason": reason, "version": version})


@command
def approve(ctx: typer.Context, change_set: SetId, reason: Reason = "", version: AtVersion = None) -> Outcome:
    """Approve a change set as it is. Who made or edited it may not, unless the environment says so."""
    return _act(session_of(ctx), change_set, "approve", {"reason": reason, "version": version})


@command
def reject(
    ctx: typer.Context,
    change_set: SetId,
    reason: Annotated[str, typer.Option(help="Why: what its author has to mend.")],
    version: AtVersion = None,
) -> Outcome:
    """Say no to a change set."""
    return _act(session_of(ctx), change_set, "reject", {"reason": reason, "version": version})


@command
def publish(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    ctx: typer.Context,
    change_set: SetId,
    reason: Reason = "",
    version: AtVersion = None,
    wait: Wait = False,
    timeout: Timeout = "5m",
    fail_on: FailOn = "nack",
    accept_loss: AcceptLoss = 0,
    accept_cases: AcceptCases = 0,
    break_glass: BreakGlass = "",
) -> Outcome:
    """Write what a change set holds, as one change, and print that change's id, as apply does.

    With --wait, exit status 1 means that clients refuse it, and 5 that time ran out. Published before, it is left so.
    """
    session = session_of(ctx)
    tolerance = Tolerance.of(fail_on, timeout)
    body = {"reason": reason, "version": version}
    done: JsonObject = accepting(
        session,
        accept_loss,
        lambda accepted: session.api.post(
            _path(change_set, "/publish"),
            body,
            accept_loss=accepted,
            accept_cases=accept_cases or None,
            break_glass=break_glass or None,
        ),
    )
    if not done["changes"]:
        session.printer.document(done, lambda: "unchanged")
        return Outcome(text=f"'{done['environment']}' already is as the change set says.")
    change = done["changes"][-1]
    if wait:
        return follow(session, change, tolerance)
    session.printer.document(done, lambda: f"change {change}", name=change)
    before = "" if done["changed"] else f"It was published before, by {done['published_by']}. "
    return Outcome(text=f"{before}'xdsctl rollout status {change}' follows it.")


@command
def schedule(
    ctx: typer.Context,
    change_set: SetId,
    not_before: NotBefore = "",
    reason: Reason = "",
    version: AtVersion = None,
    accept_loss: AcceptLoss = 0,
) -> Outcome:
    """Let a change set be published by itself, from --not-before or the time that it has on.

    The rights that you have then count. --accept-loss holds for what clients would lose then.
    """
    session = session_of(ctx)
    body = {"reason": reason, "version": version, "not_before": time_to_come(not_before)}
    done: JsonObject = accepting(
        session,
        accept_loss,
        lambda accepted: session.api.post(_path(change_set, "/schedule"), body, accept_loss=accepted),
    )
    return _done(session, done, f"It is published by itself from {done['not_before']} on.")


@command
def cancel(ctx: typer.Context, change_set: SetId, reason: Reason = "", version: AtVersion = None) -> Outcome:
    """Take the last step back: drop a schedule; or make a draft of what was submitted, whatever others said."""
    return _act(session_of(ctx), change_set, "cancel", {"reason": reason, "version": version})


@command
def comment(
    ctx: typer.Context,
    change_set: SetId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What you have to say.")],
    on: Annotated[str, option("What it is about: a resource of the set.", metavar="TYPE/NAME")] = "",
    line: Annotated[
        int | None, typer.Option(min=1, show_default=False, help="And which line of its manifest in YAML.")
    ] = None,
) -> Outcome:
    """Say something about a change set, or about a line of one of its resources."""
    if line is not None and not on:
        raise UsageError("--line is one of a resource; name it with --on TYPE/NAME.")
    about = {**resource_named(on, "--on"), "line": line} if on else {}
    return _act(session_of(ctx), change_set, "comment", {"reason": text, **about})


@command
def delete(ctx: typer.Context, change_set: SetId, yes: Yes = False) -> Outcome:
    """Delete a change set that was not published, with what was said of it."""
    session = session_of(ctx)
    found = _read(session, change_set)
    session.printer.confirm(summary(found).split("\n"), "Delete this change set?", meant=yes)
    session.api.request("DELETE", _path(change_set))
    session.printer.document(
        {"deleted": f"change-set/{found['id']}"}, lambda: f"change set {found['id']}", name=found["id"]
    )
    return Outcome(text="It is deleted.")


def _path(change_set: str, rest: str = "") -> str:
    return f"/change-sets/{segment(change_set)}{rest}"


def _read(session: Session, change_set: str, **parameters: bool) -> JsonObject:
    found: JsonObject = session.api.get(_path(change_set), **parameters)
    return found


def _act(session: Session, change_set: str, act: str, body: Mapping[str, object]) -> Outcome:
    return _done(session, session.api.post(_path(change_set, f"/{act}"), dict(body)))


def _done(session: Session, done: JsonObject, text: str = "") -> Outcome:
    """Print a change set after something was done with it. `text`: the sentence to say where that changed anything."""
    session.printer.document(done, lambda: standing(done), name=done["id"])
    return Outcome(text=text if done["changed"] else "It was so already.")


def _deletions(texts: Iterable[str]) -> JsonObject:
    """The members of a body for what is to be deleted: resources, rules by their id, and groups by their key."""
    found: dict[str, list[Any]] = {}
    for each in texts:
        named = resource_named(each, "--delete")
        word, name = named["type"], named["name"]
        if word == RULE and not (name.isascii() and name.isdecimal()):
            raise UsageError(f"--delete takes a rule by its id, such as rule/12; '{each}' is none.")
        what = named if word not in _DELETED else int(name) if word == RULE else name
        found.setdefault(_DELETED.get(word, "delete"), []).append(what)
    return found


def _placed_in(draft: Draft) -> Placing:
    return lambda error, body: replace(draft, tree=body).located(error)


def _merge(text: str) -> JsonObject:
    """The decision in a text like `cluster/pay=ours`, as an object of the API. Raises UsageError."""
    resource, equals, take = text.rpartition("=")
    if not equals or take not in _TAKES:
        raise UsageError(f"'{text}' must be TYPE/NAME=ours or TYPE/NAME=theirs.")
    return {**resource_named(resource, "A decision"), "take": take}


def _edited_by_hand(session: Session, change_set: str, version: int | None) -> Outcome:
    """Change a change set in the user's editor."""
    before = _read(session, change_set, manifests=True)
    if "edit" not in before["allowed"]:
        raise CommandError(Exit.CONFLICT, f"It is {before['state']}, and cannot be edited. Nothing was changed.")
    shown = {key: before[key] for key in _MEMBERS}
    text = f"{_HINT}\n{as_yaml(shown)}\n"
    file = draft_written(text)
    draft_edited(file)
    if file.read_text("utf-8") == text:
        file.unlink()
        return Outcome(text="Nothing was changed.")
    # From here on the file stays until it is stored: what somebody typed is not thrown away for a mistake.
    try:
        draft = draft_read(str(file))
        said = {key: value for key, value in draft.tree.items() if key not in shown or shown[key] != value}
        # Somebody else may have edited it while it was open here.
        outcome = _patch(session, before, said, version or before["version"], _placed_in(draft))
    except CommandError as error:
        error.text = f"{error.text} Your text is in '{file}'."
        raise
    file.unlink()
    return outcome


def _patch(
    session: Session,
    before: JsonObject,
    said: JsonObject,
    version: int | None,
    placed: Placing,
    *,
    files: Manifests | None = None,
    strict: bool = False,
) -> Outcome:
    """Send what becomes of a change set and print the result. `before`: how it was, with its manifests where `said` has
    contents. `placed`: says of an error about a body where in a file each finding is. `files`: the manifests that the
    body is made of.
    """
    body = dict(said)
    for together in _TOGETHER:
        if any(key in said for key in together):
            body = {**{key: before[key] for key in together}, **body}
    if version is not None:
        body["version"] = version
    try:
        made: JsonObject = session.api.request(
            "PATCH", _path(before["id"]), body=body, parameters={"strict": strict or None}
        ).json()
    except CommandError as error:
        raise placed(error, body) from error
    if files is not None:
        session.printer.remarks(files.spellings(made["findings"]))
    session.printer.document(made, lambda: standing(made), name=made["id"])
    if made["version"] == before["version"]:
        return Outcome(text="It was so already.")
    return Outcome(text=f"It is a draft. 'xdsctl changesets submit {made['id']}' asks others to review it.")
