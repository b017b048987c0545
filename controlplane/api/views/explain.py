"""Why a client does, or does not, have a resource."""

from typing import Final

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.api.answers import json_answer
from controlplane.api.kinds import kind_named, type_words
from controlplane.api.paths import path_to
from controlplane.api.query import Query
from controlplane.api.schema import EXPLAIN_PARAMETERS, described
from controlplane.api.shapes.facts import ExplainOut
from controlplane.api.views.base import ApiView, Needs, principal_of, seen_environments
from controlplane.catalog.rights import environment_visible
from controlplane.explain.selectors import explain
from controlplane.explain.values import Ladder, Question
from xdscore.environment_choice import DEFAULT_ENVIRONMENT
from xdscore.names import name_problem
from xdscore.resource_types import CLUSTER

_MAX_EPOCH: Final = 2**63 - 1  # the column


class ExplainView(ApiView):
    """Explain why a client has, or does not have, a resource."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="explain",
        summary="Say why a client does, or does not, have a resource",
        description="Without a client the answer is for clients in no group. The same engine answers streams.",
        parameters=EXPLAIN_PARAMETERS,
        responses=described(200, ExplainOut, 401, 404, 410, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """What the client gets for the name, and why: one question after the other, each with its answer."""
        query = Query(request, ("environment", "client", "type", "name", "at"))
        environment = query.text("environment", DEFAULT_ENVIRONMENT, at_most=63)
        client, name = query.text("client"), query.text("name")
        kind = query.parsed("type", kind_named, CLUSTER, wanted=f"must be one of {type_words()}, or a type URL")
        at = query.whole("at", 0, minimum=1, maximum=_MAX_EPOCH)
        if "type" not in request.query_params:
            query.refuse("type", "is missing", hint=f"Types are {type_words()}.")
        if problem := name_problem(name):
            query.refuse("name", problem, hint="Give the name that the client asks for.")
        query.done()
        environment_visible(principal_of(request), environment)
        question = Question(environment, kind, name, at or None)
        ladder = explain(question=question, client=client, environment_keys=seen_environments(request, ""))
        return json_answer(_ladder_json(question, client, ladder))


def _ladder_json(question: Question, client: str, ladder: Ladder) -> dict[str, object]:
    return {
        "environment": question.environment,
        "client": client,
        "type": question.kind.word,
        "name": question.name,
        "at": question.at,
        "answer": ladder.has.value,
        "code": ladder.code,
        "sentence": ladder.sentence,
        "told": ladder.told,
        "rungs": [
            {"number": each.number, "title": each.title, "state": each.state.value, "text": each.text}
            for each in ladder.rungs
        ],
        "next": list(ladder.next),
        "links": [{"title": each.title, "href": path_to(*each.parts)} for each in ladder.links],
    }


urlpatterns = [
    path("explain", ExplainView.as_view()),
]
