"""The graph of an environment: a picture for who has scripts, and for everybody a table of the same."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils.http import urlencode

from controlplane.catalog.selectors import resource_list
from controlplane.common.errors import ControlPlaneError
from controlplane.console.live import shared
from controlplane.console.pages import Page
from controlplane.console.paging import SIZE, Paged, page_number, paged
from controlplane.console.places import Place, Section
from controlplane.console.states import look_of
from controlplane.graph.dot import dot_of, left_out, state_line
from controlplane.graph.layout import NODE_HEIGHT, NODE_WIDTH, layout_of
from controlplane.graph.model import Edge, Graph, Node, NodeState, Sight
from controlplane.graph.selectors import MAX_DEPTH, MAX_NODES, Scope, client_meant, graph_of_names, graph_read
from controlplane.graph.svg import svg_of
from xdscore.names import canonical, name_problem
from xdscore.resource_types import RESOURCE_TYPES, by_word
from xdscore.snapshot import EntryKey

_MAX_TEXT: Final = 1_024  # a name
_MAX_LINKS: Final = 10  # of one line of the table, each way; the page of a resource has all
_AROUND: Final = 500  # nodes around one resource: more than anybody reads
_FILES: Final = {"svg": "image/svg+xml", "dot": "text/vnd.graphviz"}
_LOOKS: Final = {NodeState.PUBLISHED: "in_graph", NodeState.WAITING: "unbuilt"}


@dataclass(frozen=True, slots=True)
class GraphLine:
    """A line of the table: a node, the first names that it refers to and the first that refer to it, each as the node
    and the pointer of the reference; and how many others there are.
    """

    node: Node
    uses: Sequence[tuple[Node, str]]
    used_by: Sequence[tuple[Node, str]]

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the node stands."""
        return look_of_node(self.node.state)

    @property
    def more_uses(self) -> int:
        """How many names it refers to beside those of the line."""
        return self.node.uses - len(self.uses)

    @property
    def more_used_by(self) -> int:
        """How many resources refer to it beside those of the line."""
        return self.node.used_by - len(self.used_by)


class GraphPage(Page):
    """The page with the graph of an environment, of what surrounds some resources, or of what one client sees."""

    template = "graph/page.html"

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """The page; with `?part=data`, what a script draws the picture from; with `svg` or `dot`, a file with it."""
        asked = {key: request.GET.get(key, "").strip()[:_MAX_TEXT] for key in ("type", "name", "q", "client", "depth")}
        context: dict[str, object] = {
            **asked,
            "types": RESOURCE_TYPES,
            "depths": [str(number) for number in range(1, MAX_DEPTH)],
            "filtered": any(asked.values()),
            "title": _title(asked),
            "parts": {part: f"?{urlencode({**_given(asked), 'part': part})}" for part in ("data", *_FILES)},
        }
        try:
            scope = _scope(environment_key, asked)
            part = request.GET.get("part", "")
            if part == "data":
                return self._data(scope)
            if part in _FILES:
                return _file(scope, part)
            page, graph = self._table(scope)
        except ControlPlaneError as error:
            return self.page({**context, "error": error}, status=error.status)
        return self.page({**context, "page": page, "counts": _counted(graph) if graph is not None else None})

    def _data(self, scope: Scope) -> HttpResponse:
        """What the picture is drawn from. Of a whole environment it is made once in a while, for all who look."""
        if scope.whole and scope.client is None:
            body = shared(f"graph/{scope.environment_key}", lambda: _drawing(graph_read(scope=scope, limit=MAX_NODES)))
        else:
            body = _drawing(graph_read(scope=scope, limit=_limit(scope)))
        answer = HttpResponse(body, content_type="application/json")
        answer.headers["Cache-Control"] = "private, no-store"
        return answer

    def _table(self, scope: Scope) -> tuple[Paged[GraphLine], Graph | None]:
        """One page of the table, and the graph if it was read as a whole: of an environment only a page is read."""
        if scope.whole and scope.client is None:
            page = paged(self.request, resource_list(environment_key=scope.environment_key), lambda row: row)
            keys = [(row.type, row.name) for row in page.items]
            return page.showing(_lines(graph_of_names(environment_key=scope.environment_key, keys=keys), keys)), None
        graph = graph_read(scope=scope, limit=_limit(scope))
        number = min(page_number(self.request), max(1, -(-len(graph.nodes) // SIZE)))
        start = (number - 1) * SIZE
        keys = [node.key for node in graph.nodes[start : start + SIZE]]
        return Paged(_lines(graph, keys), number, len(graph.nodes)), graph


def graph_url(environment_key: str, **asked: str) -> str:
    """The URL of the graph of an environment, with these filters."""
    return f"{reverse('graph', args=[environment_key])}?{urlencode(asked)}"


def look_of_node(state: NodeState) -> str:
    """The key in `states.LOOKS` of the badge for a node that stands so. What is published looks plain here, so that
    what is not is seen.
    """
    return _LOOKS.get(state, state.value)


def _given(asked: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in asked.items() if text}


def _scope(environment_key: str, asked: Mapping[str, str]) -> Scope:
    """The part of the environment that the URL asks for. Raises NotFound for a client that there is not."""
    depth, name = asked["depth"], asked["name"]
    client = client_meant(environment_key=environment_key, text=asked["client"]) if asked["client"] else None
    return Scope(
        environment_key,
        by_word.get(asked["type"]),
        canonical(name) if name and not name_problem(name) else "",
        asked["q"],
        int(depth) if depth in {str(number) for number in range(MAX_DEPTH)} else MAX_DEPTH,
        client,
    )


def _limit(scope: Scope) -> int:
    return _AROUND if not scope.whole else MAX_NODES


def _title(asked: Mapping[str, str]) -> str:
    if asked["name"]:
        return f"{asked['type']} {asked['name']}".strip()
    return f"names with {asked['q']}" if asked["q"] else ""


def _counted(graph: Graph) -> dict[str, object]:
    return {
        "states": [(look_of_node(state), count) for state, count in graph.counts.items()],
        "left_out": left_out(graph),
    }


def _file(scope: Scope, form: str) -> HttpResponse:
    graph, key = graph_read(scope=scope, limit=_limit(scope)), scope.environment_key
    text = dot_of(graph) if form == "dot" else svg_of(graph, title=f"Resources of {key}")
    answer = HttpResponse(text.encode("utf-8", "replace"), content_type=_FILES[form])
    answer.headers["Content-Disposition"] = f'attachment; filename="{key}-graph.{form}"'
    answer.headers["Cache-Control"] = "private, no-store"
    return answer


def _lines(graph: Graph, keys: Collection[EntryKey]) -> list[GraphLine]:
    uses: dict[EntryKey, list[Edge]] = {}
    used_by: dict[EntryKey, list[Edge]] = {}
    for edge in graph.edges:
        uses.setdefault(edge.source, []).append(edge)
        used_by.setdefault(edge.target, []).append(edge)
    nodes = {node.key: node for node in graph.nodes}
    return [
        GraphLine(
            nodes[key],
            [(nodes[edge.target], edge.pointer) for edge in uses.get(key, ())[:_MAX_LINKS]],
            [(nodes[edge.source], edge.pointer) for edge in used_by.get(key, ())[:_MAX_LINKS]],
        )
        for key in keys
        if key in nodes
    ]


def _drawing(graph: Graph) -> bytes:
    """What a script draws, as JSON: lists in place of objects, because there are thousands of them, with numbers in
    place of words that repeat. `static/console/graph.js` reads it.
    """
    layout = layout_of(graph)
    types = sorted({node.type for node in graph.nodes})
    states = list(graph.counts)
    looks = [look_of(look_of_node(state)) for state in states]
    content = {
        "types": types,
        "states": [[state.value, look.tone, look.label] for state, look in zip(states, looks, strict=True)],
        "nodes": [
            [
                types.index(node.type),
                node.name,
                states.index(node.state),
                state_line(node),
                int(node.exists),
                node.more,
                *place,
            ]
            for node, place in zip(graph.nodes, layout.places, strict=True)
        ],
        "edges": graph.pairs,
        "focus": [graph.positions[key] for key in graph.focus],
        "told": [position for position, node in enumerate(graph.nodes) if node.sight is Sight.ERROR],
        "size": [layout.width, layout.height],
        "node": [NODE_WIDTH, NODE_HEIGHT],
        "left_out": left_out(graph),
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


urlpatterns = [
    path("e/<str:environment_key>/graph", GraphPage.as_view(), name="graph"),
]
PLACES = (Place(Section.CONFIGURATION, 15, "Graph", "route", "graph"),)
