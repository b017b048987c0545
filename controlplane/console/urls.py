"""The pages' paths."""

from django.contrib.auth import views as auth
from django.urls import path

from controlplane.console import views
from controlplane.console.sign_in import SignInView

urlpatterns = [
    path("", views.home, name="home"),
    path("x", views.explain, name="explain"),
    path("login", SignInView.as_view(), name="login"),
    path("logout", auth.LogoutView.as_view(), name="logout"),
]
