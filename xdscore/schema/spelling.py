"""Paths of a message in the spelling of the tree it was read from: `connect_timeout` or `connectTimeout`."""

from xdscore.schema.positions import Path, PathPart


def camel(name: str) -> str:
    """The lowerCamelCase spelling that protobuf JSON derives from a field's name: each underscore goes, what follows is
    capital.
    """
    head, *tail = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in tail)


def spelled(tree: object, path: Path) -> Path:
    """The path with each field name as `tree` spells it (`connect_timeout` or `connectTimeout`); names that the tree
    does not have stay as given.
    """
    parts: list[PathPart] = []
    for part in path:
        if isinstance(tree, dict) and isinstance(part, str):
            key = part if part in tree or camel(part) not in tree else camel(part)
            parts.append(key)
            tree = tree.get(key)
        else:
            parts.append(part)
            tree = tree[part] if isinstance(tree, list) and isinstance(part, int) and part < len(tree) else None
    return tuple(parts)
