"""The graph of an environment: who refers to whom, and how each stands."""

from typing import Any, Final

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer
from controlplane.api.kinds import kind_named, type_words
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.query import Query
from controlplane.api.schema import described
from controlplane.api.shapes.graph import GraphOut
from controlplane.api.views.base import ApiView
from controlplane.graph.dot import dot_of
from controlplane.graph.model import Graph
from controlplane.graph.selectors import DEFAULT_NODES, MAX_DEPTH, MAX_NODES, Scope, client_meant, graph_read
from controlplane.graph.svg import svg_of
from xdscore.names import canonical, name_problem

_FORMATS: Final = ("json", "dot", "svg")
_DOT: Final = "text/vnd.graphviz"
_SVG: Final = "image/svg+xml"


def _parameter(name: str, kind: Any, text: str) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, description=text)


_PARAMETERS: Final = [
    _parameter("type", OpenApiTypes.STR, "Begin with the resources of this type: its word or type URL."),
    _parameter("name", OpenApiTypes.STR, "Begin with the resources that have exactly this name."),
    _parameter("q", OpenApiTypes.STR, "Begin with the resources whose name contains this."),
    _parameter(
        "depth",
        {"type": "integer", "minimum": 0, "maximum": MAX_DEPTH, "default": MAX_DEPTH},
        "How many references to go from these, in both directions.",
    ),
    _parameter("client", OpenApiTypes.STR, "Only what this client sees: its id or node id."),
    _parameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_NODES, "default": DEFAULT_NODES},
        "How many nodes at most; how many others there are is `left_out`.",
    ),
    _parameter("format", {"type": "string", "enum": list(_FORMATS), "default": "json"}, "JSON, Graphviz' DOT, or SVG."),
]


class GraphView(ApiView):
    """Read the graph of an environment."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="graph",
        summary="Read which resources refer to which, and how each stands",
        description="Without a type, a name and `q`: the whole environment. Else what these resources need and what "
        "needs them, as a chain of references.",
        parameters=_PARAMETERS,
        responses={
            **described(200, GraphOut, 401, 404, 422, 503),
            (200, _DOT): OpenApiTypes.STR,
            (200, _SVG): OpenApiTypes.STR,
        },
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """The graph of the environment, or of what surrounds some resources, in one of three formats."""
        query = Query(request, ("type", "name", "q", "depth", "client", "limit", "format"))
        kind = query.parsed("type", kind_named, None, wanted=f"must be one of {type_words()}, or a type URL")
        name, text, client = query.text("name"), query.text("q"), query.text("client")
        depth = query.whole("depth", MAX_DEPTH, minimum=0, maximum=MAX_DEPTH)
        limit = query.whole("limit", DEFAULT_NODES, minimum=1, maximum=MAX_NODES)
        form = query.choice("format", _FORMATS, "json")
        if name and (problem := name_problem(name)):
            query.refuse("name", problem)
        query.done()
        meant = client_meant(environment_key=environment_key, text=client) if client else None
        scope = Scope(environment_key, kind, canonical(name), text, depth, meant)
        graph = graph_read(scope=scope, limit=limit)
        if form == "dot":
            return _file(dot_of(graph), _DOT, environment_key, "dot")
        if form == "svg":
            return _file(svg_of(graph, title=f"Resources of {environment_key}"), _SVG, environment_key, "svg")
        return json_answer(_graph_json(environment_key, graph))


def _file(text: str, media: str, environment_key: str, ending: str) -> HttpResponse:
    answer = HttpResponse(text.encode("utf-8", "replace"), content_type=media)
    answer["Content-Disposition"] = f'attachment; filename="{environment_key}-graph.{ending}"'
    answer["Cache-Control"] = "private, no-store"
    return answer


def _graph_json(environment_key: str, graph: Graph) -> dict[str, object]:
    return {
        "environment": environment_key,
        "nodes": [
            {
                "type": node.type,
                "name": node.name,
                "state": node.state.value,
                "revision": node.revision,
                "asked_by": node.asked_by,
                "uses": node.uses,
                "used_by": node.used_by,
                "more": node.more,
                "sight": node.sight.value if node.sight is not None else None,
            }
            for node in graph.nodes
        ],
        "edges": [
            {
                "source": dict(zip(("type", "name"), edge.source, strict=True)),
                "target": dict(zip(("type", "name"), edge.target, strict=True)),
                "pointer": edge.pointer,
            }
            for edge in graph.edges
        ],
        "counts": {state.value: count for state, count in graph.counts.items()},
        "left_out": graph.left_out,
        "more_left_out": graph.more_left_out,
    }


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/graph", GraphView.as_view()),
]
