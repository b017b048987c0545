"""What differs between two manifests of one resource: field by field, and as the unified text that people review.

Both sides are trees as `to_json` makes them: secrets read as `<kept:HASH>`, so a difference shows that one changed and
nothing of what it is.
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from xdscore.schema.positions import Path, pointer_of
from xdscore.schema.text import Tree

_CONTEXT_LINES = 3


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One value that differs between two trees. `before` or `after` is None where that side has no value."""

    pointer: str
    before: Tree
    after: Tree


def field_differences(before: Tree, after: Tree) -> tuple[FieldDifference, ...]:
    """Every value that differs, outermost first. A member that was added or removed is one difference, whatever it
    holds.

    Items of lists are compared by their `name` where all have one, else by their place.
    """
    return tuple(_differences(before, after, ()))


def unified_text(label: str, before: Tree, after: Tree) -> str:
    """The unified diff of two trees as YAML, with `label` as the file's name; None: the resource does not exist on that
    side. Empty if they are equal.
    """
    old, new = _lines(before), _lines(after)
    left = f"a/{label}" if before is not None else "/dev/null"
    right = f"b/{label}" if after is not None else "/dev/null"
    return "".join(difflib.unified_diff(old, new, left, right, n=_CONTEXT_LINES))


def _lines(tree: Tree) -> list[str]:
    if tree is None:
        return []
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=120).splitlines(keepends=True)


def _differences(before: Tree, after: Tree, path: Path) -> Iterator[FieldDifference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            yield from _differences(before.get(key), after.get(key), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    elif before != after or type(before) is not type(after):
        yield FieldDifference(pointer_of(path), before, after)


def _of_lists(before: list[Tree], after: list[Tree], path: Path) -> Iterator[FieldDifference]:
    old, new = _by_name(before), _by_name(after)
    if old is None or new is None or [*old] == [*new]:
        for index in range(max(len(before), len(after))):
            one = before[index] if index < len(before) else None
            other = after[index] if index < len(after) else None
            yield from _differences(one, other, (*path, index))
        return
    # Named items: one that was put in between moves the others, which is no change of theirs.
    for name, index in old.items():
        if name not in new:
            yield FieldDifference(pointer_of((*path, index)), before[index], None)
    for name, index in new.items():
        one = before[old[name]] if name in old else None
        yield from _differences(one, after[index], (*path, index))
    if [name for name in old if name in new] != [name for name in new if name in old]:
        # Order has a meaning nearly everywhere in xDS: filters, routes, domains.
        yield FieldDifference(pointer_of(path), [*old], [*new])


def _by_name(items: list[Tree]) -> dict[str, int] | None:
    """The index of each item by its `name`; None unless every item has a name and no two share one."""
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    found = {name: index for index, name in enumerate(names) if isinstance(name, str)}
    return found if len(found) == len(items) and found else None
