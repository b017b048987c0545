"""Reads which names something is served of, and what refers to names."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from django.db import models

from controlplane.builder.selectors import held_rows
from controlplane.catalog.guarding import Prospect
from controlplane.catalog.models import Reference, Resource
from controlplane.catalog.selectors import environment_get
from controlplane.loss.worlds import Links
from xdscore.names import canonical
from xdscore.snapshot import EntryKey

_CHUNK = 500


def names_served(*, environment_key: str, wanted: Mapping[str, Collection[str] | None]) -> Mapping[str, frozenset[str]]:
    """The canonical names of which something is served, by type word: of those that are `wanted` of the type, or of
    all.

    What is not published yet, and what nothing stands in for, no client has.
    """
    unserved = _unserved(environment_key)
    found = {}
    for word, names in wanted.items():
        rows = Resource.objects.filter(environment__key=environment_key, type=word, deleted=False)
        if names is None:
            there: Iterable[str] = rows.values_list("name", flat=True)
        else:
            there = (
                name for chunk in _chunks(names) for name in rows.filter(name__in=chunk).values_list("name", flat=True)
            )
        found[word] = frozenset(canonical(name) for name in there if (word, name) not in unserved)
    return found


def _unserved(environment_key: str) -> set[EntryKey]:
    held = held_rows(environment_keys=[environment_key], served=False).filter(kinds=[])
    unserved = set(held.values_list("type", "name"))
    environment = environment_get(key=environment_key)
    if environment.generation > environment.built_generation:
        first = Resource.objects.filter(
            environment__key=environment_key, counter=1, head__change__generation__gt=environment.built_generation
        )
        unserved.update(first.values_list("type", "name"))
    return unserved


def links_read(
    *,
    environment_key: str,
    keys: Collection[EntryKey],
    of_wildcards: Collection[str],
    prospect: Prospect | None = None,
) -> Links:
    """The resources that refer to these names, now and after the write, and the names that something ever referred to.
    The latter matters for types that somebody asks for with a wildcard, which are `of_wildcards`, and is read for these
    alone.
    """
    ever = Reference.objects.filter(revision__resource__environment=environment_get(key=environment_key).id)
    current = ever.filter(revision__resource__deleted=False, revision__resource__head=models.F("revision"))
    wanted = frozenset(keys)
    now: dict[EntryKey, list[EntryKey]] = {}
    for to_word, to_name, word, name in _to(current, wanted, *_FROM):
        now.setdefault((to_word, to_name), []).append((word, name))
    unused = {key for key in wanted - now.keys() if key[0] in of_wildcards}
    once: dict[str, set[str]] = {}
    for word, name in (*now, *_to(ever, unused)):
        once.setdefault(word, set()).add(name)
    then = now if prospect is None else _then(now, frozenset(keys), prospect)
    return Links(now, then, {word: frozenset(names) for word, names in once.items()})


_FROM = ("revision__resource__type", "revision__resource__name")


def _to(rows: models.QuerySet[Reference], keys: Collection[EntryKey], *columns: str) -> Iterator[tuple[str, ...]]:
    """The type and name that each of these references leads to, with the values of these columns, as far as they are
    among the keys.
    """
    if len(keys) > _CHUNK:  # a list of them in each statement costs more than to read what is not wanted
        some = [rows.filter(to_type__in={word for word, _ in keys})]
    else:
        some = [rows.filter(to_type=word, to_name__in=names) for word, names in _by_word(keys)]
    for each in some:
        for to_word, to_name, *rest in each.values_list("to_type", "to_name", *columns).distinct():
            if (to_word, to_name) in keys:
                yield (to_word, to_name, *rest)


def _then(
    now: Mapping[EntryKey, list[EntryKey]], keys: frozenset[EntryKey], prospect: Prospect
) -> Mapping[EntryKey, list[EntryKey]]:
    """The resources that refer to each of these names once the write is done."""
    replaced = {*prospect.gone, *prospect.refers}
    if not replaced:
        return now
    then = {target: [user for user in users if user not in replaced] for target, users in now.items()}
    for user, targets in prospect.refers.items():
        for target in targets:
            if target in keys:
                then.setdefault(target, []).append(user)
    return then


def _by_word(keys: Collection[EntryKey]) -> Iterator[tuple[str, set[str]]]:
    for word in sorted({word for word, _ in keys}):
        yield word, {name for each, name in keys if each == word}


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(names)
    while chunk := list(islice(remaining, _CHUNK)):
        yield chunk
