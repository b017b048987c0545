"""Which of many name patterns match a name, without trying each of them (decisions part 6).

Every pattern is filed under one piece of literal text that a matching name must contain: the whole of an exact one, its
head, its tail, or a piece of what stands between its stars; whichever the fewest other patterns could be filed under.
A lookup takes the pieces of the name out of the files and tries only the patterns it finds there.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum

from xdscore.names import canonical, glob_parts, parts_match

# Inner text is filed under so many of its characters, the ones that are rarest among the patterns: a name of n
# characters has about n pieces of this length.
_INNER_CHARS = 4


class _Place(Enum):
    """Where in a name a piece of text must stand for a pattern to match; the cheaper to look up, the earlier in this
    list.
    """

    WHOLE = 0
    HEAD = 1
    TAIL = 2
    INNER = 3


_Piece = tuple[_Place, str]


class _Drawer:
    """The patterns that can match only names with one piece of text. `certain`: they match every such name. `others`:
    they must still be tried.
    """

    __slots__ = ("certain", "others")

    def __init__(self) -> None:
        self.certain: list[int] = []
        self.others: list[tuple[int, tuple[str, ...]]] = []


class PatternIndex:
    """An immutable index of patterns (with `*`), each known by its place in the sequence given."""

    __slots__ = ("_always", "_head_lengths", "_heads", "_inner", "_inner_lengths", "_tail_lengths", "_tails", "_wholes")

    def __init__(self, patterns: Sequence[str]) -> None:
        # Names are canonical where they are looked up: a rule for another spelling would match nothing (H1).
        parts = [glob_parts(canonical(pattern)) for pattern in patterns]
        crowd = Counter(piece for each in parts for piece in _pieces(each))
        files: dict[_Place, dict[str, _Drawer]] = {place: {} for place in _Place}
        self._always: list[int] = []
        for number, each in enumerate(parts):
            piece = min(_pieces(each), key=lambda piece: (crowd[piece], piece[0].value, piece[1]), default=None)
            if piece is None:
                self._always.append(number)
                continue
            drawer = files[piece[0]].setdefault(piece[1], _Drawer())
            if sum(map(len, each)) == len(piece[1]):
                drawer.certain.append(number)
            else:
                drawer.others.append((number, each))
        self._wholes, self._heads = files[_Place.WHOLE], files[_Place.HEAD]
        self._tails, self._inner = files[_Place.TAIL], files[_Place.INNER]
        self._head_lengths = _lengths(self._heads)
        self._tail_lengths = _lengths(self._tails)
        self._inner_lengths = _lengths(self._inner)

    def matching(self, name: str) -> list[int]:
        """The places, in the sequence given, of all patterns that match the name, ascending."""
        found = list(self._always)
        for drawer in self._drawers(name):
            found += drawer.certain
            for number, parts in drawer.others:
                if parts_match(parts, name):
                    found.append(number)
        found.sort()
        return found

    def _drawers(self, name: str) -> list[_Drawer]:
        size, heads, tails, inner = len(name), self._heads, self._tails, self._inner
        opened = [self._wholes[name]] if name in self._wholes else []
        opened += [heads[name[:n]] for n in self._head_lengths if n <= size and name[:n] in heads]
        opened += [tails[name[-n:]] for n in self._tail_lengths if n <= size and name[-n:] in tails]
        for length in self._inner_lengths:
            # A piece that the name has twice is one piece; few are found at all.
            opened += [
                inner[piece]
                for start in range(size - length + 1)
                if (piece := name[start : start + length]) in inner and name.find(piece) == start
            ]
        return opened


def _lengths(filed: Iterable[str]) -> tuple[int, ...]:
    return tuple(sorted({len(text) for text in filed}))


def _pieces(parts: tuple[str, ...]) -> set[_Piece]:
    """Every piece of text, with where it must stand, that a name must have to match the pattern of these parts; none
    for a pattern of stars alone.
    """
    if len(parts) == 1:
        return {(_Place.WHOLE, parts[0])}
    pieces = {(_Place.INNER, run) for part in parts[1:-1] if part for run in _runs(part, _INNER_CHARS)}
    pieces |= {(_Place.HEAD, parts[0])} if parts[0] else set()
    pieces |= {(_Place.TAIL, parts[-1])} if parts[-1] else set()
    return pieces


def _runs(text: str, length: int) -> set[str]:
    """Every run of `length` characters in the text; the text itself where it is shorter."""
    return {text[start : start + length] for start in range(max(len(text) - length, 0) + 1)}
