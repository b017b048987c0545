"""Answers what there is that words stand in, of every kind, for somebody who may read it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from django.db.models import Q

from controlplane.accounts.principal import Principal, Role
from controlplane.search.contents import Reach, excerpts, holds, reach_of
from controlplane.search.sources import RESOURCES, SOURCES, Sight, resources_of
from controlplane.search.values import Found, Hit, Kind, Results, words_of

LISTED: Final = 10
"""How many things of each kind are shown."""
_MAX_EXCERPT_CHARS: Final = 200


def sight_of(principal: Principal, keys: Iterable[str], *, partly: bool = False) -> Sight:
    """What somebody may find in the environments with these keys. `partly`: also the resources of an environment that
    they may not read as a whole.
    """
    every = tuple(keys)
    whole = principal.sees(every)
    limited = {key: principal.allowed(Role.VIEWER, key) for key in every if partly and key not in whole}
    return Sight(principal, whole, {key: allowed for key, allowed in limited.items() if not allowed.nothing})


def search(
    *, sight: Sight, text: str, kinds: Collection[Kind] = tuple(Kind), limit: int = LISTED, contents: bool = True
) -> Results:
    """The first `limit` things of each of these kinds that meet every word of a text. `contents`: whether the contents
    of resources are searched, too. At most sixteen queries, and two more for contents.
    """
    words = words_of(text)
    if not words:
        return Results(())
    found = []
    unsearched = None
    if Kind.ENVIRONMENT in kinds:
        found.append(_cut(Kind.ENVIRONMENT, tuple(_environments(sight, words)), limit))
    for source in SOURCES:
        if source.kind not in kinds:
            continue
        hits = source.found(sight, words, limit=limit + 1)
        if source.kind is Kind.RESOURCE and contents and len(hits) <= limit and (wanted := source.wanted(words)):
            reach = reach_of(resources_of(sight))
            unsearched = reach.unsearched
            hits += tuple(_by_contents(sight, wanted, reach, limit=limit + 1 - len(hits)))
        found.append(_cut(source.kind, hits, limit))
    return Results(words, tuple(each for each in found if each.hits), unsearched)


def _cut(kind: Kind, hits: tuple[Hit, ...], limit: int) -> Found:
    return Found(kind, hits[:limit], more=len(hits) > limit)


def _environments(sight: Sight, words: Sequence[str]) -> Iterator[Hit]:
    wanted = [word.lower() for word in words if word.lower() not in ("environment", "environments")]
    for key in sight.keys:
        if wanted and all(word in key for word in wanted):
            yield Hit(Kind.ENVIRONMENT, key, key, key)


def _by_contents(sight: Sight, words: Sequence[str], reach: Reach, *, limit: int) -> Iterator[Hit]:
    """Resources of which the content holds words that nothing else of them does."""

    def meets(word: str) -> Q:
        return RESOURCES.meets(word) | holds(word, reach)

    rows = resources_of(sight).filter(RESOURCES.meet_each(words, meets))
    rows = rows.exclude(RESOURCES.meet_each(words, RESOURCES.meets)).order_by(*RESOURCES.order)
    for row, pointer, value in excerpts(
        rows, words, named=("name", "owner", "type", "labels", "environment"), limit=limit
    ):
        hit = Hit(Kind.RESOURCE, row.name, row.name, row.environment.key, row.type)
        yield replace(hit, found_at=pointer, excerpt=value[:_MAX_EXCERPT_CHARS])
