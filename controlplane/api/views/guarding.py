"""What the API takes and answers where a write is judged by what connected clients would lose."""

from collections.abc import Sequence

from django.http import HttpResponse
from rest_framework.request import Request

from controlplane.api.answers import json_answer
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.views.base import principal_of
from controlplane.catalog.guarding import Consent, Loss
from xdscore.findings import Finding


def guarded(request: Request) -> tuple[bool, Consent]:
    """Whether it is a dry run, and how much loss the request says is meant; it takes no other parameters."""
    query = Query(request, ("accept_loss", "dry_run"))
    dry_run, consent = query.flag("dry_run"), query.consent()
    query.done()
    return dry_run, consent


def dry_run_answer(request: Request, loss: Loss, findings: Sequence[Finding] = ()) -> HttpResponse:
    """What a write would do."""
    seen = loss.seen_by(principal_of(request))
    return json_answer(
        {"dry_run": True, "loss": seen.as_json(), "findings": [finding_json(finding) for finding in findings]}
    )
