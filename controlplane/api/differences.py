"""What an apply would change, field by field: the planned edits beside what is stored."""

from collections.abc import Iterable, Sequence
from typing import Final

from controlplane.api.manifests import manifest_of, manifest_of_parsed
from controlplane.api.views.changes import edit_json
from controlplane.catalog.selectors import resources_named
from controlplane.catalog.values import EditedResource
from xdscore.schema import ParsedResource, Tree
from xdscore.schema.differences import FieldDifference, field_differences, unified_text

MAX_FIELDS: Final = 200  # of one resource; more are counted


def edits_json(
    edits: Sequence[EditedResource], *, environment_key: str, parsed: Iterable[ParsedResource], text: bool
) -> list[dict[str, object]]:
    """The edits with the fields that differ; with `text` also as unified text. No secret is in any of it."""
    after = {(each.type.word, each.name): each for each in parsed}
    there = [(edit.type, edit.name) for edit in edits if edit.action != "created"]
    before = {key: manifest_of(found) for key, found in resources_named(environment_key=environment_key, keys=there)}
    return [
        _edit_json(
            edit,
            before.get((edit.type, edit.name)),
            manifest_of_parsed(after[edit.type, edit.name]) if edit.action != "deleted" else None,
            text=text,
        )
        for edit in edits
    ]


def _edit_json(edit: EditedResource, before: Tree, after: Tree, *, text: bool) -> dict[str, object]:
    members: dict[str, object] = edit_json(edit)
    if edit.action == "updated":
        fields = field_differences(before, after)
        members["fields"] = [_field_json(field) for field in fields[:MAX_FIELDS]]
        members["fields_omitted"] = max(0, len(fields) - MAX_FIELDS)
    if text:
        members["text"] = unified_text(f"{edit.type}/{edit.name}", before, after)
    return members


def _field_json(field: FieldDifference) -> dict[str, object]:
    return {"pointer": field.pointer, "before": field.before, "after": field.after}
