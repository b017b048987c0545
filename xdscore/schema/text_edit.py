"""Changes one value of a manifest in its text, and leaves the rest of the text as it is, byte for byte. Pure.

The text is edited at the positions that YAML's own parser tells; JSON is edited as the YAML that it is. Each edit is
read back: where the text does not say then what was meant, or cannot be edited so, nothing is changed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import yaml

from xdscore.schema.json_text import read_json
from xdscore.schema.positions import Path, PathPart
from xdscore.schema.text import ManifestLimits, Tree
from xdscore.schema.yaml_out import yaml_inline, yaml_of
from xdscore.schema.yaml_text import read_yaml

LIMITS: Final = ManifestLimits()
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./-]+")


class NotEditableError(Exception):
    """The text is written in a way in which this value cannot be changed alone; nothing was changed."""


def trees_of(text: str) -> dict[int, Tree]:
    """The documents of a text by their numbers; none where it cannot be read."""
    read = (read_json if _is_json(text) else read_yaml)(text, LIMITS)
    return {} if read.findings else {each.number: each.tree for each in read.documents}


def value_at(tree: Tree, path: Path) -> Tree:
    """The value at `path` of a tree; None where there is none."""
    for part in path:
        if isinstance(tree, dict) and isinstance(part, str):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            return None
    return tree


def value_put(text: str, document: int, path: Path, value: Tree) -> str:
    """The text with `value` at `path` of a document; lists and mappings on the way that are missing are made. An index
    that is the length of its list appends. Raises NotEditableError.
    """
    root = _root(text, document)
    edited = _put(_Text(text, _is_json(text)), root, path, value)
    return _proven(text, edited, document, _with(trees_of(text).get(document), path, value))


def value_removed(text: str, document: int, path: Path) -> str:
    """The text without the member or item at `path` of a document, which has to be there. Raises NotEditableError."""
    edited = _removed(_Text(text, _is_json(text)), _root(text, document), path)
    return _proven(text, edited, document, _without(trees_of(text).get(document), path))


def _proven(text: str, edited: str, document: int, wanted: Tree) -> str:
    before, after = trees_of(text), trees_of(edited)
    if not before or after != {**before, document: wanted}:
        raise NotEditableError("The text is written in a way in which this cannot be changed alone: change the text.")
    return edited


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _root(text: str, document: int) -> yaml.Node:
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, RecursionError):
        raise NotEditableError("The text cannot be read: see what is wrong with it first.") from None
    if not 0 <= document < len(nodes):
        raise NotEditableError("The text has changed: this is not there any more.")
    return nodes[document]


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that is edited, and how its values are written."""

    text: str
    json: bool

    def inline(self, value: Tree) -> str:
        """A value as it is written on one line."""
        return json.dumps(value, ensure_ascii=False) if self.json else yaml_inline(value)

    def cut(self, start: int, end: int, new: str = "") -> str:
        return self.text[:start] + new + self.text[end:]

    def line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    def without_lines(self, start: int, end: int) -> str:
        """The text without the lines from that of `start` to that of `end`."""
        first, last = self.line_start(start), self.line_end(end)
        if last < len(self.text):
            return self.cut(first, last + 1)
        return self.cut(max(first - 1, 0), last)


def _put(text: _Text, root: yaml.Node, path: Path, value: Tree) -> str:
    node, key = root, None
    for done, part in enumerate(path):
        child = _child(node, part)
        if child is None:
            return _added(text, node, key, part, _nested(path[done + 1 :], value))
        key, node = child
    return _replaced(text, node, key, value)


def _child(node: yaml.Node, part: PathPart) -> "tuple[yaml.Node | None, yaml.Node] | None":
    """The key, which items of lists have not, and the value of a member or item; None where there is none."""
    if isinstance(node, yaml.MappingNode) and isinstance(part, str):
        return next(((key, value) for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return None, node.value[part]
    return None


def _nested(path: Path, value: Tree) -> Tree:
    for part in reversed(path):
        value = {part: value} if isinstance(part, str) else [value]
    return value


def _replaced(text: _Text, node: yaml.Node, key: "yaml.Node | None", value: Tree) -> str:
    start, end = node.start_mark.index, _end(text, node)
    if isinstance(node, yaml.ScalarNode) and start < end:
        return text.cut(start, end, _in_style(text, node, value))
    # An empty value, or a list or mapping that ends on other lines: whatever it was begins behind its key's colon.
    if key is None:
        return text.cut(start, end, text.inline(value))
    colon = text.text.index(":", _end(text, key))
    return text.cut(colon + 1, max(end, colon + 1), " " + text.inline(value))


def _in_style(text: _Text, node: yaml.ScalarNode, value: Tree) -> str:
    """A value in the quotes that the one before it had, or without any, where that says the same."""
    plain = isinstance(value, str) and not node.style and _PLAIN.fullmatch(value) and not text.json
    if plain and trees_of(f"- {value}") == {0: [value]}:
        return str(value)
    if isinstance(value, str) and value.isprintable():
        if node.style == '"':
            return json.dumps(value, ensure_ascii=False)
        if node.style == "'":
            return "'" + value.replace("'", "''") + "'"
    return text.inline(value)


def _added(text: _Text, node: yaml.Node, key: "yaml.Node | None", part: PathPart, value: Tree) -> str:
    """The text with a new member or item in a mapping or list, behind all that it has."""
    if isinstance(node, yaml.ScalarNode) and node.value in ("", "~", "null") and not node.style:
        return _replaced(text, node, key, _nested((part,), value))
    is_mapping = isinstance(node, yaml.MappingNode)
    if not isinstance(node, yaml.CollectionNode) or is_mapping is not isinstance(part, str):
        raise NotEditableError("Something else stands here in the text: change the text.")
    if not is_mapping and part != len(node.value):
        raise NotEditableError("The text has changed: this is not there any more.")
    if node.flow_style:
        inner = text.inline(_nested((part,), value))[1:-1]
        if not node.value:
            return text.cut(node.start_mark.index + 1, node.end_mark.index - 1, inner)
        last = node.value[-1]
        first_mark = (last[0] if is_mapping else last).start_mark
        own_line = (
            first_mark.line > node.start_mark.line
            and not text.text[text.line_start(first_mark.index) : first_mark.index].strip()
        )
        end = _end(text, _last(node))
        return text.cut(end, end, (",\n" + " " * first_mark.column if own_line else ", ") + inner)
    column = node.value[0][0].start_mark.column if is_mapping else node.start_mark.column
    block = yaml_of(_nested((part,), value)).rstrip("\n").replace("\n", "\n" + " " * column)
    end = text.line_end(_end(text, _last(node)))
    return text.cut(end, end, "\n" + " " * column + block)


def _last(node: yaml.CollectionNode) -> yaml.Node:
    return cast(yaml.Node, node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1])


def _end(text: _Text, node: yaml.Node) -> int:
    """Where a value ends, without the comments and empty lines behind it that the parser counts in."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = _last(node)
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return len(text.text[:end].rstrip("\n "))
    return end


def _removed(text: _Text, root: yaml.Node, path: Path) -> str:
    parent, above = root, None
    for part in path[:-1]:
        child = _child(parent, part)
        if child is None:
            raise NotEditableError("The text has changed: this is not there any more.")
        above, parent = child
    found = _child(parent, path[-1])
    if found is None or not isinstance(parent, yaml.CollectionNode):
        raise NotEditableError("The text has changed: this is not there any more.")
    if len(parent.value) == 1 and not parent.flow_style:
        return _replaced(text, parent, above, {} if isinstance(parent, yaml.MappingNode) else [])
    start, end = (found[0] or found[1]).start_mark.index, _end(text, found[1])
    spans = list(_spans(text, parent))
    place = spans.index((start, end))
    if parent.flow_style:
        if place + 1 < len(spans):
            return text.cut(start, spans[place + 1][0])
        return text.cut(spans[place - 1][1] if place else start, end)
    before = text.text[text.line_start(start) : start]
    if before.strip() and isinstance(parent, yaml.MappingNode):  # behind the dash of its list item
        behind = spans[1][0]
        return text.cut(start, behind if not text.text[end:behind].strip() else text.line_end(end))
    return text.without_lines(start, end)


def _spans(text: _Text, node: yaml.CollectionNode) -> Iterator[tuple[int, int]]:
    for each in node.value:
        key, value = each if isinstance(node, yaml.MappingNode) else (each, each)
        yield key.start_mark.index, _end(text, value)


def _with(tree: Tree, path: Path, value: Tree) -> Tree:
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(part, str):
        members = dict(tree) if isinstance(tree, dict) else {}
        return {**members, part: _with(members.get(part), rest, value)}
    items = list(tree) if isinstance(tree, list) else []
    before = items[part] if part < len(items) else None
    return [*items[:part], _with(before, rest, value), *items[part + 1 :]]


def _without(tree: Tree, path: Path) -> Tree:
    part, rest = path[0], path[1:]
    if isinstance(tree, dict) and isinstance(part, str):
        return {key: _without(each, rest) if rest and key == part else each for key, each in tree.items()
                if rest or key != part}  # fmt: skip
    if isinstance(tree, list) and isinstance(part, int):
        return [_without(each, rest) if rest and place == part else each for place, each in enumerate(tree)
                if rest or place != part]  # fmt: skip
    return tree
