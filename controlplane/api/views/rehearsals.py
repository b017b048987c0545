"""Rehearsals: some clients get manifests for a moment, and the answer says what they made of them."""

from collections.abc import Sequence

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.bodies import bulk_within_limit, document_of, located_in, values_of
from controlplane.api.examples import CLUSTER
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.query import Query
from controlplane.api.rehearsing import Begun, rehearses
from controlplane.api.requests import request_id
from controlplane.api.schema import STRICT, body_of_shape, described
from controlplane.api.shapes.rehearsals import RehearsalIn, RehearsalOut
from controlplane.api.views.apply import deletions_of
from controlplane.api.views.base import ApiView, principal_of
from controlplane.catalog.json_reading import Reader
from controlplane.catalog.reading import manifests_at, parsed_all, placed, puts_of
from controlplane.catalog.values import Edit
from controlplane.common.errors import InputInvalid
from controlplane.journal.answers import effects_under
from controlplane.rollouts.rehearsal import DEFAULT_WITHIN_S, MAX_WITHIN_S, MIN_WITHIN_S
from controlplane.rollouts.services import rehearsal_begin
from xdscore.schema import Manifest
from xdscore.schema.text import Document


class RehearsalView(ApiView):
    """Have clients of an environment rehearse manifests."""

    needs = {"POST": Role.REHEARSER}

    @extend_schema(
        operation_id="rehearse",
        summary="Send manifests to some clients for a moment, say what they make of them, and withdraw them",
        description=(
            "The clients get what the fleet has, with these manifests beside or in place of it, and nobody else is "
            "sent anything. The answer comes when all have answered, or `within` is over, and what was rehearsed is "
            "withdrawn. No revision, proof, quarantine or incident comes of it. It is judged by the route cases of the "
            "environment as a write would be. A client may drain listeners and rebuild clusters for it. 409 with "
            "Retry-After while a rollout or another rehearsal is open."
        ),
        parameters=[STRICT],
        request=body_of_shape(RehearsalIn),
        responses=described(200, RehearsalOut, 400, 401, 403, 404, 409, 413, 415, 422, 429, 503),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Begin the rehearsal; `rehearses` waits for what comes of it."""
        query = Query(request, ("strict",))
        strict = query.flag("strict")
        query.done()
        document = document_of(request)
        for field in ("resources", "delete"):
            bulk_within_limit(document, field, "apply_items")
        values = values_of(document, RehearsalIn)
        within_s = _within(document, values["within"])
        manifests = _manifests(document, values.get("resources", []))
        deletions = deletions_of(document, values["delete"])
        read = parsed_all(manifests, environment_key=environment_key, strict=strict)
        edits: list[Edit] = [*puts_of(read), *deletions]
        # It leaves nothing behind: whoever lost the answer with the connection may rehearse again under the same key.
        effects_under(None)
        with placed(manifests, read):
            begun = rehearsal_begin(
                environment_key=environment_key,
                edits=edits,
                clients=values["clients"],
                within_s=within_s,
                actor=principal_of(request),
                request_id=request_id(),
            )
        return Begun(begun)

    def finalize_response(  # type: ignore[override]  # Django responses, not DRF's
        self, request: Request, response: HttpResponse, *args: object, **kwargs: object
    ) -> HttpResponse:
        """The answer; of a rehearsal that began, what comes of it is kept under the request's Idempotency-Key."""
        if isinstance(response, Begun):
            response.claim, self._claim = self._claim, None
        return super().finalize_response(request, response, *args, **kwargs)


def _within(document: Document, text: str) -> float:
    """The number of seconds in `within`. Raises InputInvalid."""
    reader = Reader()
    given = reader.object({"within": text}, "")
    seconds = given.duration("within", DEFAULT_WITHIN_S, MIN_WITHIN_S, MAX_WITHIN_S)
    if reader.findings:
        findings = tuple(located_in(document, ("within",), finding) for finding in reader.findings)
        raise InputInvalid("The body has a problem. Nothing was sent to any client.", findings=findings)
    return seconds


def _manifests(document: Document, resources: Sequence[object]) -> tuple[Manifest, ...]:
    return manifests_at(document, "/resources")[0] if resources != [] else ()


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/rehearsals", rehearses(RehearsalView.as_view(), RehearsalView)),
]
EXAMPLES = {
    "rehearse": {"resources": [CLUSTER], "clients": {"each_kind": 1}, "within": "10s"},
}
