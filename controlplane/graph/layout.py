"""Where each node of a graph is drawn: from left to right, from what refers to what is referred to. Pure.

Types are columns: a type stands to the right of all types that refer to it, which is read off the graph itself. What
belongs together is drawn together (a connected part); within a part, nodes of a column are ordered so that references
are short, and a part that would be too high is cut into bands that stand side by side. The same graph is always drawn
the same.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil, sqrt
from typing import Final

from controlplane.graph.model import Graph

# In pixels at scale 1.
NODE_WIDTH: Final = 220
NODE_HEIGHT: Final = 34
_COLUMN: Final = 290
_ROW: Final = 46
_GAP: Final = 30
MARGIN: Final = 24

_ASPECT: Final = 1.7  # of the whole, as of a window
_SWEEPS: Final = 2
_KEPT: Final = 8  # of ten thousand nodes some 3 MB each
_Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layout:
    """The upper left corner of each node as (x, y), in the order of the graph's nodes, and the size of the whole; all
    in pixels.
    """

    places: tuple[tuple[int, int], ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A connected part: for each of its nodes, by number, the corner within the part; and the size of the part."""

    places: dict[int, tuple[int, int]]
    width: int
    height: int


def layout_of(graph: Graph) -> Layout:
    """Where to draw each node of a graph. Of the last few shapes the layout is kept: who looks again at an environment,
    whose nodes change their states far more often than their references, gets the same one.
    """
    return _laid_out(tuple(node.type for node in graph.nodes), tuple(sorted(set(graph.pairs))))


@lru_cache(maxsize=_KEPT)
def _laid_out(types: tuple[str, ...], edges: tuple[_Edge, ...]) -> Layout:
    """Where to draw nodes of these types with these references."""
    columns = _columns(types, edges)
    parts = [
        _part(members, [columns[types[node]] for node in members], among)
        for members, among in _connected(len(types), edges)
    ]
    return _packed(parts, len(types))


def _columns(types: Sequence[str], edges: Collection[_Edge]) -> dict[str, int]:
    """The column of each type: the length of the longest way to it by references from types to other types. A reference
    that would close a circle is not counted.
    """
    below: dict[str, set[str]] = {word: set() for word in types}
    for source, target in edges:
        if types[source] != types[target]:
            below[types[source]].add(types[target])
    columns = dict.fromkeys(sorted(below), 0)

    def push(word: str, column: int, way: tuple[str, ...]) -> None:
        columns[word] = max(columns[word], column)
        for target in sorted(below[word]):
            if target not in way and columns[target] <= column:
                push(target, column + 1, (*way, target))

    named = {target for targets in below.values() for target in targets}
    for word in sorted(below, key=lambda word: (word in named, word)):
        push(word, columns[word], (word,))
    return columns


def _connected(count: int, edges: Iterable[_Edge]) -> list[tuple[list[int], list[_Edge]]]:
    """The connected parts of a graph with this number of nodes: each as its nodes, and the edges among them."""
    parent = list(range(count))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    kept = list(edges)
    for source, target in kept:
        first, second = sorted((root(source), root(target)))
        parent[second] = first
    parts: dict[int, tuple[list[int], list[_Edge]]] = {}
    for node in range(count):
        parts.setdefault(root(node), ([], []))[0].append(node)
    for edge in kept:
        parts[root(edge[0])][1].append(edge)
    return list(parts.values())


def _part(members: Sequence[int], columns: Sequence[int], edges: Sequence[_Edge]) -> _Part:
    """Draw a connected part. `columns`: the column of each member; those that are empty here are left out."""
    if len(members) == 1:
        return _Part({members[0]: (0, 0)}, NODE_WIDTH, NODE_HEIGHT)
    used = {column: number for number, column in enumerate(sorted(set(columns)))}
    filled: list[list[int]] = [[] for _ in used]
    for node, column in zip(members, columns, strict=True):
        filled[used[column]].append(node)
    _ordered(filled, edges)
    highest = max(map(len, filled))
    bands = max(1, round(sqrt(highest * _ROW * _ASPECT / (len(filled) * _COLUMN))))
    rows = ceil(highest / bands)
    band_width = len(filled) * _COLUMN
    places: dict[int, tuple[int, int]] = {}
    for number, column_nodes in enumerate(filled):
        cuts = [round(band * len(column_nodes) / bands) for band in range(bands + 1)]
        for band, (start, end) in enumerate(pairwise(cuts)):
            step = rows / max(end - start, 1)
            for place, node in enumerate(column_nodes[start:end]):
                row = max(step * (place + 0.5) - 0.5, 0.0)
                places[node] = (band * band_width + number * _COLUMN, round(row * _ROW))
    return _Part(
        places,
        max(x for x, _ in places.values()) + NODE_WIDTH,
        max(y for _, y in places.values()) + NODE_HEIGHT,
    )


def _ordered(columns: list[list[int]], edges: Sequence[_Edge]) -> None:
    """Order the nodes of each column, so that a node stands about where its neighbours do (in the middle of them)."""
    near: dict[int, list[int]] = {}
    for source, target in edges:
        near.setdefault(source, []).append(target)
        near.setdefault(target, []).append(source)
    where = {node: (place + 0.5) / len(nodes) for nodes in columns for place, node in enumerate(nodes)}
    column_of = {node: number for number, nodes in enumerate(columns) for node in nodes}

    def middle(node: int, side: range) -> float:
        places = [where[other] for other in near[node] if column_of[other] in side]
        return sum(places) / len(places) if places else where[node]

    for _ in range(_SWEEPS):
        for sides in (
            [(number, range(number)) for number in range(1, len(columns))],
            [(number, range(number + 1, len(columns))) for number in range(len(columns) - 2, -1, -1)],
        ):
            for number, side in sides:
                nodes = columns[number]
                middles = {node: middle(node, side) for node in nodes}
                nodes.sort(key=lambda node, middles=middles: (middles[node], node))  # type: ignore[misc]
                where.update({node: (place + 0.5) / len(nodes) for place, node in enumerate(nodes)})


def _packed(parts: Sequence[_Part], count: int) -> Layout:
    """Put the parts side by side on shelves, the highest first, so that the whole has the shape of a window."""
    area = sum((part.width + _GAP) * (part.height + _GAP) for part in parts)
    widest = max([sqrt(area * _ASPECT), *(part.width for part in parts)])
    places: list[tuple[int, int]] = [(0, 0)] * count
    left, top, shelf, right = MARGIN, MARGIN, 0, 0
    for part in sorted(parts, key=lambda part: (-part.height, -part.width, min(part.places))):
        if left > MARGIN and left + part.width > MARGIN + widest:
            left, top, shelf = MARGIN, top + shelf + _GAP, 0
        for node, (x, y) in part.places.items():
            places[node] = (left + x, top + y)
        right, shelf = max(right, left + part.width), max(shelf, part.height)
        left += part.width + _GAP
    return Layout(tuple(places), right + MARGIN, top + shelf + MARGIN)
