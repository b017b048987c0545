"""Paths of a message in the spelling of the tree it was read from: `connect_timeout` or `connectTimeout`."""

from xdscore.schema.positions import Path, PathPart


def camel(name: str) -> str:
    """The lowerCamelCase spelling that protobuf JSON derives from a field's name: each underscore goes, what follows is
    capital.
    """
    head, *tail = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in tail)


def spelled(tree: object, path: Path) -> Path:
    """The path in a message as it leads through `tree`: each field name as the tree spells it (`connect_timeout` or
    `connectTimeout`), and no index where the tree has an item without the list around it. What the tree does not have
    stays as given.
    """
    parts: list[PathPart] = []
    for part in path:
        if isinstance(tree, dict) and isinstance(part, str):
            key = part if part in tree or camel(part) not in tree else camel(part)
            parts.append(key)
            tree = tree.get(key)
        elif isinstance(part, str) or isinstance(tree, list) or tree is None:
            parts.append(part)
            tree = tree[part] if isinstance(tree, list) and isinstance(part, int) and part < len(tree) else None
    return tuple(parts)
