"""Validate: what apply would say about manifests, without an environment and without any state."""

from collections.abc import Sequence

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.api.answers import json_answer
from controlplane.api.bodies import documents_of, values_of
from controlplane.api.examples import CLUSTER
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.schema import ANYTHING, STRICT, described, manifests_body
from controlplane.api.shapes.validation import ValidateIn, ValidateOut
from controlplane.api.views.base import ApiView, Needs
from controlplane.builder.deep.unasked import NOWHERE, NotJudged, not_judged
from controlplane.catalog.reading import manifests_at, manifests_in, parsed_all
from controlplane.common.errors import InputInvalid
from xdscore.findings import Finding
from xdscore.schema import Manifest
from xdscore.schema.text import Document


class ValidateView(ApiView):
    """Check manifests without storing anything."""

    needs = {"POST": Needs.KNOWN}

    @extend_schema(
        operation_id="validate",
        summary="Say what is wrong with manifests",
        parameters=[STRICT],
        request=manifests_body(ValidateIn, ANYTHING),
        responses=described(200, ValidateOut, 400, 401, 413, 415, 422, 503),
    )
    def post(self, request: Request) -> HttpResponse:
        """All findings about the manifests; the answer is 200 also where a manifest has errors. Only a body that cannot
        be read is refused.
        """
        query = Query(request, ("strict",))
        strict = query.flag("strict")
        query.done()
        documents = documents_of(request)
        try:
            manifests, notes = _manifests(documents)
        except InputInvalid as error:
            return _answer(valid=False, findings=error.findings, left_out=())
        read = parsed_all(manifests, strict=strict)
        left_out = not_judged(read.parsed, NOWHERE)
        return _answer(valid=not read.refused, findings=(*notes, *read.findings), left_out=left_out)


def _manifests(documents: Sequence[Document]) -> tuple[tuple[Manifest, ...], tuple[Finding, ...]]:
    """The manifests in a body, either `{"resources": […]}` or plain files, and findings about what was left out. Raises
    InputInvalid.
    """
    tree = documents[0].tree if len(documents) == 1 else None
    if isinstance(tree, dict) and tree.keys() == {"resources"}:
        values_of(documents[0], ValidateIn)
        return manifests_at(documents[0], "/resources")
    return manifests_in(documents)


def _answer(*, valid: bool, findings: Sequence[Finding], left_out: Sequence[NotJudged]) -> HttpResponse:
    return json_answer(
        {
            "valid": valid,
            "findings": [finding_json(each) for each in findings],
            "not_judged": [each.as_json() for each in left_out],
        }
    )


urlpatterns = [
    path("validate", ValidateView.as_view()),
]
EXAMPLES = {
    "validate": {"resources": [CLUSTER]},
}
