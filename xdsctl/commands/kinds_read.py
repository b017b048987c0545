"""`get` and `describe` of environments, client groups and access rules."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import typer

from xdsctl.api import segment
from xdsctl.commands.access import RULE_COLUMNS
from xdsctl.commands.environments import ENVIRONMENT_COLUMNS
from xdsctl.exits import JsonObject
from xdsctl.output import Column, ago, as_yaml
from xdsctl.session import Session, command, session_of

_SHOWN: Final = 10  # writes of the history; -o json has no more either

Key = Annotated[str, typer.Argument(metavar="KEY", help="Its key.")]
RuleId = Annotated[int, typer.Argument(metavar="ID", min=1, help="Its id, as 'xdsctl get rules' lists it.")]
_OneKey = Annotated[str, typer.Argument(metavar="KEY", help="One of them.", show_default=False)]
_OneId = Annotated[int, typer.Argument(metavar="ID", min=0, help="One of them.", show_default=False)]


def _selector(fields: JsonObject) -> str:
    """A selector of environments or matcher of a group as one word for a table, such as
    `identity=a*,metadata.role=b`.
    """
    flat = {key: value for key, value in fields.items() if key != "metadata"}
    flat |= {f"metadata.{key}": value for key, value in fields.get("metadata", {}).items()}
    return ",".join(f"{key}={value}" for key, value in flat.items())


_GROUP_COLUMNS: Final = (
    Column("KEY", lambda row: row["key"]),
    Column("TRUST", lambda row: row["trust"]),
    Column("MATCHERS", lambda row: " or ".join(_selector(each) for each in row["matchers"]) or "nobody"),
    Column("ID", lambda row: row["id"], wide=True),
)


HELP_POSITION: Final = 100


def register(app: typer.Typer) -> None:
    """Add the commands that show environments, client groups and access rules."""
    app.command("get environment")(get_environments)
    app.command("get group")(get_groups)
    app.command("get rule")(get_rules)
    app.command("describe environment")(describe_environment)
    app.command("describe group")(describe_group)
    app.command("describe rule")(describe_rule)


@command
def get_environments(ctx: typer.Context, key: _OneKey = "") -> None:
    """List environments and how they stand, in the order in which clients try them, or print one."""
    session = session_of(ctx)
    _get(session, "/environments", key, ENVIRONMENT_COLUMNS, lambda row: str(row["key"]))


@command
def get_groups(ctx: typer.Context, key: _OneKey = "") -> None:
    """List client groups, or print one."""
    session = session_of(ctx)
    _get(session, session.api.environment("/client-groups"), key, _GROUP_COLUMNS, lambda row: str(row["key"]))


@command
def get_rules(ctx: typer.Context, rule: _OneId = 0) -> None:
    """List access rules in the order in which they are asked, or print one."""
    session = session_of(ctx)
    one = str(rule) if rule else ""
    _get(session, session.api.environment("/rules"), one, RULE_COLUMNS, lambda row: str(row["id"]))


@command
def describe_environment(ctx: typer.Context, key: Key) -> None:
    """Show an environment: whom it takes, its policies, how it stands, its groups and rules, and what they lack."""
    session = session_of(ctx)
    path = f"/environments/{segment(key)}"
    found: JsonObject = {
        **session.api.get(path),
        "groups": list(session.api.pages(f"{path}/client-groups")),
        "rules": list(session.api.pages(f"{path}/rules")),
        "findings": session.api.get(f"{path}/access/review")["findings"],
    }
    session.printer.document(found, lambda: _environment(found), name=key)


@command
def describe_group(ctx: typer.Context, key: Key) -> None:
    """Show a client group: whom it takes, the rules that speak of it, and what was done to it."""
    session = session_of(ctx)
    api = session.api
    group = api.get(api.environment(f"/client-groups/{segment(key)}"))
    rules = [each for each in api.pages(api.environment("/rules")) if group["key"] in each["client_groups"]]
    found: JsonObject = {**group, "rules": rules, "history": _history(session, "group", group["id"])}
    session.printer.document(found, lambda: _group(found), name=group["key"])


@command
def describe_rule(ctx: typer.Context, rule: RuleId) -> None:
    """Show an access rule: of whom and what it speaks, and what was done to it."""
    session = session_of(ctx)
    found: JsonObject = {
        **session.api.get(session.api.environment(f"/rules/{rule}")),
        "history": _history(session, "rule", rule),
    }
    session.printer.document(found, lambda: _rule(found), name=str(found["id"]))


def _get(session: Session, path: str, one: str, columns: Sequence[Column], name: Callable[[JsonObject], str]) -> None:
    """Print all items of the list at `path` or, when `one` is the name of an item, that item alone, as the document
    that `create` and `edit` take. `name` returns an item's name.
    """
    if not one:
        session.printer.rows(session.api.pages(path), columns, name)
        return
    found = session.api.get(f"{path}/{segment(one)}")
    session.printer.document(found, lambda: as_yaml(found), name=name(found))


def _history(session: Session, subject: str, subject_id: int) -> list[Any]:
    """The last changes of one client group or access rule, newest first. `subject` says which of the two it is."""
    path = session.api.environment("/access/history")
    found: list[Any] = session.api.get(path, subject=subject, id=subject_id, limit=_SHOWN)["results"]
    return found


def _environment(found: JsonObject) -> str:
    threshold = found["loss_threshold"]
    lines = [
        f"Key:          {found['key']}",
        f"Status:       {found['status']}" + (f": {found['reason']}" if found["reason"] else ""),
        f"Hold:         {found['hold'] or '-'}",
        f"Epoch:        {found['epoch']}",
        f"Resources:    {', '.join(f'{n} {word}' for word, n in found['statuses'].items() if n) or 'none'}",
        f"Takes:        {' or '.join(_selector(each) for each in found['selectors']) or 'nobody by a selector'}",
        f"Node ids:     {', '.join(found['node_ids']) or 'any'}",
        f"Default:      {found['default_effect']}",
        f"Quarantine:   {found['quarantine']}",
        f"Content:      {', '.join(f'{word} {stance}' for word, stance in found['content'].items())}",
        f"Validation:   {'by an Envoy, too' if found['deep_validation'] else 'by schema'}",
        f"If-Match:     {'required' if found['require_if_match'] else 'not required'}",
        f"Asks before:  {threshold['access_clients']} clients or {threshold['other_percent']} % lose something",
        f"Groups:       {', '.join(each['key'] for each in found['groups']) or 'none'}",
        "Rules:        " + ("none" if not found["rules"] else ""),
        *(f"  {_rule_line(each)}" for each in found["rules"]),
        "Findings:     " + ("none" if not found["findings"] else ""),
        *(f"  {each['severity']} {each['code']}: {each['detail']}" for each in found["findings"]),
    ]
    return "\n".join(lines)


def _group(found: JsonObject) -> str:
    lines = [
        f"Key:       {found['key']}",
        f"Id:        {found['id']}",
        f"Trust:     {found['trust']}",
        "Matchers:  " + ("none: nobody is in it" if not found["matchers"] else ""),
        *(f"  {_selector(each)}" for each in found["matchers"]),
        "Rules:     " + ("none" if not found["rules"] else ""),
        *(f"  {_rule_line(each)}" for each in found["rules"]),
        "History:",
        *_history_lines(found["history"]),
    ]
    return "\n".join(lines)


def _rule(found: JsonObject) -> str:
    lines = [
        f"Id:        {found['id']}",
        f"Position:  {found['position']}",
        f"Effect:    {found['effect']}" + ("" if found["enabled"] else " (disabled: it decides nothing)"),
        f"Groups:    {', '.join(found['client_groups']) or 'anybody'}",
        f"Types:     {', '.join(found['types']) or 'any, but never allows secrets'}",
        f"Pattern:   {found['pattern']}",
        f"Message:   {found['message'] or '-'}",
        "History:",
        *_history_lines(found["history"]),
    ]
    return "\n".join(lines)


def _rule_line(rule: JsonObject) -> str:
    groups, types = ",".join(rule["client_groups"]) or "anybody", ",".join(rule["types"]) or "any type"
    off = "" if rule["enabled"] else " (disabled)"
    return f"{rule['position']}  rule {rule['id']}: {rule['effect']} {types} {rule['pattern']} to {groups}{off}"


def _history_lines(history: Sequence[JsonObject]) -> list[str]:
    return [f"  {ago(each['at'])}  {each['author']}  {each['action']}  change {each['change']}" for each in history]
