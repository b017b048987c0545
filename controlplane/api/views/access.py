"""Client groups and access rules (interfaces.md section 4): each write is a change, named beside the row."""

from typing import Any, Final

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.access.selectors import group_get, group_list, group_state, rule_get, rule_list, rule_state
from controlplane.access.services import (
    group_create,
    group_delete,
    group_update,
    rule_create,
    rule_delete,
    rule_update,
)
from controlplane.access.values import AccessWritten, GroupDraft, GroupState, RuleDraft, RuleState
from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer
from controlplane.api.bodies import document_of, values_of
from controlplane.api.pages import plain_page
from controlplane.api.paths import ENVIRONMENT_PATH, path_to
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import GUARDED, PAGE, body_of_shape, described, page_of
from controlplane.api.shapes.access import (
    ClientGroupIn,
    ClientGroupOut,
    ClientGroupWrittenOut,
    RuleIn,
    RuleOut,
    RuleWrittenOut,
)
from controlplane.api.views.base import ApiView, principal_of
from controlplane.api.views.guarding import dry_run_answer, guarded
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.selectors import Selector

_REFUSALS = (400, 401, 403, 404, 409, 413, 415, 422, 503)


class ClientGroupListView(ApiView):
    """List and create the client groups of an environment."""

    needs = {"GET": Role.VIEWER, "POST": Role.ACCESS_EDITOR}

    @extend_schema(
        operation_id="client_group_list",
        summary="List the client groups of an environment",
        parameters=PAGE,
        responses=described(200, page_of(ClientGroupOut), 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """One page of the environment's client groups, by key."""
        rows = group_list(environment_key=environment_key)
        return json_answer(plain_page(request, rows, lambda row: _state_json(group_state(row))))

    @extend_schema(
        operation_id="client_group_create",
        summary="Make a client group",
        request=body_of_shape(ClientGroupIn),
        parameters=GUARDED,
        responses=described(201, ClientGroupWrittenOut, *_REFUSALS, dry_run=True),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Create a client group that no rule mentions yet."""
        asked = guarded(request)
        draft = _group_draft(values_of(document_of(request), ClientGroupIn))
        made = group_create(
            environment_key=environment_key,
            draft=draft,
            actor=principal_of(request),
            request_id=request_id(),
            reason=asked.reason,
            dry_run=asked.dry_run,
        )
        location = path_to("environments", environment_key, "client-groups", draft.key)
        return _written(request, made, dry_run=asked.dry_run, status=201, headers={"Location": location})


class ClientGroupView(ApiView):
    """Read, replace, change and delete one client group, named by its key or its id."""

    needs = {
        "GET": Role.VIEWER,
        "PUT": Role.ACCESS_EDITOR,
        "PATCH": Role.ACCESS_EDITOR,
        "DELETE": Role.ACCESS_EDITOR,
    }

    @extend_schema(
        operation_id="client_group_get",
        summary="Read a client group",
        responses=described(200, ClientGroupOut, 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str, group_key: str) -> HttpResponse:
        """The client group as it is stored now."""
        Query(request, ()).done()
        return json_answer(_state_json(group_get(environment_key=environment_key, key=group_key)))

    @extend_schema(
        operation_id="client_group_replace",
        summary="Replace a client group",
        request=body_of_shape(ClientGroupIn),
        parameters=GUARDED,
        responses=described(200, ClientGroupWrittenOut, *_REFUSALS, dry_run=True),
    )
    def put(self, request: Request, environment_key: str, group_key: str) -> HttpResponse:
        """Replace the whole client group by the one in the body."""
        return self._write(request, environment_key, group_key, partial=False)

    @extend_schema(
        operation_id="client_group_update",
        summary="Change parts of a client group",
        request=body_of_shape(ClientGroupIn),
        parameters=GUARDED,
        responses=described(200, ClientGroupWrittenOut, *_REFUSALS, dry_run=True),
    )
    def patch(self, request: Request, environment_key: str, group_key: str) -> HttpResponse:
        """Change the fields of the client group that the body has; the others stay."""
        return self._write(request, environment_key, group_key, partial=True)

    @extend_schema(
        operation_id="client_group_delete",
        summary="Delete a client group that no rule speaks of",
        parameters=GUARDED,
        responses=described(200, ClientGroupWrittenOut, 401, 403, 404, 409, 422, 503, dry_run=True),
    )
    def delete(self, request: Request, environment_key: str, group_key: str) -> HttpResponse:
        """Delete the client group; the answer is the group as it was."""
        asked = guarded(request)
        gone = group_delete(
            environment_key=environment_key,
            key=group_key,
            actor=principal_of(request),
            request_id=request_id(),
            reason=asked.reason,
            dry_run=asked.dry_run,
        )
        return _written(request, gone, dry_run=asked.dry_run)

    def _write(self, request: Request, environment_key: str, group_key: str, *, partial: bool) -> HttpResponse:
        asked = guarded(request)
        values = values_of(document_of(request), ClientGroupIn, partial=partial)
        if partial:
            values = {**group_get(environment_key=environment_key, key=group_key).draft.as_json(), **values}
        made = group_update(
            environment_key=environment_key,
            key=group_key,
            draft=_group_draft(values),
            actor=principal_of(request),
            request_id=request_id(),
            reason=asked.reason,
            consent=asked.consent,
            dry_run=asked.dry_run,
        )
        return _written(request, made, dry_run=asked.dry_run)


class RuleListView(ApiView):
    """List and create the access rules of an environment."""

    needs = {"GET": Role.VIEWER, "POST": Role.ACCESS_EDITOR}

    @extend_schema(
        operation_id="rule_list",
        summary="List the access rules of an environment in the order in which they are asked",
        parameters=PAGE,
        responses=described(200, page_of(RuleOut), 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """One page of the environment's access rules, in their order."""
        rows = rule_list(environment_key=environment_key)
        return json_answer(plain_page(request, rows, lambda row: _state_json(rule_state(row))))

    @extend_schema(
        operation_id="rule_create",
        summary="Make an access rule",
        description="Refused with 409 when its position is taken, or when it breaks a blocking case.",
        request=body_of_shape(RuleIn),
        parameters=GUARDED,
        responses=described(201, RuleWrittenOut, *_REFUSALS, dry_run=True),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Create an access rule at its position, or behind all others."""
        asked = guarded(request)
        draft = _rule_draft(values_of(document_of(request), RuleIn))
        made = rule_create(
            environment_key=environment_key,
            draft=draft,
            actor=principal_of(request),
            request_id=request_id(),
            reason=asked.reason,
            consent=asked.consent,
            dry_run=asked.dry_run,
        )
        location = path_to("environments", environment_key, "rules", str(made.id))
        return _written(request, made, dry_run=asked.dry_run, status=201, headers={"Location": location})


class RuleView(ApiView):
    """Read, replace, change and delete one access rule."""

    needs = {
        "GET": Role.VIEWER,
        "PUT": Role.ACCESS_EDITOR,
        "PATCH": Role.ACCESS_EDITOR,
        "DELETE": Role.ACCESS_EDITOR,
    }

    @extend_schema(
        operation_id="rule_get",
        summary="Read an access rule",
        responses=described(200, RuleOut, 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str, rule_id: int) -> HttpResponse:
        """The access rule as it is stored now."""
        Query(request, ()).done()
        return json_answer(_state_json(rule_get(environment_key=environment_key, rule_id=rule_id)))

    @extend_schema(
        operation_id="rule_replace",
        summary="Replace an access rule",
        request=body_of_shape(RuleIn),
        parameters=GUARDED,
        responses=described(200, RuleWrittenOut, *_REFUSALS, dry_run=True),
    )
    def put(self, request: Request, environment_key: str, rule_id: int) -> HttpResponse:
        """Replace the whole access rule by the one in the body; without a position it stays where it is."""
        return self._write(request, environment_key, rule_id, partial=False)

    @extend_schema(
        operation_id="rule_update",
        summary="Change parts of an access rule",
        request=body_of_shape(RuleIn),
        parameters=GUARDED,
        responses=described(200, RuleWrittenOut, *_REFUSALS, dry_run=True),
    )
    def patch(self, request: Request, environment_key: str, rule_id: int) -> HttpResponse:
        """Change the fields of the access rule that the body has; the others stay."""
        return self._write(request, environment_key, rule_id, partial=True)

    @extend_schema(
        operation_id="rule_delete",
        summary="Delete an access rule",
        parameters=GUARDED,
        responses=described(200, RuleWrittenOut, 401, 403, 404, 409, 422, 503, dry_run=True),
    )
    def delete(self, request: Request, environment_key: str, rule_id: int) -> HttpResponse:
        """Delete the access rule; the answer is the rule as it was."""
        asked = guarded(request)
        gone = rule_delete(
            environment_key=environment_key,
            rule_id=rule_id,
            actor=principal_of(request),
            request_id=request_id(),
            reason=asked.reason,
            consent=asked.consent,
            dry_run=asked.dry_run,
        )
        return _written(request, gone, dry_run=asked.dry_run)

    def _write(self, request: Request, environment_key: str, rule_id: int, *, partial: bool) -> HttpResponse:
        asked = guarded(request)
        values = values_of(document_of(request), RuleIn, partial=partial)
        if partial:
            values = {**rule_get(environment_key=environment_key, rule_id=rule_id).draft.as_json(), **values}
        made = rule_update(
            environment_key=environment_key,
            rule_id=rule_id,
            draft=_rule_draft(values),
            actor=principal_of(request),
            request_id=request_id(),
            reason=asked.reason,
            consent=asked.consent,
            dry_run=asked.dry_run,
        )
        return _written(request, made, dry_run=asked.dry_run)


def _written(
    request: Request, written: AccessWritten, *, dry_run: bool, status: int = 200, headers: dict[str, str] | None = None
) -> HttpResponse:
    """The answer to a write: the group or rule with the change that was made; to a dry run, what would be lost and
    found.
    """
    if dry_run:
        return dry_run_answer(request, written.loss, written.findings)
    findings = [finding_json(finding) for finding in written.findings]
    body = {"id": written.id, **written.row, "change": written.change_id or None, "findings": findings}
    return json_answer(body, status=status, headers=headers)


def _state_json(state: GroupState | RuleState) -> dict[str, object]:
    return {"id": state.id, **state.draft.as_json()}


def _group_draft(values: dict[str, Any]) -> GroupDraft:
    matchers = tuple(Selector(**matcher) for matcher in values["matchers"])
    return GroupDraft(values["key"], matchers, Trust(values["trust"]))


def _rule_draft(values: dict[str, Any]) -> RuleDraft:
    return RuleDraft(
        effect=Effect(values["effect"]),
        pattern=values["pattern"],
        position=values.get("position"),
        client_groups=tuple(values["client_groups"]),
        types=tuple(values["types"]),
        message=values["message"],
        enabled=values["enabled"],
    )


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/client-groups", ClientGroupListView.as_view()),
    path(f"{ENVIRONMENT_PATH}/client-groups/<part:group_key>", ClientGroupView.as_view()),
    path(f"{ENVIRONMENT_PATH}/rules", RuleListView.as_view()),
    path(f"{ENVIRONMENT_PATH}/rules/<int:rule_id>", RuleView.as_view()),
]
_GROUP_EXAMPLE: Final[dict[str, Any]] = {
    "key": "payments",
    "matchers": [{"identity": "spiffe://corp/ns/pay/*"}],
    "trust": "verified",
}
_RULE_EXAMPLE: Final[dict[str, Any]] = {
    "position": 10,
    "client_groups": ["payments"],
    "types": ["cluster"],
    "pattern": "pay*",
    "effect": "deny",
    "message": "Ask the payments team.",
}
EXAMPLES = {
    "client_group_create": _GROUP_EXAMPLE,
    "client_group_replace": _GROUP_EXAMPLE,
    "client_group_update": {"matchers": [{"identity": "spiffe://corp/ns/pay/sa/*"}]},
    "rule_create": _RULE_EXAMPLE,
    "rule_replace": _RULE_EXAMPLE,
    "rule_update": {"enabled": False},
}
