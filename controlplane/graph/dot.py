"""Writes a graph in the language of Graphviz, for whoever draws it otherwise. Pure."""

from typing import Final

from controlplane.clients.foreign_text import escape
from controlplane.graph.model import Graph, Node, NodeState

_STYLES: Final = {
    NodeState.PUBLISHED: "solid",
    NodeState.MISSING: "dashed",
    NodeState.ELSEWHERE: "dashed",
    NodeState.UNUSED: "dotted",
}
_IN_TROUBLE: Final = "bold"  # every other state


def dot_of(graph: Graph) -> str:
    """The graph as a text in the DOT language. Names stand in labels alone, so that no name can be read as DOT."""
    lines = ["digraph parley {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for number, node in enumerate(graph.nodes):
        style = _STYLES.get(node.state, _IN_TROUBLE)
        lines.append(f'  n{number} [label="{_label(node)}", style={style}];')
    lines += [
        f'  n{source} -> n{target} [tooltip="{_quoted(edge.pointer)}"];'
        for (source, target), edge in zip(graph.pairs, graph.edges, strict=True)
    ]
    if graph.left_out:
        lines.append(f"  // {left_out(graph)}")
    return "\n".join([*lines, "}", ""])


def left_out(graph: Graph) -> str:
    """A sentence about what the graph leaves out; empty where it leaves out nothing."""
    if not graph.left_out:
        return ""
    number = f"{'At least ' if graph.more_left_out else ''}{graph.left_out:,}"
    return f"{number} other resource{'' if graph.left_out == 1 else 's'} not shown: the graph would be too large."


def state_line(node: Node) -> str:
    """How a node stands, on one line: its revision, its state, and how many clients ask for it."""
    parts = [f"r{node.revision}" if node.revision is not None else "", node.state.value]
    if node.sight is not None:
        parts.append(node.sight.value.replace("_", " "))
    if node.asked_by:
        parts.append(f"asked by {node.asked_by}")
    return " · ".join(filter(None, parts))


def _label(node: Node) -> str:
    return f"{_quoted(node.type)}\\n{_quoted(node.name)}\\n{_quoted(state_line(node))}"


def _quoted(text: str) -> str:
    """The text for a quoted string: a backslash begins an escape there, so each is doubled."""
    return escape(text, keep="").replace("\\", "\\\\").replace('"', '\\"')
