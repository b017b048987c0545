"""What a resource needs, what that needs, and so on; and the same upwards: the tree of links of its page.

Read level by level, one query each, so that a tree costs what it is deep and not what it is wide.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.catalog.links import Key, LinkedName, links_from, links_to, present_names
from xdscore.resource_types import ResourceType
from xdscore.schema import ParsedResource

MAX_LEVELS: Final = 4  # a listener, its routes, their clusters, their endpoints
_MAX_LINKS: Final = 200  # of a tree

_Level = Mapping[Key, Sequence[LinkedName]]


@dataclass(frozen=True, slots=True)
class Branch:
    """A reference to a resource (`link`), with the references of that resource `below` it. `again`: `below` is empty
    because the tree shows it at another place.
    """

    link: LinkedName
    below: tuple["Branch", ...]
    again: bool


def uses_tree(*, environment_key: str, kind: ResourceType, name: str) -> tuple[Branch, ...]:
    """The resources that a resource refers to, and what these refer to in turn, four levels deep; at most 200, whether
    or not they exist.
    """
    return _tree((kind.word, name), lambda keys: links_from(environment_key=environment_key, keys=keys))


def users_tree(*, environment_key: str, kind: ResourceType, name: str) -> tuple[Branch, ...]:
    """The resources that refer to a name, and what refers to these in turn, four levels deep; at most 200. The name
    need not exist.
    """
    return _tree((kind.word, name), lambda keys: links_to(environment_key=environment_key, keys=keys))


def needs_of(*, environment_key: str, parsed: ParsedResource) -> tuple[LinkedName, ...]:
    """The resources that `parsed`, which is not stored yet, refers to, each with whether it exists in the
    environment.
    """
    named = [(each.type, each.name, each.pointer) for each in parsed.references[:_MAX_LINKS]]
    return present_names(environment_key=environment_key, named=named)


def _tree(root: Key, level: Callable[[Collection[Key]], _Level]) -> tuple[Branch, ...]:
    links: dict[Key, Sequence[LinkedName]] = {}
    wanted, room = [root], _MAX_LINKS
    for _ in range(MAX_LEVELS):
        found = level(wanted)
        for key in wanted:
            links[key] = found.get(key, ())[:room]
            room -= len(links[key])
        below = (_key(link) for key in wanted for link in links[key])
        wanted = [key for key in dict.fromkeys(below) if key not in links]
        if not wanted or room <= 0:
            break
    seen: set[Key] = {root}
    return _branches(links[root], links, seen)


def _branches(some: Iterable[LinkedName], links: _Level, seen: set[Key]) -> tuple[Branch, ...]:
    branches = []
    for link in some:
        key = _key(link)
        again = key in seen and bool(links.get(key))
        seen.add(key)
        branches.append(Branch(link, () if again else _branches(links.get(key, ()), links, seen), again))
    return tuple(branches)


def _key(link: LinkedName) -> Key:
    return link.type, link.name
