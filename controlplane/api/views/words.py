"""What a client says of itself, as a collector beside it reports, and where that differs from what Parley believes."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer, moment
from controlplane.api.bodies import bulk_within_limit, document_of, values_of
from controlplane.api.query import Query
from controlplane.api.schema import body_of_shape, described
from controlplane.api.shapes.words import ClientWordOut, WordIn
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.api.views.clients import client_visible
from controlplane.catalog.rights import require
from controlplane.clients.reports import ClientWord, DifferenceView, ReportView, client_word
from controlplane.explain.words import word_take
from xdscore.said import Said, SaidSource, SaidState, Word


class ClientWordView(ApiView):
    """Read and send the report of what a client has."""

    needs = {"GET": Needs.ANYBODY, "POST": Needs.CHECK}

    def check(self, request: Request, client_id: str) -> None:
        """Raise NotFound when the caller may not see the client, Forbidden when they may not send a report of it."""
        require(principal_of(request), Role.REPORTER, client_visible(request, client_id).environment)

    @extend_schema(
        operation_id="client_said",
        summary="Read what a client says of itself, and where that differs from what Parley believes",
        responses=described(200, ClientWordOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, client_id: str) -> HttpResponse:
        """The client's newest report, compared with what Parley believed that the client has when the report came."""
        Query(request, ()).done()
        client_visible(request, client_id)
        return json_answer(_word_json(client_word(public_id=client_id)))

    @extend_schema(
        operation_id="client_report",
        summary="Report what a client says of itself; it is compared at once",
        description=(
            "Needs the role reporter in the client's environment. `xdsctl inspect --report` sends it. Of each name "
            "where client and Parley differ, and of how many agree, a record is kept; nothing else of the report is."
        ),
        request=body_of_shape(WordIn),
        responses=described(200, ClientWordOut, 400, 401, 403, 404, 413, 415, 422, 503),
    )
    def post(self, request: Request, client_id: str) -> HttpResponse:
        """Compare the report in the body with what Parley believes that the client has, and store where they differ."""
        Query(request, ()).done()
        client = client_visible(request, client_id)
        document = document_of(request)
        bulk_within_limit(document, "names", "said_names")
        values = values_of(document, WordIn)
        word = Word(
            source=SaidSource(values["source"]),
            node_id=client.node_id,
            types=frozenset(values["types"]),
            names=tuple(Said(**{**each, "state": SaidState(each["state"])}) for each in values["names"]),
        )
        return json_answer(_word_json(word_take(client=client, word=word, by=principal_of(request).name)))


def _word_json(word: ClientWord | None) -> dict[str, object]:
    if word is None:
        return {"report": None, "differences": [], "earlier": []}
    return {
        "report": _report_json(word.report),
        "differences": [_difference_json(each) for each in word.differences],
        "earlier": [_report_json(each) for each in word.earlier],
    }


def _report_json(report: ReportView) -> dict[str, object]:
    return {
        "at": moment(report.at),
        "source": report.source.value,
        "by": report.by,
        "compared": report.compared,
        "agreeing": report.agreeing,
        "differing": report.differing,
        "by_presence": report.by_presence,
        "unsure": report.unsure,
    }


def _difference_json(difference: DifferenceView) -> dict[str, object]:
    return {
        "type": difference.type,
        "name": difference.name,
        "kind": difference.kind.value,
        "sentence": difference.sentence,
        "state": difference.state,
        "said_version": difference.said_version,
        "said_revision": difference.said_revision or None,
        "believed_version": difference.believed_version,
        "believed_revision": difference.believed_revision or None,
        "error": difference.error,
        "since": moment(difference.since),
        "seen_at": moment(difference.seen_at),
    }


urlpatterns = [
    path("clients/<slug:client_id>/said", ClientWordView.as_view()),
]
EXAMPLES = {
    "client_report": {
        "source": "envoy-admin",
        "types": ["cluster"],
        "names": [
            {"type": "cluster", "name": "pay", "state": "ACKED", "held": True, "version": "b78db11a53ad7672"},
            {"type": "cluster", "name": "cart", "state": "WARMING", "held": True, "version_info": "w7"},
        ],
    },
}
