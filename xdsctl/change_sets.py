"""Change sets as people read them: lines and sentences about what is proposed, and how far it has come."""

from typing import Final

from xdsctl.exits import JsonObject
from xdsctl.losses import foreseen_lines
from xdsctl.output import Column, ago, harmless

COLUMNS: Final = (
    Column("ID", lambda row: row["id"]),
    Column("STATE", lambda row: row["state"]),
    Column("APPROVALS", lambda row: f"{row['approvals']} of {row['approvals_needed']}"),
    Column("RESOURCES", lambda row: row["resource_count"]),
    Column("ACCESS", lambda row: row["access_count"] or ""),
    Column("MOVED", lambda row: row["moved_count"] or ""),
    Column("AUTHOR", lambda row: row["authors"][0]),
    Column("EDITED", lambda row: ago(row["edited_at"])),
    Column("TITLE", lambda row: row["title"]),
    Column("VERSION", lambda row: row["version"], wide=True),
    Column("NOT BEFORE", lambda row: row["not_before"], wide=True),
    Column("EXPIRES", lambda row: row["expires"], wide=True),
    Column("WAITS FOR", lambda row: row["waits_for"], wide=True),
    Column("CHANGES", lambda row: ", ".join(row["changes"]), wide=True),
)
_SAID: Final = {"approved": "approved", "rejected": "rejected", "comment": "said"}


def standing(row: JsonObject) -> str:
    """A change set in one line: its id, state and version, and how many approved it."""
    return f"change set {row['id']}: {row['state']}, version {row['version']}, {_approvals(row)}"


def summary(found: JsonObject) -> str:
    """A change set, read by itself, as lines of text for people."""
    lines = [
        f"change set  {found['id']} in {found['environment']}",
        f"title       {harmless(found['title'])}",
        *([f"message     {harmless(found['message'])}"] if found["message"] else ()),
        f"state       {found['state']}, version {found['version']}, edited {ago(found['edited_at'])}",
        f"author      {harmless(', '.join(found['authors']))}",
        f"approvals   {_approvals(found)}" + (", without which it cannot be published" if _lacks(found) else ""),
        *([f"not before  {found['not_before']}"] if found["not_before"] else ()),
        *([f"expires     {found['expires']}"] if found["expires"] else ()),
        *([f"scheduled   by {harmless(found['scheduled_by'])}"] if found["scheduled_by"] else ()),
        *([f"waits for   {harmless(found['waits_for'])}"] if found["waits_for"] else ()),
        *([f"published   by {harmless(found['published_by'])}"] if found["published_by"] else ()),
        *(f"change      {each}" for each in found["changes"]),
        *(f"{_does(each):<12}{_name(each)}" for each in found["diff"]),
        *(_access_line(each) for each in found["access"]),
        *(_moved_line(each) for each in found["moved"]),
        *(_finding_line(each) for each in found["findings"]),
        *(f"lost        {harmless(line)}" for line in (foreseen_lines(found["loss"]) if found["loss"] else ())),
        *(line for each in found["reviews"] for line in _review_lines(each)),
        *([f"possible    {', '.join(found['allowed'])}"] if found["allowed"] else ()),
    ]
    return "\n".join(lines)


def _approvals(row: JsonObject) -> str:
    needed = row["approvals_needed"]
    return f"{row['approvals']} of {needed} approval{'' if needed == 1 else 's'}"


def _lacks(row: JsonObject) -> bool:
    """Whether a change set, which was not published, lacks approvals that it needs for that."""
    return bool(row["review_required"] and row["approvals"] < row["approvals_needed"] and row["state"] != "published")


def _does(difference: JsonObject) -> str:
    """What a change set does to one resource, in a word: also that it writes what is there already."""
    is_same = difference["action"] == "updated" and not difference.get("fields")
    return "unchanged" if is_same else str(difference["action"])


def _access_line(wished: JsonObject) -> str:
    """What a change set does with one rule or group, and whom the rule tells what."""
    is_same = wished["action"] == "updated" and wished["before"] == wished["after"]
    state = wished["after"] or {}
    says = f": {state['effect']} {harmless(state['pattern'])}" if "effect" in state else ""
    return f"{'unchanged' if is_same else wished['action']:<12}{_name(wished)}{says}"


def _finding_line(finding: JsonObject) -> str:
    resource = f"{_name(finding['resource'])}: " if finding.get("resource") else ""
    return f"{finding['severity']:<12}{finding['code']}: {resource}{harmless(finding['detail'])}"


def _name(resource: JsonObject) -> str:
    return harmless(f"{resource['type']}/{resource['name']}")


def _moved_line(moved: JsonObject) -> str:
    before = f"r{moved['from']}" if moved["from"] else "none"
    after = f"r{moved['to']}" if moved["to"] else "deleted"
    by = f", by {harmless(moved['author'])} in change {moved['change']}" if moved["change"] else ""
    return f"moved       {_name(moved)}: {before} -> {after}{by}"


def _review_lines(review: JsonObject) -> list[str]:
    """Lines about what somebody said: who, when and of which version; then the text, of which each line is indented, so
    that none passes for one of ours.
    """
    line = f", line {review['line']}" if review["line"] else ""
    about = f" of {_name(review)}{line}" if review["name"] else ""
    void = ", which does not count any more" if review["verdict"] == "approved" and not review["counts"] else ""
    verb = _SAID[review["verdict"]]
    head = f"{verb:<12}{harmless(review['author'])}{about}, {ago(review['at'])}, at version {review['version']}{void}"
    return [head, *(f"            {line}" for line in review["text"].splitlines())]
