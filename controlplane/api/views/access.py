"""Client groups and access rules (interfaces.md section 4): each write is a change, named beside the row."""

from typing import Any, Final

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_view

from controlplane.access.models import AccessRule, ClientGroup
from controlplane.access.selectors import group_get, group_list, group_state, rule_get, rule_list, rule_state
from controlplane.access.services import (
    group_create,
    group_delete,
    group_update,
    rule_create,
    rule_delete,
    rule_update,
)
from controlplane.access.values import AccessWritten, GroupState, RuleState
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.schema import BREAK_GLASS, GUARDED, PAGE, body_of_shape, described, page_of
from controlplane.api.shapes.access import (
    ClientGroupIn,
    ClientGroupOut,
    ClientGroupWrittenOut,
    RuleIn,
    RuleOut,
    RuleWrittenOut,
)
from controlplane.api.views.access_drafts import group_draft, rule_draft
from controlplane.api.views.access_rows import AccessRowsView, AccessRowView, Writing
from controlplane.catalog.guarding import Consent

_REFUSALS = (400, 401, 403, 404, 409, 413, 415, 422, 503)


@extend_schema_view(
    get=extend_schema(
        operation_id="client_group_list",
        summary="List the client groups of an environment",
        description="One page of the environment's client groups, by key.",
        parameters=PAGE,
        responses=described(200, page_of(ClientGroupOut), 401, 403, 404, 422, 503),
    ),
    post=extend_schema(
        operation_id="client_group_create",
        summary="Make a client group",
        description="Create a client group that no rule mentions yet.",
        request=body_of_shape(ClientGroupIn),
        parameters=[*GUARDED, BREAK_GLASS],
        responses=described(201, ClientGroupWrittenOut, *_REFUSALS, dry_run=True),
    ),
)
class ClientGroupListView(AccessRowsView):
    """The client groups of an environment."""

    shape = ClientGroupIn
    word = "client-groups"

    def rows(self, environment_key: str) -> "QuerySet[ClientGroup]":
        """The environment's client groups, ordered by key."""
        return group_list(environment_key=environment_key)

    def state(self, row: ClientGroup) -> GroupState:
        """The client group that is stored in this row."""
        return group_state(row)

    def create(self, values: dict[str, Any], consent: Consent, writing: Writing) -> tuple[AccessWritten, str]:
        """Create a client group; returns what was written, and its key. No rule is for it yet, so no client loses
        anything.
        """
        draft = group_draft(values)
        return group_create(draft=draft, consent=consent, **writing), draft.key


@extend_schema_view(
    get=extend_schema(
        operation_id="client_group_get",
        summary="Read a client group",
        description="The client group as it is stored now.",
        responses=described(200, ClientGroupOut, 401, 403, 404, 422, 503),
    ),
    put=extend_schema(
        operation_id="client_group_replace",
        summary="Replace a client group",
        description="Replace the whole client group by the one in the body.",
        request=body_of_shape(ClientGroupIn),
        parameters=[*GUARDED, BREAK_GLASS],
        responses=described(200, ClientGroupWrittenOut, *_REFUSALS, dry_run=True),
    ),
    patch=extend_schema(
        operation_id="client_group_update",
        summary="Change parts of a client group",
        description="Change the fields of the client group that the body has; the others stay.",
        request=body_of_shape(ClientGroupIn),
        parameters=[*GUARDED, BREAK_GLASS],
        responses=described(200, ClientGroupWrittenOut, *_REFUSALS, dry_run=True),
    ),
    delete=extend_schema(
        operation_id="client_group_delete",
        summary="Delete a client group that no rule speaks of",
        description="Delete the client group; the answer is the group as it was.",
        parameters=[*GUARDED, BREAK_GLASS],
        responses=described(200, ClientGroupWrittenOut, 401, 403, 404, 409, 422, 503, dry_run=True),
    ),
)
class ClientGroupView(AccessRowView):
    """One client group, by its key or its id."""

    shape = ClientGroupIn

    def read(self, environment_key: str, group_key: str) -> GroupState:
        """The client group with this key or id. Raises NotFound."""
        return group_get(environment_key=environment_key, key=group_key)

    def update(self, values: dict[str, Any], consent: Consent, writing: Writing, group_key: str) -> AccessWritten:
        """Replace the client group by one with these values."""
        return group_update(key=group_key, draft=group_draft(values), consent=consent, **writing)

    def remove(self, consent: Consent, writing: Writing, group_key: str) -> AccessWritten:
        """Delete the client group. Only one that no rule is for can be deleted, so no client loses anything."""
        return group_delete(key=group_key, consent=consent, **writing)


@extend_schema_view(
    get=extend_schema(
        operation_id="rule_list",
        summary="List the access rules of an environment in the order in which they are asked",
        description="One page of the environment's access rules, in their order.",
        parameters=PAGE,
        responses=described(200, page_of(RuleOut), 401, 403, 404, 422, 503),
    ),
    post=extend_schema(
        operation_id="rule_create",
        summary="Make an access rule",
        description="Refused with 409 when its position is taken, or when it breaks a blocking case.",
        request=body_of_shape(RuleIn),
        parameters=[*GUARDED, BREAK_GLASS],
        responses=described(201, RuleWrittenOut, *_REFUSALS, dry_run=True),
    ),
)
class RuleListView(AccessRowsView):
    """The access rules of an environment, in the order in which they are tried."""

    shape = RuleIn
    word = "rules"

    def rows(self, environment_key: str) -> "QuerySet[AccessRule]":
        """The environment's access rules, in the order in which they are tried."""
        return rule_list(environment_key=environment_key)

    def state(self, row: AccessRule) -> RuleState:
        """The access rule that is stored in this row."""
        return rule_state(row)

    def create(self, values: dict[str, Any], consent: Consent, writing: Writing) -> tuple[AccessWritten, str]:
        """Create an access rule; returns what was written, and its number."""
        made = rule_create(draft=rule_draft(values), consent=consent, **writing)
        return made, str(made.id)


@extend_schema_view(
    get=extend_schema(
        operation_id="rule_get",
        summary="Read an access rule",
        description="The access rule as it is stored now.",
        responses=described(200, RuleOut, 401, 403, 404, 422, 503),
    ),
    put=extend_schema(
        operation_id="rule_replace",
        summary="Replace an access rule",
        description="Replace the whole access rule by the one in the body; without a position it stays where it is.",
        request=body_of_shape(RuleIn),
        parameters=[*GUARDED, BREAK_GLASS],
        responses=described(200, RuleWrittenOut, *_REFUSALS, dry_run=True),
    ),
    patch=extend_schema(
        operation_id="rule_update",
        summary="Change parts of an access rule",
        description="Change the fields of the access rule that the body has; the others stay.",
        request=body_of_shape(RuleIn),
        parameters=[*GUARDED, BREAK_GLASS],
        responses=described(200, RuleWrittenOut, *_REFUSALS, dry_run=True),
    ),
    delete=extend_schema(
        operation_id="rule_delete",
        summary="Delete an access rule",
        description="Delete the access rule; the answer is the rule as it was.",
        parameters=[*GUARDED, BREAK_GLASS],
        responses=described(200, RuleWrittenOut, 401, 403, 404, 409, 422, 503, dry_run=True),
    ),
)
class RuleView(AccessRowView):
    """One access rule."""

    shape = RuleIn

    def read(self, environment_key: str, rule_id: int) -> RuleState:
        """The access rule with this id. Raises NotFound."""
        return rule_get(environment_key=environment_key, rule_id=rule_id)

    def update(self, values: dict[str, Any], consent: Consent, writing: Writing, rule_id: int) -> AccessWritten:
        """Replace the access rule by one with these values."""
        return rule_update(rule_id=rule_id, draft=rule_draft(values), consent=consent, **writing)

    def remove(self, consent: Consent, writing: Writing, rule_id: int) -> AccessWritten:
        """Delete the access rule."""
        return rule_delete(rule_id=rule_id, consent=consent, **writing)


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
