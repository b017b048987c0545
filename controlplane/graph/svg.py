"""Draws a graph as an SVG that needs nothing else: no script, no style sheet, no link. Pure.

All that others wrote passes `_text`, which escapes markup and whatever XML does not take.
"""

from html import escape as escape_markup
from typing import Final

from controlplane.clients.foreign_text import escape
from controlplane.graph.dot import left_out, state_line
from controlplane.graph.layout import MARGIN, NODE_HEIGHT, NODE_WIDTH, Layout, layout_of
from controlplane.graph.model import Graph, Node, NodeState

_NAME_CHARS: Final = 30
_INK, _QUIET, _LINE = "#17212e", "#566273", "#7b8796"
_GOOD, _WARN, _BAD, _BUSY = "#ffffff", "#fdf0d5", "#fde8e8", "#e4effb"
_FILLS: Final = {
    NodeState.PUBLISHED: _GOOD,
    NodeState.WAITING: _BUSY,
    NodeState.STALLED: _WARN,
    NodeState.REFUSED: _BAD,
    NodeState.QUARANTINED: _BAD,
    NodeState.WITHHELD: _BAD,
    NodeState.MISSING: _BAD,
    NodeState.ELSEWHERE: _GOOD,
    NodeState.UNUSED: "#eaeef3",
}
_DASHES: Final = {NodeState.MISSING: "6 3", NodeState.ELSEWHERE: "6 3", NodeState.UNUSED: "2 3"}
_FOOT: Final = 24  # pixels for the sentence about what is left out


def svg_of(graph: Graph, *, title: str) -> str:
    """The graph as the text of an SVG file. `title`: what it shows, for screen readers."""
    layout = layout_of(graph)
    more = left_out(graph)
    height = layout.height + (_FOOT if more else 0)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{layout.width}" height="{height}"',
        f'viewBox="0 0 {layout.width} {height}" font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{_text(title)}</title>",
        f'<rect width="{layout.width}" height="{height}" fill="#ffffff"/>',
        f'<g fill="none" stroke="{_LINE}">',
        *_edges(graph, layout),
        "</g>",
    ]
    for node, place in zip(graph.nodes, layout.places, strict=True):
        lines += _node(node, place)
    if more:
        lines.append(f'<text x="{MARGIN}" y="{layout.height + 8}" fill="{_QUIET}">{_text(more)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _edges(graph: Graph, layout: Layout) -> list[str]:
    found = []
    for (source, target), edge in zip(graph.pairs, graph.edges, strict=True):
        (left, top), (right, bottom) = layout.places[source], layout.places[target]
        start, from_y, end, to_y = left + NODE_WIDTH, top + NODE_HEIGHT // 2, right, bottom + NODE_HEIGHT // 2
        bend = max(abs(end - start) // 2, MARGIN)
        path = f"M{start} {from_y}C{start + bend} {from_y} {end - bend} {to_y} {end} {to_y}"
        found.append(f'<path d="{path}"><title>{_text(edge.pointer)}</title></path>')
    return found


def _node(node: Node, place: tuple[int, int]) -> list[str]:
    x, y = place
    dashes = _DASHES.get(node.state)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    name = node.name if len(node.name) <= _NAME_CHARS else node.name[: _NAME_CHARS - 1] + "…"
    size = f'width="{NODE_WIDTH}" height="{NODE_HEIGHT}"'
    below = _text(f"{node.type} · {state_line(node)}")
    return [
        f"<g><title>{_text(f'{node.type} {node.name}: {state_line(node)}')}</title>",
        f'<rect x="{x}" y="{y}" {size} rx="4" fill="{_FILLS[node.state]}" stroke="{_INK}"{dashed}/>',
        f'<text x="{x + 8}" y="{y + 14}" fill="{_INK}">{_text(name)}</text>',
        f'<text x="{x + 8}" y="{y + 28}" fill="{_QUIET}" font-size="10">{below}</text></g>',
    ]


def _text(text: str) -> str:
    # U+FFFE and U+FFFF are in no XML document (XML 1.0 section 2.2); the other forbidden ones are control characters.
    return escape_markup(escape(text, keep="")).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
