"""Two states of resources beside each other, field by field: planned edits and what is stored, or two epochs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from controlplane.api.views.changes import edit_json
from controlplane.catalog.contents import contents_at
from controlplane.catalog.manifests import manifest_of, manifest_of_parsed
from controlplane.catalog.selectors import resources_named
from controlplane.catalog.values import EditedResource
from xdscore.schema import ParsedResource, Tree
from xdscore.schema.differences import FieldDifference, field_differences, unified_text
from xdscore.snapshot import EntryKey

MAX_RESOURCES: Final = 1_000  # listed; more are counted
MAX_FIELDS: Final = 200  # of one resource; more are counted


def edits_json(
    edits: Sequence[EditedResource], *, environment_key: str, parsed: Iterable[ParsedResource], text: bool
) -> list[dict[str, object]]:
    """Planned edits with the fields that differ; with `text` also as unified text. No secret is in any of it."""
    after = {(each.type.word, each.name): each for each in parsed}
    there = [(edit.type, edit.name) for edit in edits if edit.action != "created"]
    before = {key: manifest_of(found) for key, found in resources_named(environment_key=environment_key, keys=there)}
    found: list[dict[str, object]] = []
    for edit in edits:
        key = (edit.type, edit.name)
        new = manifest_of_parsed(after[key]) if edit.action != "deleted" else None
        found.append({**_difference_json(key, before.get(key), new, text=text), **edit_json(edit)})
    return found


def states_json(
    before: Mapping[EntryKey, str], after: Mapping[EntryKey, str], *, environment_key: str, text: bool
) -> dict[str, object]:
    """What differs between two states of an environment, each given as the addresses of its contents."""
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    shown = keys[:MAX_RESOURCES]

    def manifests(state: Mapping[EntryKey, str]) -> dict[EntryKey, Tree]:
        addresses = {key: state[key] for key in shown if key in state}
        found = contents_at(environment_key=environment_key, addresses=addresses)
        return {key: manifest_of(content) for key, content in found}

    old, new = manifests(before), manifests(after)
    return {"count": len(keys), "diff": [_difference_json(key, old.get(key), new.get(key), text=text) for key in shown]}


def _difference_json(key: EntryKey, before: Tree, after: Tree, *, text: bool) -> dict[str, object]:
    word, name = key
    action = "created" if before is None else "deleted" if after is None else "updated"
    members: dict[str, object] = {"type": word, "name": name, "action": action}
    if action == "updated":
        fields = field_differences(before, after)
        members["fields"] = [_field_json(field) for field in fields[:MAX_FIELDS]]
        members["fields_omitted"] = max(0, len(fields) - MAX_FIELDS)
    if text:
        members["text"] = unified_text(f"{word}/{name}", before, after)
    return members


def _field_json(field: FieldDifference) -> dict[str, object]:
    return {"pointer": field.pointer, "before": field.before, "after": field.after}
