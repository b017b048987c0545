"""What the API takes and answers where a write is judged by what connected clients would lose."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.http import HttpResponse
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.shapes.facts import MAX_REASON_CHARS
from controlplane.api.views.base import principal_of
from controlplane.catalog.guarding import Consent, Loss
from controlplane.catalog.rights import require
from controlplane.catalog.services import Terms
from xdscore.findings import Finding


@dataclass(frozen=True, slots=True)
class Guarded:
    """The parameters of a write by which clients may lose something: whether it is a dry run, which loss the writer
    accepts, and the reason of the write.
    """

    dry_run: bool
    consent: Consent
    reason: str


def guarded(request: Request, *more: str) -> Guarded:
    """The parameters `dry_run`, `accept_loss`, `accept_cases`, `message` and those in `more` of a request. Raises
    InputInvalid for any other parameter, and for values that cannot be read.
    """
    query = Query(request, ("accept_cases", "accept_loss", "dry_run", "message", *more))
    found = Guarded(query.flag("dry_run"), query.consent(), query.message())
    query.done()
    return found


@dataclass(frozen=True, slots=True)
class RolloutAsked:
    """Whether a write asks to go past the environment's rollouts, and why; no reason: it does not."""

    because: str = ""

    def require(self, request: Request, environment_key: str) -> None:
        """Raise Forbidden where the write asks for that and the caller is no operator of the environment."""
        if self.because:
            require(principal_of(request), Role.OPERATOR, environment_key)

    def terms(self, terms: Terms | None = None) -> Terms:
        """The terms of the write, which has `terms` or none besides, with what is asked here."""
        return replace(terms or Terms(), staged=not self.because, because=self.because)


def rollout_asked(query: Query) -> RolloutAsked:
    """The parameters `rollout` and `reason` of a write of resources. Notes a problem where only one is given."""
    now = query.choice("rollout", ("now",), "") == "now"
    because = query.text("reason", at_most=MAX_REASON_CHARS).strip()
    if now and not because:
        query.refuse("reason", "must say why the steps are skipped, with rollout=now")
    if because and not now:
        query.refuse("reason", "is the reason for rollout=now, which is not given")
    return RolloutAsked(because if now else "")


def dry_run_answer(request: Request, loss: Loss, findings: Sequence[Finding] = ()) -> HttpResponse:
    """The answer to a dry run: what clients would lose, as far as the caller may see them, and the findings."""
    seen = loss.seen_by(principal_of(request))
    return json_answer(
        {"dry_run": True, "loss": seen.as_json(), "findings": [finding_json(finding) for finding in findings]}
    )
