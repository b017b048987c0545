"""Looks into the contents of resources for words.

A content is stored as bytes in which each text value stands as it is, so that the database finds it there; what it
finds is read and looked at again, which also tells where it stands. Field names and numbers are no text. Contents with
secrets are sealed, and nobody's words are compared with them. What is looked into is bounded by bytes, the newest
contents first, however many there are.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import (
    BinaryField,
    Case,
    Count,
    F,
    Func,
    IntegerField,
    Min,
    PositiveBigIntegerField,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
    Window,
)
from django.db.models.functions import Substr
from django.db.models.lookups import GreaterThan

from controlplane.catalog.choices import BlobKind
from controlplane.catalog.manifests import manifest_of_bytes
from controlplane.catalog.models import Resource
from controlplane.search.values import Unsearched
from xdscore.resource_types import RESOURCE_TYPES, by_word
from xdscore.schema import Tree

MAX_BYTES: Final = 32 * 1024 * 1024
MIN_WORD_BYTES: Final = 3
_LOOKED_AT: Final = 5  # for each that is shown, this many are read at most

_PLAIN: Final = Q(head__blob__kind=BlobKind.RESOURCE.value)


@dataclass(frozen=True, slots=True)
class Reach:
    """Which contents are searched: those of the revisions with the row id `since` and later; None: there are none."""

    since: int | None
    unsearched: Unsearched


class _BytesIn(Func):
    """The place, from 1, at which bytes stand in others; 0 where they do not."""

    function = "INSTR"
    output_field = IntegerField()

    def as_postgresql(self, compiler: object, connection: object, **context: object) -> object:
        """The function as PostgreSQL has it: under another name, and with the two in the other order."""
        turned = self.copy()
        turned.set_source_expressions(list(reversed(self.get_source_expressions())))
        return turned.as_sql(compiler, connection, function="POSITION", arg_joiner=" IN ", **context)  # type: ignore[arg-type]


def reach_of(rows: "QuerySet[Resource]") -> Reach:
    """How far back the contents of these resources can be searched. One query."""
    size = Case(When(_PLAIN, then=F("head__size")), default=Value(0), output_field=PositiveBigIntegerField())
    newer = Window(Sum(size), order_by=F("head_id").desc())
    told = rows.order_by().annotate(plain=Case(When(_PLAIN, then=Value(1)), default=Value(0)), newer=newer)
    within = Q(newer__lte=MAX_BYTES)
    counted = told.aggregate(
        since=Min("head_id", filter=within),
        older=Count("pk", filter=Q(plain=1) & ~within),
        sealed=Count("pk", filter=Q(plain=0)),
    )
    return Reach(counted["since"], Unsearched(counted["older"], counted["sealed"]))


def holds(word: str, reach: Reach) -> Q:
    """The condition that the content of a resource holds the word, as it is typed or in small letters."""
    spellings = dict.fromkeys((word.encode(), word.lower().encode()))
    if reach.since is None or len(word.encode()) < MIN_WORD_BYTES:
        return Q(pk__in=())
    found = Q()
    for spelling in spellings:
        place = _BytesIn(_content(), Value(spelling, output_field=BinaryField()))
        found |= Q(GreaterThan(place, Value(0)))
    return _PLAIN & Q(head_id__gte=reach.since) & found


def _content() -> Substr:
    """The bytes of a content behind the name of its type, which would be found in each."""
    behind = [When(type=kind.word, then=Value(len(kind.url.encode()) + 2)) for kind in RESOURCE_TYPES]
    start = Case(*behind, default=Value(1), output_field=IntegerField())
    return Substr("head__blob__data", start, output_field=BinaryField())


def excerpts(
    rows: "QuerySet[Resource]", words: Sequence[str], *, named: Collection[str], limit: int
) -> Iterator[tuple[Resource, str, str]]:
    """Of these resources, those of which a value really holds one of the words, each with the pointer to the value, and
    the value. `rows`: whose content has such bytes. `named`: the words that other fields of a row may hold.
    """
    left = limit
    for row in rows.select_related("environment", "head__blob")[: limit * _LOOKED_AT]:
        head = row.head
        if not left:
            return
        if head is not None and head.blob is not None:
            wanted = [word for word in words if not _is_named(row, word, named)] or list(words)
            manifest = manifest_of_bytes(by_word[row.type], row.name, bytes(head.blob.data), head.ttl_ms)
            places = [next(_places(manifest, word.lower()), None) for word in wanted]
            if all(places) and places[0] is not None:
                left -= 1
                yield row, *places[0]


def _is_named(row: Resource, word: str, named: Collection[str]) -> bool:
    return any(word.lower() in str(getattr(row, field)).lower() for field in named)


def _places(tree: Tree, word: str, pointer: str = "") -> Iterator[tuple[str, str]]:
    """The values of a manifest that hold a word, each with its pointer; the type of the whole is left out."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if pointer or key != "@type":
                yield from _places(value, word, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(tree, list):
        for place, value in enumerate(tree):
            yield from _places(value, word, f"{pointer}/{place}")
    elif isinstance(tree, str) and word in tree.lower():
        yield pointer, tree
