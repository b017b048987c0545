"""What the API takes and answers where a write is judged by what connected clients would lose."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse
from rest_framework.request import Request

from controlplane.api.answers import json_answer
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.views.base import principal_of
from controlplane.catalog.guarding import Consent, Loss
from xdscore.findings import Finding


@dataclass(frozen=True, slots=True)
class Guarded:
    """The parameters of a write by which clients may lose something: whether it is a dry run, which loss the writer
    accepts, and the reason of the write.
    """

    dry_run: bool
    consent: Consent
    reason: str


def guarded(request: Request) -> Guarded:
    """The parameters `dry_run`, `accept_loss` and `message` of a request. Raises InputInvalid for any other parameter,
    and for values that cannot be read.
    """
    query = Query(request, ("accept_loss", "dry_run", "message"))
    found = Guarded(query.flag("dry_run"), query.consent(), query.message())
    query.done()
    return found


def dry_run_answer(request: Request, loss: Loss, findings: Sequence[Finding] = ()) -> HttpResponse:
    """The answer to a dry run: what clients would lose, as far as the caller may see them, and the findings."""
    seen = loss.seen_by(principal_of(request))
    return json_answer(
        {"dry_run": True, "loss": seen.as_json(), "findings": [finding_json(finding) for finding in findings]}
    )
