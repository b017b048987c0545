"""Everything that words stand in: names, contents, owners, rules, messages, people."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from controlplane.api.answers import json_answer, moment_or_none
from controlplane.api.query import Query
from controlplane.api.schema import described
from controlplane.api.shapes.search import KINDS, SearchOut
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.catalog.rights import environment_visible
from controlplane.catalog.selectors import environment_list
from controlplane.search.selectors import LISTED, search, sight_of
from controlplane.search.values import MAX_CHARS, Hit, Kind, words_of

_MAX_LISTED = 100


class SearchView(ApiView):
    """Look for words in everything that the caller may read."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="search",
        summary="Look for words in everything you may read",
        description=(
            "Every word has to stand in one of a thing's fields, or in the content of a resource, in capital or small "
            "letters. A number finds the change, the snapshot and the rule that have it; six characters or more of an "
            "id find what it begins. Of the names of tokens, never a token. Of roles with limits, the resources within "
            "them. What is not searched is told: contents that hold secrets, and old ones beyond a bound; of changes, "
            "change sets, rollouts, incidents and comments, all but the newest 10,000."
        ),
        parameters=[
            OpenApiParameter("q", required=True, description="At most eight words."),
            OpenApiParameter("environment", description="Only in this environment."),
            OpenApiParameter("kind", enum=KINDS, many=True, explode=False, description="Only these kinds."),
            OpenApiParameter("limit", OpenApiTypes.INT, description=f"Of each kind: 1 to {_MAX_LISTED}; {LISTED}."),
            OpenApiParameter("contents", OpenApiTypes.BOOL, description="Whether contents are searched; true."),
        ],
        responses=described(200, SearchOut, 401, 404, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """What the words stand in."""
        query = Query(request, ("q", "environment", "limit", "contents"), repeatable=("kind",))
        text, environment = query.text("q", at_most=MAX_CHARS), query.text("environment")
        kinds = tuple(Kind(each) for each in query.words("kind", KINDS)) or tuple(Kind)
        limit = query.whole("limit", LISTED, minimum=1, maximum=_MAX_LISTED)
        contents = query.flag("contents", default=True)
        if not words_of(text):
            query.refuse("q", "must hold a word")
        query.done()
        principal = principal_of(request)
        if environment:
            keys: tuple[str, ...] = (environment_visible(principal, environment, partly=True).key,)
        else:
            keys = tuple(state.key for state in environment_list())
        sight = sight_of(principal, keys, partly=True)
        found = search(sight=sight, text=text, kinds=kinds, limit=limit, contents=contents)
        left = found.unsearched
        return json_answer(
            {
                "results": [_hit_json(hit) for each in found.found for hit in each.hits],
                "more": [each.kind.value for each in found.found if each.more],
                "unsearched": None if left is None else {"older": left.older, "sealed": left.sealed},
            }
        )


def _hit_json(hit: Hit) -> dict[str, object]:
    return {
        "kind": hit.kind.value,
        "id": hit.id,
        "environment": hit.environment or None,
        "type": hit.type,
        "name": hit.name,
        "text": hit.text,
        "state": hit.state,
        "at": moment_or_none(hit.at),
        "pointer": hit.found_at,
        "excerpt": hit.excerpt,
        "about": hit.subject,
    }


urlpatterns = [
    path("search", SearchView.as_view()),
]
