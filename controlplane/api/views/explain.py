"""Why a client does, or does not, have a resource."""

from datetime import datetime
from typing import Final

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.api.answers import json_answer, moment_or_none
from controlplane.api.kinds import kind_named, type_words
from controlplane.api.paths import path_to
from controlplane.api.query import Query
from controlplane.api.schema import EXPLAIN_PARAMETERS, described
from controlplane.api.shapes.facts import ExplainOut
from controlplane.api.views.base import ApiView, Needs, principal_of, seen_environments
from controlplane.catalog.rights import environment_visible
from controlplane.explain.selectors import explain, question_of
from controlplane.explain.values import Ladder, Question
from controlplane.http.moments import moment_named
from xdscore.environment_choice import DEFAULT_ENVIRONMENT
from xdscore.names import name_problem
from xdscore.resource_types import CLUSTER

_MAX_EPOCH_CHARS: Final = 18  # the column has room for more


class ExplainView(ApiView):
    """Explain why a client has, or does not have, a resource."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="explain",
        summary="Say why a client does, or does not, have a resource",
        description="Without a client the answer is for clients in no group. The same engine answers streams. "
        "At a time, the answer is by the snapshot that was published then and by what the client had then.",
        parameters=EXPLAIN_PARAMETERS,
        responses=described(200, ExplainOut, 401, 404, 410, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """What the client gets for the name, and why: one question after the other, each with its answer."""
        query = Query(request, ("environment", "client", "type", "name", "at"))
        environment = query.text("environment", DEFAULT_ENVIRONMENT, at_most=63)
        client, name = query.text("client"), query.text("name")
        kind = query.parsed("type", kind_named, CLUSTER, wanted=f"must be one of {type_words()}, or a type URL")
        wanted = "must be an epoch, or a time with its offset from UTC, such as 2026-07-01T12:00:00Z"
        at = query.parsed("at", _epoch_or_time, None, wanted=wanted)
        if "type" not in request.query_params:
            query.refuse("type", "is missing", hint=f"Types are {type_words()}.")
        if problem := name_problem(name):
            query.refuse("name", problem, hint="Give the name that the client asks for.")
        query.done()
        environment_visible(principal_of(request), environment)
        question = question_of(environment=environment, kind=kind, name=name, at=at)
        ladder = explain(question=question, client=client, environment_keys=seen_environments(request, ""))
        return json_answer(_ladder_json(question, client, ladder))


def _epoch_or_time(text: str) -> int | datetime | None:
    """The epoch or the RFC 3339 time that a text names; None where it is neither."""
    if text.isascii() and text.isdigit():
        return int(text) if len(text) <= _MAX_EPOCH_CHARS and int(text) else None
    return moment_named(text)


def _ladder_json(question: Question, client: str, ladder: Ladder) -> dict[str, object]:
    return {
        "environment": question.environment,
        "client": client,
        "type": question.kind.word,
        "name": question.name,
        "at": question.at,
        "time": moment_or_none(question.time),
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
