"""The pages' paths."""

from django.contrib.auth import views as auth
from django.urls import path

from controlplane.console import views

urlpatterns = [
    path("", views.home, name="home"),
    path("x", views.explain, name="explain"),
    path("login", auth.LoginView.as_view(template_name="console/login.html"), name="login"),
    path("logout", auth.LogoutView.as_view(), name="logout"),
]
