"""The pages' paths. Names of resources stand in the question (`?type=&name=`): they may hold anything."""

from django.contrib.auth import views as auth
from django.urls import path

from controlplane.console import clients, environments, explaining, home, incidents, preferences, searching, views
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
    path("environments", environments.EnvironmentsPage.as_view(), name="environments"),
    path("e/<str:environment_key>", environments.EnvironmentPage.as_view(), name="environment"),
]
