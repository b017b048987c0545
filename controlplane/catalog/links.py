"""Which resources need each other: what a resource refers to, and what refers to it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.db import models

from controlplane.catalog.models import Reference, Resource
from xdscore.resource_types import ResourceType

_MAX_LINKS: Final = 200  # of one resource and direction
_MAX_READ: Final = 2_000  # of one level of a tree, before those of other resources of the same names are left out
_CHUNK: Final = 1_000  # as many names as one statement asks about
Key = tuple[str, str]
"""The word of a type, and a resource's name."""
Content = tuple[str, str, str]
"""The word of a type, a resource's name, and the version of its content on the wire."""
_IN_A_LIST: Final = "/resources/"  # begins a pointer into an apply of several


@dataclass(frozen=True, slots=True)
class LinkedName:
    """A resource at one end of a reference. `pointer` leads to the field, in the referring manifest, that holds the
    reference; `present`: the resource exists in the environment.
    """

    type: str
    name: str
    pointer: str
    present: bool


class Link(NamedTuple):
    """A reference: the resource `source` refers to `target`, whether or not that exists. `pointer` leads to the field,
    in the manifest of `source`, that names it.
    """

    source: Key
    target: Key
    pointer: str


def links_all(*, environment_key: str) -> tuple[Link, ...]:
    """The references of the newest revisions of all resources of an environment. One query."""
    return _links(_current(environment_key))


def links_out(*, environment_key: str, sources: Collection[Key]) -> tuple[Link, ...]:
    """All references of the newest revisions of these resources. A query for each thousand."""
    wanted = set(sources)
    return tuple(
        link
        for some in _chunks(wanted)
        for link in _links(
            _current(environment_key).filter(
                revision__resource__type__in={word for word, _ in some},
                revision__resource__name__in=[name for _, name in some],
            )
        )
        if link.source in some
    )


def links_in(*, environment_key: str, targets: Collection[Key], limit: int) -> tuple[Link, ...]:
    """The references of newest revisions to these names, whether or not a resource has them: the first `limit` by type
    and name of the resource that refers. A query for each thousand.
    """
    found: list[Link] = []
    for some in _chunks(set(targets)):
        rows = _current(environment_key).filter(
            to_type__in={word for word, _ in some}, to_name__in=[name for _, name in some]
        )
        ordered = rows.order_by("revision__resource__type", "revision__resource__name")
        found += [link for link in _links(ordered[:limit]) if link.target in some]
    return tuple(found[:limit])


def users_counted(*, environment_key: str, keys: Collection[Key]) -> Mapping[Key, int]:
    """How many resources refer to each of these names; a name to which none refers is left out. A query for each
    thousand.
    """
    found: dict[Key, int] = {}
    for some in _chunks(set(keys)):
        rows = _current(environment_key).filter(
            to_type__in={word for word, _ in some}, to_name__in=[name for _, name in some]
        )
        counted = rows.order_by().values_list("to_type", "to_name").annotate(count=models.Count("pk"))
        found |= {(word, name): count for word, name, count in counted if (word, name) in some}
    return found


def used_by(*, environment_key: str, kind: ResourceType, name: str) -> tuple[LinkedName, ...]:
    """The resources that refer to a name, whether or not a resource has it; the first 200 by type and name."""
    rows = _current(environment_key).filter(to_type=kind.word, to_name=name)
    columns = ("revision__resource__type", "revision__resource__name", "pointer")
    return tuple(
        LinkedName(word, user, _within(pointer), present=True)
        for word, user, pointer in rows.order_by(*columns[:2]).values_list(*columns)[:_MAX_LINKS]
    )


def links_from(*, environment_key: str, keys: Collection[Key]) -> Mapping[Key, Sequence[LinkedName]]:
    """The references of the newest revisions of these resources, by type and name of the resource that refers. Two
    queries.
    """
    rows = _current(environment_key).filter(
        revision__resource__type__in={word for word, _ in keys},
        revision__resource__name__in={name for _, name in keys},
    )
    columns = ("revision__resource__type", "revision__resource__name", "to_type", "to_name", "pointer")
    found = list(rows.order_by("to_type", "to_name").values_list(*columns)[:_MAX_READ])
    links = present_names(
        environment_key=environment_key, named=[(word, name, pointer) for _, _, word, name, pointer in found]
    )
    return _grouped(((row[0], row[1]), link) for row, link in zip(found, links, strict=True))


def references_of(
    *, environment_key: str, contents: Collection[Content], types: Collection[str]
) -> Mapping[Content, frozenset[Key]]:
    """The names of these types to which each of these contents, (type, name, version), refers; contents that refer to
    none, or that no revision has, are left out. A query for each thousand.
    """
    found: dict[Content, set[Key]] = {}
    ordered = sorted(set(contents))
    for start in range(0, len(ordered), _CHUNK):
        some = set(ordered[start : start + _CHUNK])
        rows = Reference.objects.filter(
            revision__resource__environment__key=environment_key,
            revision__resource__type__in={word for word, _, _ in some},
            revision__resource__name__in=[name for _, name, _ in some],
            revision__version__in={version for _, _, version in some},
            to_type__in=types,
        )
        columns = ("revision__resource__type", "revision__resource__name", "revision__version", "to_type", "to_name")
        for word, name, version, to_type, to_name in rows.values_list(*columns):
            if (word, name, version) in some:
                found.setdefault((word, name, version), set()).add((to_type, to_name))
    return {content: frozenset(keys) for content, keys in found.items()}


def links_to(*, environment_key: str, keys: Collection[Key]) -> Mapping[Key, Sequence[LinkedName]]:
    """The resources that refer to each of these names, by type and name of what is referred to, whether or not that
    exists. One query.
    """
    rows = _current(environment_key).filter(
        to_type__in={word for word, _ in keys}, to_name__in={name for _, name in keys}
    )
    columns = ("revision__resource__type", "revision__resource__name", "to_type", "to_name", "pointer")
    found = rows.order_by(*columns[:2]).values_list(*columns)[:_MAX_READ]
    return _grouped(
        ((to_type, to_name), LinkedName(word, user, _within(pointer), present=True))
        for word, user, to_type, to_name, pointer in found
    )


def present_names(*, environment_key: str, named: Sequence[tuple[str, str, str]]) -> tuple[LinkedName, ...]:
    """A LinkedName for each (type, name, pointer) in `named`, which says whether the resource exists in the
    environment. One query.
    """
    rows = Resource.objects.filter(
        environment__key=environment_key, deleted=False, name__in={name for _, name, _ in named}
    )
    present = set(rows.values_list("type", "name")) if named else set()
    return tuple(LinkedName(word, name, _within(pointer), (word, name) in present) for word, name, pointer in named)


def _chunks(keys: Collection[Key]) -> Iterator[set[Key]]:
    ordered = sorted(keys)
    for start in range(0, len(ordered), _CHUNK):
        yield set(ordered[start : start + _CHUNK])


def _links(rows: models.QuerySet[Reference]) -> tuple[Link, ...]:
    columns = ("revision__resource__type", "revision__resource__name", "to_type", "to_name", "pointer")
    return tuple(
        Link((word, name), (to_type, to_name), _within(pointer))
        for word, name, to_type, to_name, pointer in rows.values_list(*columns)
    )


def _grouped(links: Iterable[tuple[Key, LinkedName]]) -> Mapping[Key, Sequence[LinkedName]]:
    found: dict[Key, list[LinkedName]] = {}
    for key, link in links:
        found.setdefault(key, []).append(link)
    return found


def _within(pointer: str) -> str:
    """The pointer from the root of the manifest; a stored pointer begins with the manifest's place in the body of an
    apply.
    """
    if not pointer.startswith(_IN_A_LIST):
        return pointer
    place, slash, field = pointer[len(_IN_A_LIST) :].partition("/")
    return slash + field if slash and place.isdecimal() else pointer


def _current(environment_key: str) -> models.QuerySet[Reference]:
    return Reference.objects.filter(
        revision__resource__environment__key=environment_key,
        revision__resource__deleted=False,
        revision__resource__head=models.F("revision"),
    )
