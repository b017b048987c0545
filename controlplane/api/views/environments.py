"""Environments (interfaces.md section 4)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.access.selectors import group_list
from controlplane.access.services import default_effect_check
from controlplane.accounts.principal import Role
from controlplane.api.answers import empty_answer, json_answer
from controlplane.api.authentication import proof_require
from controlplane.api.bodies import document_of, located_in, values_of
from controlplane.api.pages import plain_page
from controlplane.api.paths import ENVIRONMENT_PATH, path_to
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import BREAK_GLASS, GUARDED, PAGE, body_of_shape, described, page_of
from controlplane.api.shapes.environments import (
    EnvironmentIn,
    EnvironmentOut,
    EnvironmentPatchIn,
    EnvironmentWrittenOut,
)
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.api.views.guarding import dry_run_answer, guarded
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.freezes import freezes_from_json, frozen_at
from controlplane.catalog.review import review_from_json
from controlplane.catalog.rights import POLICY_ROLES, require
from controlplane.catalog.rollout_settings import settings_from_json
from controlplane.catalog.selectors import EnvironmentState, environment_get, environment_list
from controlplane.catalog.services import environment_create, environment_delete, environment_update, quarantine_default
from controlplane.catalog.values import ChangeMade, EnvironmentPolicy
from controlplane.common.errors import InputInvalid
from controlplane.status.environments import EnvironmentStatus
from controlplane.status.selectors import environment_statuses
from controlplane.status.sentence import Sentence
from controlplane.status.sentences import environment_sentences
from xdscore.access import Effect
from xdscore.environment_choice import Selector
from xdscore.findings import Finding
from xdscore.schema.content_policy import policy_of, stances_of
from xdscore.schema.positions import path_of
from xdscore.schema.text import Document


class EnvironmentListView(ApiView):
    """List and create environments."""

    needs = {"GET": Needs.ANYBODY, "POST": Role.ADMIN}

    @extend_schema(
        operation_id="environment_list",
        summary="List the environments you may see, in the order in which clients try them",
        parameters=PAGE,
        responses=described(200, page_of(EnvironmentOut), 401, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of the environments that the caller may see."""
        principal = principal_of(request)
        seen = [state for state in environment_list() if principal.may(Role.VIEWER, state.key)]
        statuses = environment_statuses(environments=seen)
        said = environment_sentences(environments=seen, statuses=statuses)
        return json_answer(
            plain_page(request, seen, lambda state: environment_json(state, statuses[state.key], said[state.key]))
        )

    @extend_schema(
        operation_id="environment_create",
        summary="Create an environment behind the others",
        request=body_of_shape(EnvironmentIn),
        parameters=GUARDED,
        responses=described(201, EnvironmentWrittenOut, 400, 401, 403, 409, 413, 415, 422, 503, dry_run=True),
    )
    def post(self, request: Request) -> HttpResponse:
        """Create an environment, which is empty at first."""
        asked = guarded(request)
        document = document_of(request)
        values = values_of(document, EnvironmentIn)
        key = values.pop("key")
        _settings_read(document, values, groups=frozenset())
        policy = _policy(EnvironmentPolicy(quarantine=quarantine_default()), values)
        made = environment_create(
            key=key,
            policy=policy,
            actor=principal_of(request),
            request_id=request_id(),
            reason=asked.reason,
            consent=asked.consent,
            dry_run=asked.dry_run,
        )
        if asked.dry_run:
            return dry_run_answer(request, made.loss)
        return _written(made, status=201, headers={"Location": path_to("environments", key)})


class EnvironmentView(ApiView):
    """Read, change and delete one environment."""

    needs = {"GET": Role.VIEWER, "PATCH": Role.VIEWER, "DELETE": Role.ADMIN}

    @extend_schema(
        operation_id="environment_get",
        summary="Read an environment",
        responses=described(200, EnvironmentOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """The environment as it is now, with its settings and status."""
        Query(request, ()).done()
        return json_answer(_environment_now(environment_key))

    @extend_schema(
        operation_id="environment_update",
        summary="Change policies of an environment",
        description=(
            "Needs the role admin for `selectors`, `node_ids`, `content`, `deep_validation`, "
            "`require_if_match`, `loss_threshold`, `rollout`, `freezes` and `review`, "
            "access-editor for `default_effect`, and operator for `quarantine` and `hold`."
        ),
        request=body_of_shape(EnvironmentPatchIn),
        parameters=[*GUARDED, BREAK_GLASS],
        responses=described(200, EnvironmentWrittenOut, 400, 401, 403, 404, 409, 413, 415, 422, 503, dry_run=True),
    )
    def patch(self, request: Request, environment_key: str) -> HttpResponse:
        """Change the settings of the environment that the body has; the others stay."""
        asked = guarded(request, "break_glass")
        principal = principal_of(request)
        if not any(principal.may(role, environment_key) for role in POLICY_ROLES.values()):
            require(principal, Role.OPERATOR, environment_key)
        document = document_of(request)
        values = values_of(document, EnvironmentPatchIn)
        if not values:
            raise InputInvalid(
                f"The body names nothing to change. Fields are {', '.join(POLICY_ROLES)}. Nothing was changed."
            )
        for field in values:
            require(principal, POLICY_ROLES[field], environment_key)
        if "review" in values:
            proof_require(request, "Changing the settings of review", "Review")
        groups: frozenset[str] = frozenset()
        if "rollout" in values:
            groups = frozenset(group_list(environment_key=environment_key).values_list("key", flat=True))
        _settings_read(document, values, groups=groups)
        before = environment_get(key=environment_key).policy
        policy = _policy(before, values)
        if policy.default_effect is not before.default_effect:
            default_effect_check(environment_key=environment_key, default=policy.default_effect)
        made = environment_update(
            key=environment_key,
            policy=policy,
            before=before,
            actor=principal,
            request_id=request_id(),
            reason=asked.reason,
            consent=asked.consent,
            dry_run=asked.dry_run,
        )
        return dry_run_answer(request, made.loss, made.findings) if asked.dry_run else _written(made)

    @extend_schema(
        operation_id="environment_delete",
        summary="Delete an environment with everything in it",
        parameters=[*GUARDED, BREAK_GLASS],
        responses=described(204, None, 401, 403, 404, 409, 422, 503, dry_run=True),
    )
    def delete(self, request: Request, environment_key: str) -> HttpResponse:
        """Delete the environment with all its resources and rules."""
        asked = guarded(request, "break_glass")
        loss = environment_delete(
            key=environment_key,
            actor=principal_of(request),
            request_id=request_id(),
            reason=asked.reason,
            consent=asked.consent,
            dry_run=asked.dry_run,
        )
        return dry_run_answer(request, loss) if asked.dry_run else empty_answer(204)


def _environment_now(key: str) -> dict[str, object]:
    state = environment_get(key=key)
    statuses = environment_statuses(environments=[state])
    said = environment_sentences(environments=[state], statuses=statuses)
    return environment_json(state, statuses[key], said[key])


def environment_json(state: EnvironmentState, status: EnvironmentStatus, said: Sentence) -> dict[str, object]:
    """An environment as a JSON object. `status`, `said`: how it stands now, and the sentence about it."""
    frozen = frozen_at(state.policy.freezes, timezone.now())
    return {
        "key": state.key,
        "position": state.position,
        "selectors": [each.as_json() for each in state.policy.selectors],
        "node_ids": list(state.policy.node_ids),
        "default_effect": state.policy.default_effect.value,
        "quarantine": state.policy.quarantine.value,
        "hold": state.policy.hold or None,
        "content": stances_of(state.policy.content),
        "deep_validation": state.policy.deep_validation,
        "require_if_match": state.policy.require_if_match,
        "loss_threshold": state.policy.loss_threshold.as_json(),
        "rollout": state.policy.rollout.as_json(),
        "freezes": [each.as_json() for each in state.policy.freezes],
        "review": state.policy.review.as_json(),
        "frozen": frozen.as_json() if frozen is not None else None,
        "epoch": state.epoch,
        "generation": state.generation,
        "built_generation": state.built_generation,
        "status": status.status.value,
        "reason": status.reason,
        "summary": said.text,
        "statuses": {each.value: count for each, count in status.counts.items()},
        "losses": status.losses,
    }


def _policy(before: EnvironmentPolicy, values: dict[str, Any]) -> EnvironmentPolicy:
    """A copy of the policy `before`, in which the settings in `values` replace its own."""
    changed: dict[str, Any] = {}
    if "selectors" in values:
        changed["selectors"] = tuple(Selector(**selector) for selector in values["selectors"])
    if "node_ids" in values:
        changed["node_ids"] = tuple(values["node_ids"])
    if "default_effect" in values:
        changed["default_effect"] = Effect(values["default_effect"])
    if "quarantine" in values:
        changed["quarantine"] = QuarantinePolicy(values["quarantine"])
    if "hold" in values:
        changed["hold"] = values["hold"] or ""
    if "content" in values:
        changed["content"] = policy_of(stances_of(before.content) | values["content"])
    if "loss_threshold" in values:
        changed["loss_threshold"] = replace(before.loss_threshold, **values["loss_threshold"])
    as_given = ("deep_validation", "require_if_match", "rollout", "freezes", "review")
    changed |= {field: values[field] for field in as_given if field in values}
    return replace(before, **changed)


def _settings_read(document: Document, values: dict[str, Any], *, groups: frozenset[str]) -> None:
    """Replace the settings in `values` that have a reader of their own by what it makes of them. `groups`: the keys of
    the client groups that there are. Raises InputInvalid with every problem, each at its place in the body.
    """
    tree = document.tree
    readers: dict[str, Callable[[object], object]] = {
        "rollout": lambda data: settings_from_json(data, groups=groups),
        "freezes": freezes_from_json,
        "review": review_from_json,
    }
    findings: list[Finding] = []
    for field, read in readers.items():
        if field not in values:
            continue
        try:
            values[field] = read(tree[field] if isinstance(tree, dict) else None)
        except InputInvalid as error:
            findings += (located_in(document, path_of(each.pointer, tree), each) for each in error.findings)
    if findings:
        raise InputInvalid("The settings are not valid. Nothing was changed.", findings=tuple(findings))


def _written(made: ChangeMade, *, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    return json_answer(
        {**_environment_now(made.environment), "change": made.change_id or None}, status=status, headers=headers
    )


urlpatterns = [
    path("environments", EnvironmentListView.as_view()),
    path(ENVIRONMENT_PATH, EnvironmentView.as_view()),
]
EXAMPLES = {
    "environment_create": {"key": "staging", "selectors": [{"node_id": "staging-*"}], "default_effect": "allow"},
    "environment_update": {"quarantine": "automatic"},
}
