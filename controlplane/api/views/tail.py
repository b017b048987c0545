"""The live tail of an environment: what happens on its streams, while it happens."""

from typing import Final

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.kinds import kind_named, type_words
from controlplane.api.query import Query
from controlplane.api.schema import TAIL_FILTERS, described
from controlplane.api.tailing import LONGEST_S, MEDIA, Granted, Wanted, since_of, streams
from controlplane.api.views.base import ApiView, principal_of
from controlplane.tail.values import ALL_KINDS, Filter, Kind
from xdscore.names import name_problem
from xdscore.resource_types import ResourceType

_TEXT: Final = {"type": "string"}


class TailView(ApiView):
    """Watch what happens on the streams of an environment."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="tail",
        summary="Watch what happens on the streams of an environment, as server-sent events",
        description=(
            "An event has its kind as `event`, the time as `id`, and one JSON object as `data`: `kind`, `at`, "
            "`environment`, `client` (its id), `node_id`, `stream`, `type`, `wildcard`, `version`, `names` (the first "
            "eight) and `name_count`, `removed`, `errors`, `suspects`, `code` and `text`. Beside the kinds there are "
            "`state` (`processes`: how many ADS processes tell; `unseen_s`: for how many seconds nobody watched since "
            "the `Last-Event-ID`), `left_out` (`count`: events that are not told, because they were too many at once) "
            "and `end` (`reason`, and whether to ask `again`). Nothing of it is stored: without the broker the answer "
            "is 503, and what happened is shown by clients, incidents and changes. 429 where too many watch."
        ),
        parameters=TAIL_FILTERS,
        responses=described(200, _TEXT, 401, 404, 422, 503, media=(MEDIA,)),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """The grant of a tail, which `streams` turns into it."""
        query = Query(request, ("client", "type", "name", "seconds"), repeatable=("kind",))
        client, name = query.text("client"), query.text("name")
        no_type: ResourceType | None = None
        type_ = query.parsed("type", kind_named, no_type, wanted=f"must be one of {type_words()}, or a type URL")
        kinds = query.words("kind", [each.value for each in Kind])
        seconds = query.whole("seconds", LONGEST_S, minimum=1, maximum=LONGEST_S)
        if name and (problem := name_problem(name)):
            query.refuse("name", problem, hint="Give the name that clients ask for.")
        query.done()
        wanted = Filter(
            client, type_.word if type_ is not None else "", name, frozenset(map(Kind, kinds)) if kinds else ALL_KINDS
        )
        since = since_of(request.headers.get("Last-Event-ID", ""))
        return Granted(Wanted(principal_of(request).id, environment_key, wanted, seconds, since))


urlpatterns = [
    path("environments/<part:environment_key>/tail", streams(TailView.as_view(), TailView)),
]
