"""Rollouts: what is on its way to the fleet, who has it and what they say; and what people do about it."""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer, moment, moment_or_none
from controlplane.api.bodies import document_of, values_of
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import CURSOR, ROLLOUT_CLIENT_FILTERS, ROLLOUT_FILTERS, body_of_shape, described, page_of
from controlplane.api.shapes.facts import ReasonIn
from controlplane.api.shapes.rollouts import (
    AtStepIn,
    RolloutActedOut,
    RolloutClientOut,
    RolloutDetailOut,
    RolloutOut,
    WebhookSecretOut,
)
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.api.views.changes import reverted_json
from controlplane.catalog.rights import require
from controlplane.common.errors import NotFound
from controlplane.rollouts.selectors import rollout_clients, rollout_environment, rollout_get, rollout_views
from controlplane.rollouts.services import (
    rollout_abort,
    rollout_advance,
    rollout_approve,
    rollout_pause,
    rollout_reject,
    rollout_resume,
    webhook_secret_make,
)
from controlplane.rollouts.values import (
    ClientState,
    KindCounts,
    RolloutClient,
    RolloutResource,
    RolloutState,
    RolloutView,
    StepView,
)
from xdscore.sides import Side

_MAX_CURSOR_CHARS: Final = 4_096  # a node id and a client's id, which have fewer
_ACTED: Final = (400, 401, 403, 404, 409, 413, 415, 422, 503)


class RolloutListView(ApiView):
    """List the rollouts of an environment."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="rollout_list",
        summary="List the rollouts of an environment, newest first",
        parameters=[*CURSOR, *ROLLOUT_FILTERS],
        responses=described(200, page_of(RolloutOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """One page of rollouts; at most one of them is open."""
        query = Query(request, CURSOR_PARAMETERS, repeatable=("state",))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        after = query.text("after", at_most=64)
        states = tuple(RolloutState(each) for each in query.words("state", [each.value for each in RolloutState]))
        query.done()
        found, following = rollout_views(environment_key=environment_key, states=states, after=after, limit=limit)
        return json_answer(cursor_page(request, [rollout_json(each) for each in found], limit, following))


class WebhookSecretView(ApiView):
    """Make the secret with which rollouts of an environment sign what they ask webhooks."""

    needs = {"POST": Role.ADMIN}
    tells_secret = frozenset({"POST"})

    @extend_schema(
        operation_id="rollout_webhook_secret_make",
        summary="Make another secret for the webhooks of an environment's rollouts; it is shown once",
        request=None,
        responses=described(201, WebhookSecretOut, 401, 403, 404, 422, 503),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Make a secret; only this answer tells it, and the one before signs nothing any more."""
        Query(request, ()).done()
        secret = webhook_secret_make(
            environment_key=environment_key, actor=principal_of(request), request_id=request_id()
        )
        return json_answer({"secret": secret}, status=201)


class RolloutDetailView(ApiView):
    """Read one rollout."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="rollout_get",
        summary="Read a rollout: its steps, who has it, what they say, and what it waits for",
        responses=described(200, RolloutDetailOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, rollout_id: UUID) -> HttpResponse:
        """The rollout as it is now."""
        Query(request, ()).done()
        _visible(request, rollout_id)
        return json_answer(_detail_json(rollout_get(public_id=str(rollout_id))))


class RolloutClientsView(ApiView):
    """List the clients of a rollout."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="rollout_clients",
        summary="List the clients on one side of a rollout, with why they are there and what they said",
        parameters=[*CURSOR, *ROLLOUT_CLIENT_FILTERS],
        responses=described(200, page_of(RolloutClientOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request, rollout_id: UUID) -> HttpResponse:
        """One page of clients by node id; without `side`, of those on the candidate side."""
        query = Query(request, (*CURSOR_PARAMETERS, "side", "state"))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        # Not `text`: a node id is in it, which may hold any character.
        after = query.parsed("after", _cursor, "", wanted=f"must have at most {_MAX_CURSOR_CHARS} characters")
        side = query.choice("side", [each.value for each in Side], Side.CANDIDATE.value)
        state = query.choice("state", [each.value for each in ClientState], "")
        query.done()
        _visible(request, rollout_id)
        page = rollout_clients(
            public_id=str(rollout_id),
            side=Side(side),
            state=ClientState(state) if state else None,
            after=after,
            limit=limit,
        )
        return json_answer(cursor_page(request, [_client_json(each) for each in page.rows], limit, page.after))


class RolloutAction(ApiView):
    """The base class of what an operator may do about a rollout; `act` does it, and returns whether that changed
    anything.
    """

    needs = {"POST": Needs.CHECK}
    act: Callable[..., bool]
    body: type[ReasonIn] = ReasonIn

    def check(self, request: Request, rollout_id: UUID) -> None:
        """Raise NotFound when the caller may not see the rollout, Forbidden when they are no operator of its
        environment.
        """
        require(principal_of(request), Role.OPERATOR, _visible(request, rollout_id))

    def _acted(self, request: Request, rollout_id: UUID) -> HttpResponse:
        Query(request, ()).done()
        said = values_of(document_of(request), self.body)
        changed = type(self).act(
            public_id=str(rollout_id), actor=principal_of(request), request_id=request_id(), **said
        )
        return json_answer({**_detail_json(rollout_get(public_id=str(rollout_id))), "changed": changed})


class RolloutAdvanceView(RolloutAction):
    """Go on with a rollout although a gate still waits."""

    act = staticmethod(rollout_advance)
    body = AtStepIn

    @extend_schema(
        operation_id="rollout_advance",
        summary="Go to the next step, or behind the last one to the whole fleet, whatever the gates wait for",
        request=body_of_shape(AtStepIn),
        responses=described(200, RolloutActedOut, *_ACTED),
    )
    def post(self, request: Request, rollout_id: UUID) -> HttpResponse:
        """Go on; what the judge blames is taken back first."""
        return self._acted(request, rollout_id)


class RolloutPauseView(RolloutAction):
    """Stop a rollout for now."""

    act = staticmethod(rollout_pause)

    @extend_schema(
        operation_id="rollout_pause",
        summary="Stay at this step until `resume`",
        request=body_of_shape(ReasonIn),
        responses=described(200, RolloutActedOut, *_ACTED),
    )
    def post(self, request: Request, rollout_id: UUID) -> HttpResponse:
        """Pause it: nothing of it goes on or back by itself."""
        return self._acted(request, rollout_id)


class RolloutResumeView(RolloutAction):
    """Let a paused rollout go on."""

    act = staticmethod(rollout_resume)

    @extend_schema(
        operation_id="rollout_resume",
        summary="Let a paused rollout go on",
        request=body_of_shape(ReasonIn),
        responses=described(200, RolloutActedOut, *_ACTED),
    )
    def post(self, request: Request, rollout_id: UUID) -> HttpResponse:
        """Let it go on where it was paused."""
        return self._acted(request, rollout_id)


class RolloutApproveView(RolloutAction):
    """Give a person's word where a step asks for it."""

    act = staticmethod(rollout_approve)
    body = AtStepIn

    @extend_schema(
        operation_id="rollout_approve",
        summary="Say that the present step may go on",
        request=body_of_shape(AtStepIn),
        responses=described(200, RolloutActedOut, *_ACTED),
    )
    def post(self, request: Request, rollout_id: UUID) -> HttpResponse:
        """Approve the step; with four eyes, not by an author of what it carries."""
        return self._acted(request, rollout_id)


class RolloutRejectView(RolloutAction):
    """Refuse a person's word where a step asks for it."""

    act = staticmethod(rollout_reject)

    @extend_schema(
        operation_id="rollout_reject",
        summary="Say that the present step must not go on: everything is taken back",
        request=body_of_shape(ReasonIn),
        responses=described(200, RolloutActedOut, *_ACTED),
    )
    def post(self, request: Request, rollout_id: UUID) -> HttpResponse:
        """Take everything back at a step that asks for a person's word."""
        return self._acted(request, rollout_id)


class RolloutAbortView(RolloutAction):
    """End a rollout."""

    act = staticmethod(rollout_abort)

    @extend_schema(
        operation_id="rollout_abort",
        summary="Take everything back that the fleet does not have yet",
        request=body_of_shape(ReasonIn),
        responses=described(200, RolloutActedOut, *_ACTED),
    )
    def post(self, request: Request, rollout_id: UUID) -> HttpResponse:
        """Take back, as one change, everything that was not promoted."""
        return self._acted(request, rollout_id)


def _cursor(text: str) -> str | None:
    return text if len(text) <= _MAX_CURSOR_CHARS else None


def _visible(request: Request, rollout_id: UUID) -> str:
    """The key of the rollout's environment. Raises NotFound, with one text, where there is no such rollout and where
    the caller may not see it.
    """
    absent = NotFound(f"There is no rollout '{rollout_id}'.")
    try:
        environment = rollout_environment(public_id=str(rollout_id))
    except NotFound:
        raise absent from None
    if not principal_of(request).may(Role.VIEWER, environment):
        raise absent
    return environment


def rollout_json(view: RolloutView) -> dict[str, object]:
    """A rollout as a JSON object, in the form of interfaces.md section 8."""
    counts = view.counts
    return {
        "id": view.id,
        "environment": view.environment,
        "mode": view.mode,
        "state": view.state.value,
        "step": view.step,
        "steps": [_step_json(each) for each in view.steps],
        "changes": list(view.changes),
        "resources": [_resource_json(each) for each in view.resources],
        "cohort": counts.cohort,
        "control": view.control,
        "exposed": counts.exposed,
        "acked": counts.acked,
        "refused": counts.refused,
        "silent": counts.silent,
        "lost": counts.lost,
        "verdict": view.outcome.value if view.outcome is not None else None,
        "reasons": list(view.reasons),
        "reverted": [reverted_json(each) for each in view.reverted],
        "uncovered": list(view.uncovered),
        "waits_for": view.waits_for or None,
        "until": moment_or_none(view.until),
        "started_at": moment(view.started_at),
        "ended_at": moment_or_none(view.ended_at),
        "because": view.ended_because or view.paused_because,
    }


def _detail_json(view: RolloutView) -> dict[str, object]:
    return {**rollout_json(view), "kinds": [_kind_json(each) for each in view.kinds]}


def _step_json(step: StepView) -> dict[str, object]:
    return {
        "number": step.number,
        "who": step.who,
        "clients": step.meant,
        "bake_s": step.bake_s,
        "approve": step.approve,
        "approvals": list(step.approvals),
        "verdict": step.outcome.value if step.outcome is not None else None,
        "started_at": moment_or_none(step.started_at),
        "ended_at": moment_or_none(step.ended_at),
    }


def _resource_json(resource: RolloutResource) -> dict[str, object]:
    return {
        "type": resource.type,
        "name": resource.name,
        "from": resource.from_revision,
        "to": resource.to_revision,
        "outcome": resource.outcome.value,
        "change": resource.change,
        "author": resource.author,
        "incident": resource.incident or None,
        "because": resource.because,
    }


def _kind_json(kind: KindCounts) -> dict[str, object]:
    counts = kind.counts
    return {
        "kind": kind.kind,
        "connected": kind.connected,
        "cohort": counts.cohort,
        "exposed": counts.exposed,
        "acked": counts.acked,
        "refused": counts.refused,
        "silent": counts.silent,
        "lost": counts.lost,
        "covered": kind.covered,
    }


def _client_json(row: RolloutClient) -> dict[str, object]:
    return {
        "client": row.client,
        "node_id": row.node_id,
        "identity": row.identity,
        "kind": row.kind,
        "side": row.side.value,
        "why": row.why.value if row.why is not None else None,
        "because": row.because,
        "step": row.step,
        "state": row.state.value,
        "answers": [
            {"type": each.type, "name": each.name, "state": each.state.value, "message": each.message}
            for each in row.answers
        ],
    }


_ROLLOUT = "rollouts/<uuid:rollout_id>"
urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/rollouts", RolloutListView.as_view()),
    path(f"{ENVIRONMENT_PATH}/rollout-webhook-secret", WebhookSecretView.as_view()),
    path(_ROLLOUT, RolloutDetailView.as_view()),
    path(f"{_ROLLOUT}/clients", RolloutClientsView.as_view()),
    path(f"{_ROLLOUT}/advance", RolloutAdvanceView.as_view()),
    path(f"{_ROLLOUT}/pause", RolloutPauseView.as_view()),
    path(f"{_ROLLOUT}/resume", RolloutResumeView.as_view()),
    path(f"{_ROLLOUT}/approve", RolloutApproveView.as_view()),
    path(f"{_ROLLOUT}/reject", RolloutRejectView.as_view()),
    path(f"{_ROLLOUT}/abort", RolloutAbortView.as_view()),
]
EXAMPLES = {
    "rollout_advance": {"reason": "the third client is a machine that nobody uses"},
    "rollout_pause": {"reason": "until the sale is over"},
    "rollout_resume": {"reason": "the sale is over"},
    "rollout_approve": {"reason": "error rates look as before"},
    "rollout_reject": {"reason": "latency doubled in the cohort"},
    "rollout_abort": {"reason": "it was meant for staging"},
}
