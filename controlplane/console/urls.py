"""The pages' paths. Names of resources stand in the question (`?type=&name=`): they may hold anything."""

from django.contrib.auth import views as auth
from django.urls import path

from controlplane.console import (
    access,
    audit,
    changes,
    clients,
    editor,
    environments,
    explaining,
    files,
    home,
    incidents,
    preferences,
    resource,
    resources,
    searching,
    setup,
    snapshots,
    views,
)
from controlplane.console.sign_in import SignInView

urlpatterns = [
    path("", home.HomePage.as_view(), name="home"),
    path("x", explaining.ExplainPage.as_view(), name="explain"),
    path("search", searching.SearchPage.as_view(), name="search"),
    path("codes/<str:code>", views.CodePage.as_view(), name="code"),
    path("login", SignInView.as_view(), name="login"),
    path("logout", auth.LogoutView.as_view(), name="logout"),
    path("theme", preferences.theme, name="theme"),
    path("e/<str:environment_key>/incidents", incidents.IncidentsPage.as_view(), name="incidents"),
    path("incidents/<str:incident_id>", incidents.IncidentPage.as_view(), name="incident"),
    path("e/<str:environment_key>/clients", clients.ClientsPage.as_view(), name="clients"),
    path("clients/<str:client_id>", clients.ClientPage.as_view(), name="client"),
    path("e/<str:environment_key>/access", access.AccessPage.as_view(), name="access"),
    path("e/<str:environment_key>/access/rule", access.RulePage.as_view(), name="access-rule"),
    path("e/<str:environment_key>/setup", setup.SetupPage.as_view(), name="setup"),
    path("audit", audit.AuditPage.as_view(), name="audit"),
    path("environments", environments.EnvironmentsPage.as_view(), name="environments"),
    path("e/<str:environment_key>", environments.EnvironmentPage.as_view(), name="environment"),
    path("e/<str:environment_key>/resources", resources.ResourcesPage.as_view(), name="resources"),
    path("e/<str:environment_key>/resources/new", editor.NewResourcePage.as_view(), name="resource-new"),
    path("e/<str:environment_key>/resource", resource.ResourcePage.as_view(), name="resource"),
    path("e/<str:environment_key>/resource/edit", editor.ResourceEditPage.as_view(), name="resource-edit"),
    path("e/<str:environment_key>/import", files.ImportPage.as_view(), name="import"),
    path("e/<str:environment_key>/export", files.ExportPage.as_view(), name="export"),
    path("e/<str:environment_key>/changes", changes.ChangesPage.as_view(), name="changes"),
    path("changes/<uuid:change_id>", changes.ChangePage.as_view(), name="change"),
    path("e/<str:environment_key>/snapshots", snapshots.SnapshotsPage.as_view(), name="snapshots"),
    path("e/<str:environment_key>/snapshots/<int:epoch>", snapshots.SnapshotPage.as_view(), name="snapshot"),
    path("e/<str:environment_key>/compare", snapshots.ComparePage.as_view(), name="compare"),
    path("e/<str:environment_key>/rollback", snapshots.RollbackPage.as_view(), name="rollback"),
    path("e/<str:environment_key>/builds", snapshots.BuildsPage.as_view(), name="builds"),
]
