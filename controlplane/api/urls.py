"""The paths of the API, below `/api/v1/` (interfaces.md section 4). `paths` says how their parts are read."""

from django.urls import URLPattern, path

from controlplane.api.paths import converters_register
from controlplane.api.views.access import ClientGroupListView, ClientGroupView, RuleListView, RuleView
from controlplane.api.views.access_cases import (
    AccessHistoryView,
    AccessReviewView,
    AccessTestView,
    CaseListView,
    CaseView,
)
from controlplane.api.views.apply import ApplyView
from controlplane.api.views.audit import AuditView
from controlplane.api.views.bootstrap import BootstrapView
from controlplane.api.views.changes import ChangeUndoView, ChangeView
from controlplane.api.views.client_tokens import ClientTokenListView, ClientTokenView
from controlplane.api.views.clients import ClientListView, ClientView, SubscriptionListView
from controlplane.api.views.environments import EnvironmentListView, EnvironmentView
from controlplane.api.views.errors import ErrorView
from controlplane.api.views.explain import ExplainView
from controlplane.api.views.history import DifferenceView, RollbackView, SnapshotResourceListView
from controlplane.api.views.incidents import (
    IncidentListView,
    IncidentQuarantineView,
    IncidentReleaseView,
    IncidentView,
)
from controlplane.api.views.notifications import (
    ChannelListView,
    ChannelResumeView,
    ChannelTestView,
    ChannelView,
    DeliveryListView,
    NotificationListView,
)
from controlplane.api.views.resources import ResourceListView, ResourceView, RevisionListView, RevisionRestoreView
from controlplane.api.views.schema import SchemaPageView, SchemaView
from controlplane.api.views.snapshots import SnapshotListView, SnapshotView
from controlplane.api.views.tokens import TokenListView, TokenView
from controlplane.api.views.validate import ValidateView
from controlplane.api.views.words import ClientWordView
from controlplane.api.waiting import waits

converters_register()

_ENVIRONMENT = "environments/<part:environment_key>"
_RESOURCE = f"{_ENVIRONMENT}/resources/<type:type>/<rest:name>"

urlpatterns: list[URLPattern] = [
    path("environments", EnvironmentListView.as_view()),
    path(_ENVIRONMENT, EnvironmentView.as_view()),
    path(f"{_ENVIRONMENT}/resources", ResourceListView.as_view()),
    path(f"{_RESOURCE}/revisions/<int:revision>/restore", RevisionRestoreView.as_view()),
    path(f"{_RESOURCE}/revisions", RevisionListView.as_view()),  # before what it is also a name of
    path(_RESOURCE, ResourceView.as_view()),
    path(f"{_ENVIRONMENT}/apply", ApplyView.as_view()),
    path(f"{_ENVIRONMENT}/snapshots", SnapshotListView.as_view()),
    path(f"{_ENVIRONMENT}/snapshots/<int:epoch>", SnapshotView.as_view()),
    path(f"{_ENVIRONMENT}/snapshots/<int:epoch>/resources", SnapshotResourceListView.as_view()),
    path(f"{_ENVIRONMENT}/diff", DifferenceView.as_view()),
    path(f"{_ENVIRONMENT}/rollback", RollbackView.as_view()),
    path(f"{_ENVIRONMENT}/client-groups", ClientGroupListView.as_view()),
    path(f"{_ENVIRONMENT}/client-groups/<part:group_key>", ClientGroupView.as_view()),
    path(f"{_ENVIRONMENT}/rules", RuleListView.as_view()),
    path(f"{_ENVIRONMENT}/rules/<int:rule_id>", RuleView.as_view()),
    path(f"{_ENVIRONMENT}/access/test", AccessTestView.as_view()),
    path(f"{_ENVIRONMENT}/access/cases", CaseListView.as_view()),
    path(f"{_ENVIRONMENT}/access/cases/<int:case_id>", CaseView.as_view()),
    path(f"{_ENVIRONMENT}/access/review", AccessReviewView.as_view()),
    path(f"{_ENVIRONMENT}/access/history", AccessHistoryView.as_view()),
    path("changes/<uuid:change_id>", waits(ChangeView.as_view(), ChangeView)),
    path("changes/<uuid:change_id>/undo", ChangeUndoView.as_view()),
    path("validate", ValidateView.as_view()),
    path("clients", ClientListView.as_view()),
    path("clients/<slug:client_id>", ClientView.as_view()),
    path("clients/<slug:client_id>/subscriptions", SubscriptionListView.as_view()),
    path("clients/<slug:client_id>/said", ClientWordView.as_view()),
    path("explain", ExplainView.as_view()),
    path("incidents", IncidentListView.as_view()),
    path("incidents/<slug:incident_id>", IncidentView.as_view()),
    path("incidents/<slug:incident_id>/quarantine", IncidentQuarantineView.as_view()),
    path("incidents/<slug:incident_id>/release", IncidentReleaseView.as_view()),
    path("notifications", NotificationListView.as_view()),
    path("channels", ChannelListView.as_view()),
    path("channels/<uuid:channel_id>", ChannelView.as_view()),
    path("channels/<uuid:channel_id>/deliveries", DeliveryListView.as_view()),
    path("channels/<uuid:channel_id>/test", ChannelTestView.as_view()),
    path("channels/<uuid:channel_id>/resume", ChannelResumeView.as_view()),
    path("tokens", TokenListView.as_view()),
    path("tokens/<int:token_id>", TokenView.as_view()),
    path("client-tokens", ClientTokenListView.as_view()),
    path("client-tokens/<int:token_id>", ClientTokenView.as_view()),
    path("audit", AuditView.as_view()),
    path("bootstrap/<slug:family>", BootstrapView.as_view()),
    path("errors/<slug:code>", ErrorView.as_view()),
    path("schema/", SchemaView.as_view(), name="api-schema"),
    path("schema/ui/", SchemaPageView.as_view(), name="api-reference"),
]
