"""Where a request goes: listener, route, cluster and endpoints, with a reason for each choice."""

from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer
from controlplane.api.bodies import document_of, values_of
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.query import Query
from controlplane.api.schema import body_of_shape, described
from controlplane.api.shapes.routing import RequestExplainedOut, RequestIn
from controlplane.api.views.base import ApiView
from controlplane.explain.requests import request_explained
from xdscore.routing.values import Lost, Place, Rung, Traced
from xdscore.routing.values import Request as Asked


class RequestExplainView(ApiView):
    """Explain where a request goes."""

    needs = {"POST": Role.VIEWER}

    @extend_schema(
        operation_id="request_explain",
        summary="Say where a request goes, and at each choice why the others lost",
        description="Routes are matched as Envoy matches them; for a gRPC target, as gRPC does. What is not judged is "
        "named in `unsupported`. Nothing is sent to any client, and nothing is kept.",
        request=body_of_shape(RequestIn),
        responses=described(200, RequestExplainedOut, 400, 401, 403, 404, 410, 413, 415, 422, 503),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """The way of the request, by what a client has or by what is published."""
        Query(request, ()).done()
        values = values_of(document_of(request), RequestIn)
        asked = Asked(
            authority=values["authority"],
            path=values["path"],
            scheme=values["scheme"],
            method=values["method"],
            headers=values["headers"],
        )
        found = request_explained(
            environment_key=environment_key,
            request=asked,
            listener=values["listener"],
            client=values["client"],
            at=values["at"],
        )
        return json_answer(_json(found))


def _json(found: Traced) -> dict[str, object]:
    return {
        "answer": found.answer.value,
        "listener": found.listener or None,
        "filter_chain": found.filter_chain or None,
        "route": found.route or None,
        "virtual_host": found.virtual_host or None,
        "route_index": found.route_index,
        **_clusters(found),
        "endpoints": [
            {"address": each.address, "health": each.health, "locality": each.locality, **_place(each.place, each.line)}
            for each in found.endpoints
        ],
        "rungs": [_rung(each) for each in found.rungs],
        "unsupported": list(found.unsupported),
    }


def _clusters(found: Traced) -> dict[str, Any]:
    if len(found.shares) > 1:
        weighted = [
            {"cluster": each.cluster, "percent": each.percent, **_place(each.place, each.line)} for each in found.shares
        ]
        return {"weighted": weighted}
    return {"cluster": found.shares[0].cluster} if found.shares else {}


def _rung(rung: Rung) -> dict[str, object]:
    return {
        "title": rung.title,
        "state": rung.state.value,
        "text": rung.text,
        **_place(rung.place, rung.line),
        "lost": [_lost(each) for each in rung.lost],
        "more": rung.more,
    }


def _lost(lost: Lost) -> dict[str, object]:
    return {"name": lost.name, "text": lost.said, **_place(lost.place, lost.line)}


def _place(place: Place | None, line: int) -> dict[str, object]:
    if place is None:
        return dict.fromkeys(("type", "resource", "pointer", "line"))
    word, name = place.key
    return {"type": word, "resource": name, "pointer": place.pointer, "line": line or None}


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/requests/explain", RequestExplainView.as_view()),
]
EXAMPLES = {
    "request_explain": {
        "scheme": "https",
        "method": "GET",
        "authority": "shop.example",
        "path": "/pay",
        "headers": {"x-canary": "1"},
    },
}
