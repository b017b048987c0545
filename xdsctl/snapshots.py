"""Snapshots as people read them: what an environment served when, because of whom and why, and how two differ."""

from typing import Final

from xdsctl.exits import JsonObject
from xdsctl.output import Column, ago, harmless

_FIELDS: Final = 3  # of a resource in one line; --text and -o json have all


def _changes(row: JsonObject) -> list[JsonObject]:
    """The changes that a snapshot was built for; none from a server of the version before, which does not say."""
    found: list[JsonObject] = row.get("changes", [])
    return found


def _because(row: JsonObject) -> str:
    """Why there is a snapshot: the message of its newest change that has one, and how many changes there are beside."""
    changes = _changes(row)
    if not changes:
        return ""
    said = next((each for each in changes if each["message"]), changes[0])
    more = row["change_count"] - 1
    return (said["message"] or f"({said['kind']})") + (f" (and {more} more)" if more else "")


def _fields(row: JsonObject) -> str:
    pointers = [each["pointer"] for each in row.get("fields", [])]
    more = len(pointers) + row.get("fields_omitted", 0) - _FIELDS
    return " ".join(pointers[:_FIELDS]) + (f" and {more} more" if more > 0 else "")


COLUMNS: Final = (
    Column("EPOCH", lambda row: row["epoch"]),
    Column("PUBLISHED", lambda row: ago(row["published_at"])),
    Column("RESOURCES", lambda row: sum(row["counts"].values())),
    Column("AUTHOR", lambda row: ", ".join(dict.fromkeys(each["author"] for each in _changes(row)))),
    Column("MESSAGE", _because),
    Column("CHANGES", lambda row: ", ".join(each["id"] for each in _changes(row)), wide=True),
    Column("GENERATION", lambda row: row["generation"], wide=True),
    Column("LINEAGE", lambda row: row["lineage"], wide=True),
)
DIFFERENCE_COLUMNS: Final = (
    Column("ACTION", lambda row: row["action"]),
    Column("TYPE", lambda row: row["type"]),
    Column("NAME", lambda row: row["name"]),
    Column("FIELDS", _fields),
)


def differences(rows: list[JsonObject]) -> list[str]:
    """Lines about resources that differ between two snapshots, one each."""
    return [harmless(f"{row['action']:<8} {row['type']}/{row['name']}  {_fields(row)}".rstrip()) for row in rows]


def snapshot_text(found: JsonObject) -> str:
    """A snapshot, read by itself, as lines of text for people."""
    counts = ", ".join(f"{word} {count}" for word, count in found["counts"].items())
    lines = [
        f"Epoch:      {found['epoch']}",
        f"Published:  {ago(found['published_at'])} ({found['published_at']})",
        f"Resources:  {sum(found['counts'].values())}" + (f" ({counts})" if counts else ""),
        f"Held back:  {found['held_back_count'] or 'nothing'}",
        *(f"  {each['type']}/{each['name']}  {each['code']}: {each['reason']}" for each in found["held_back"]),
        "Changes:    " + ("not kept any more" if not _changes(found) else ""),
        *(
            f"  {each['id']}  {ago(each['created_at'])}  {each['author']}  {each['message'] or each['kind']}"
            for each in _changes(found)
        ),
    ]
    if found.get("change_count", 0) > len(_changes(found)):
        lines.append(f"  and {found['change_count'] - len(_changes(found))} more")
    return "\n".join(map(harmless, lines))
