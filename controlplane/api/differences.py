"""Two states of resources beside each other, field by field: planned edits and what is stored, or two epochs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from controlplane.api.views.changes import edit_json
from controlplane.catalog.differences import ResourceDifference, states_differ
from controlplane.catalog.manifests import manifest_of, manifest_of_parsed
from controlplane.catalog.selectors import resources_named
from controlplane.catalog.values import EditedResource
from controlplane.explain.impact import Edited, Impact, Loss
from xdscore.schema import ParsedResource
from xdscore.schema.differences import FieldDifference, field_differences
from xdscore.snapshot import EntryKey

MAX_RESOURCES: Final = 1_000  # listed; more are counted
MAX_FIELDS: Final = 200  # of one resource; more are counted
MAX_LOSING: Final = 100  # clients; more are counted


def edits_json(
    edits: Sequence[EditedResource], *, environment_key: str, parsed: Iterable[ParsedResource], text: bool
) -> list[dict[str, object]]:
    """Planned edits as JSON, each with the fields that differ and, with `text`, the unified difference of the
    manifests. `parsed`: the resources to be written. Secrets are left out.
    """
    after = {(each.type.word, each.name): each for each in parsed}
    there = [(edit.type, edit.name) for edit in edits if edit.action != "created"]
    before = {key: manifest_of(found) for key, found in resources_named(environment_key=environment_key, keys=there)}
    found: list[dict[str, object]] = []
    for edit in edits:
        key = (edit.type, edit.name)
        new = manifest_of_parsed(after[key]) if edit.action != "deleted" else None
        found.append({**difference_json(ResourceDifference(key, before.get(key), new), text=text), **edit_json(edit)})
    return found


def content_edits(diff: Iterable[Mapping[str, object]]) -> tuple[Edited, ...]:
    """The edits that clients would see, from `diff` as `edits_json` made it. An edit that changes only the owner is
    left out.
    """
    return tuple(
        Edited(str(each["type"]), str(each["name"]), each["action"] == "deleted")
        for each in diff
        if each["action"] != "updated" or each["fields"]
    )


def impact_json(impact: Impact) -> dict[str, object]:
    """How an apply would affect connected clients, as JSON. The group with the key null has the clients that are in no
    group.
    """
    return {
        "connected": impact.connected,
        "receive": impact.receive,
        "lose": len(impact.losing),
        "groups": [
            {"key": each.key or None, "connected": each.connected, "receive": each.receive, "lose": each.lose}
            for each in impact.groups
        ],
        "losing": [_loss_json(each) for each in impact.losing[:MAX_LOSING]],
        "losing_omitted": max(0, len(impact.losing) - MAX_LOSING),
    }


def _loss_json(loss: Loss) -> dict[str, object]:
    named = [{"type": word, "name": name} for word, name in loss.resources[:MAX_RESOURCES]]
    return {"client": loss.client, "identity": loss.facts.identity, "node_id": loss.facts.node_id, "resources": named}


def states_json(
    before: Mapping[EntryKey, str], after: Mapping[EntryKey, str], *, environment_key: str, text: bool
) -> dict[str, object]:
    """The resources that differ between two states of an environment, as JSON; with `text`, also the unified difference
    of each. A state is given as the address (hash) of each resource's content.
    """
    count, found = states_differ(before, after, environment_key=environment_key, limit=MAX_RESOURCES)
    return {"count": count, "diff": [difference_json(each, text=text) for each in found]}


def difference_json(difference: ResourceDifference, *, text: bool) -> dict[str, object]:
    """A resource that differs between two states as JSON, with the fields that differ and, with `text`, the unified
    difference of its manifests.
    """
    members: dict[str, object] = {"type": difference.word, "name": difference.name, "action": difference.action}
    if difference.action == "updated":
        fields = field_differences(difference.before, difference.after)
        members["fields"] = [_field_json(field) for field in fields[:MAX_FIELDS]]
        members["fields_omitted"] = max(0, len(fields) - MAX_FIELDS)
    if text:
        members["text"] = difference.text
    return members


def _field_json(field: FieldDifference) -> dict[str, object]:
    return {"pointer": field.pointer, "before": field.before, "after": field.after}
