"""Routes that can never match, because an earlier route of their virtual host takes all that they could take.

Sound, and no more: what cannot be seen here is not claimed. Whatever an earlier route wants beside its path, the later
one must want, too, word for word; a route for a share of requests (`runtime_fraction`) leaves some over and shadows
none. Each route is looked up among those before it, not compared with each of them. Pure.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor

from xdscore.schema.fixed_texts import fixed_start, lowered
from xdscore.schema.walk import AnyMessage

# A route with more conditions is compared with earlier ones that have at most one, or all of these.
_MAX_CONDITIONS: Final = 5
_SEPARATED: Final = "path_separated_prefix"
_TEXTS: Final = frozenset({"prefix", "path", _SEPARATED})
_NO_CONDITIONS: Final = _TEXTS | {"safe_regex", "connect_matcher", "path_match_policy", "case_sensitive"}
_ANYTHING: Final = ".*"

_Conditions = frozenset[tuple[int, bytes]]
"""What a route wants beside its path: the number of each field of its match, and its bytes, item by item."""


class _Wants(NamedTuple):
    """What a route takes, or what it takes is a part of: a path of the kind `kind` with this text.

    folds: in any case. pattern: of a regular expression, which is taken whole where `whole`; else empty.
    """

    kind: str
    text: str
    folds: bool
    conditions: _Conditions
    pattern: str = ""
    whole: bool = True
    partly: bool = False


def shadowed_in(host: AnyMessage) -> Iterator[tuple[int, int]]:
    """The number of each route of a virtual host that never matches, and that of the first route because of which."""
    takers: dict[_Conditions, _Takers] = {}
    for index, route in enumerate(host.routes):
        wants = _wants(route.match)
        if wants is None:
            continue
        found = [first for each in _weaker(wants.conditions, takers) if (first := each.taker(wants)) is not None]
        if found:
            yield index, min(found)
        elif not wants.partly:
            takers.setdefault(wants.conditions, _Takers()).add(index, wants)


def _conditions(field: FieldDescriptor, value: Any) -> Iterator[bytes]:
    """Each condition in a field, such that the same bytes are the same condition. What is no message, as a field of a
    newer Envoy may be, is one as a whole.
    """
    if field.message_type is None or field.message_type.GetOptions().map_entry:
        yield repr(value).encode()
        return
    for one in value if field.is_repeated else (value,):
        yield one.SerializeToString(deterministic=True)


def _wants(match: AnyMessage) -> _Wants | None:
    """What a route wants; None where that is not judged."""
    kind = match.WhichOneof("path_specifier")
    conditions: list[tuple[int, bytes]] = []
    partly = False
    for each, value in match.ListFields():
        if each.name == "runtime_fraction":
            partly = True
        elif each.name not in _NO_CONDITIONS:
            conditions += ((each.number, one) for one in _conditions(each, value))
    wanted = frozenset(conditions)
    if kind in _TEXTS:
        folds = match.HasField("case_sensitive") and not match.case_sensitive.value
        text: str = getattr(match, kind)
        return _Wants(kind, lowered(text) if folds else text, folds, wanted, partly=partly)
    if kind == "safe_regex":
        pattern = match.safe_regex.regex
        text, rest = fixed_start(pattern)
        whole = rest in {"", _ANYTHING}
        return _Wants("prefix" if rest else "path", text, False, wanted, pattern, whole, partly)
    return _Wants(kind, "", False, wanted, partly=partly) if kind == "connect_matcher" else None


def _weaker(conditions: _Conditions, takers: Mapping[_Conditions, "_Takers"]) -> Iterator["_Takers"]:
    """The routes so far that want nothing beside their paths but some of these conditions."""
    if len(takers) <= 1 << min(len(conditions), _MAX_CONDITIONS):
        yield from (each for wanted, each in takers.items() if wanted <= conditions)
        return
    sizes = range(len(conditions) + 1) if len(conditions) <= _MAX_CONDITIONS else (0, 1, len(conditions))
    for size in sizes:
        for some in combinations(conditions, size):
            if (found := takers.get(frozenset(some))) is not None:
                yield found


class _Texts:
    """The paths that routes take, by kind and text, each with the number of the first such route."""

    __slots__ = ("first", "lengths")

    def __init__(self) -> None:
        self.first: dict[tuple[str, str], int] = {}
        self.lengths: list[int] = []  # of prefixes, ascending

    def add(self, index: int, kind: str, text: str) -> None:
        self.first.setdefault((kind, text), index)
        at = bisect_left(self.lengths, len(text))
        if kind != "path" and self.lengths[at : at + 1] != [len(text)]:
            self.lengths.insert(at, len(text))

    def takers(self, kind: str, text: str) -> Iterator[int]:
        """The routes that take every path of this kind and text."""
        first = self.first
        if kind == "path" and (kind, text) in first:
            yield first[kind, text]
        for length in self.lengths:
            if length > len(text):
                return
            head = text[:length]
            if ("prefix", head) in first:
                yield first["prefix", head]
            ends = text[length : length + 1]
            if (ends == "/" or (not ends and kind != "prefix")) and (_SEPARATED, head) in first:
                yield first[_SEPARATED, head]


class _Takers:
    """Routes with the same conditions beside their paths."""

    __slots__ = ("connect", "folded", "patterns", "spelled")

    def __init__(self) -> None:
        self.spelled, self.folded = _Texts(), _Texts()  # as they are written, and in any case
        self.patterns: dict[str, int] = {}
        self.connect: int | None = None

    def add(self, index: int, wants: _Wants) -> None:
        if wants.kind == "connect_matcher":
            self.connect = index if self.connect is None else self.connect
            return
        if wants.pattern:
            self.patterns.setdefault(wants.pattern, index)
        if wants.whole:
            any_case = wants.folds or not any(each.isascii() and each.isalpha() for each in wants.text)
            (self.folded if any_case else self.spelled).add(index, wants.kind, wants.text)

    def taker(self, wants: _Wants) -> int | None:
        """The first of these routes that takes all that is wanted; None: none is seen to do so."""
        if wants.kind == "connect_matcher":
            return self.connect
        found = [*self.folded.takers(wants.kind, lowered(wants.text))]
        if not wants.folds:
            found += self.spelled.takers(wants.kind, wants.text)
        if wants.pattern in self.patterns:
            found.append(self.patterns[wants.pattern])
        return min(found, default=None)
