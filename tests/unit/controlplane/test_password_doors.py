"""Passwords are checked in one place, which counts attempts; whoever adds another way to check one finds out here."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.urls import URLPattern, URLResolver, get_resolver

from controlplane.console.sign_in import SignInView

ROOT = Path(__file__).parents[3]
THE_DOOR = "controlplane/accounts/logins.py"
CHECKS = {"authenticate", "aauthenticate", "check_password", "acheck_password", "verify_password"}
# Django's and DRF's own ways to check a password. The sign-in's form leaves nothing of the check to its parent.
BRINGS_A_CHECK = {
    "AdminAuthenticationForm", "AdminPasswordChangeForm", "AuthenticationForm", "BasicAuthentication", "LoginView",
    "ModelBackend", "PasswordChangeForm", "PasswordChangeView", "obtain_auth_token",
}  # fmt: skip
KNOWN = {
    (THE_DOOR, "authenticate"),
    (THE_DOOR, "check_password"),
    # Tokens and sessions, by the base class: no password.
    ("controlplane/api/authentication.py", "authenticate"),
    ("controlplane/console/sign_in.py", "AuthenticationForm"),
    ("controlplane/console/sign_in.py", "LoginView"),
}


def checks_in(source: str) -> Iterator[str]:
    """The names by which a module checks passwords, or brings in something that does."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in CHECKS:
                yield name
            case ast.ImportFrom(names=names):
                yield from (each.name for each in names if each.name in BRINGS_A_CHECK)
            case ast.Attribute(attr=name) if name in BRINGS_A_CHECK:
                yield name


def test_checks__of_passwords__are_behind_the_door_that_counts() -> None:
    modules = [path for room in ("controlplane", "adsserver") for path in (ROOT / room).rglob("*.py")]

    found = {(str(path.relative_to(ROOT)), name) for path in modules for name in checks_in(path.read_text("utf-8"))}

    assert found == KNOWN


@pytest.mark.parametrize(
    "source",
    [
        "from django.contrib.auth import authenticate as a, hashers\nhashers.check_password('x', 'y')",
        "from django.contrib import auth\nauth.authenticate(username='x')",
        "async def f(user): return await user.acheck_password('x')",
        "from django.contrib.auth.forms import PasswordChangeForm",
        "from django.contrib.auth import views as auth\nauth.PasswordChangeView.as_view()",
    ],
)
def test_checks__one_that_somebody_adds__is_seen(source: str) -> None:
    assert list(checks_in(source))


def test_views__of_the_whole_site__check_no_password_but_in_the_sign_in() -> None:
    classes = {getattr(view, "view_class", None) for view in _views(get_resolver().url_patterns)}

    checking = {each for each in classes if each is not None and issubclass(each, LoginView | PasswordChangeView)}
    assert checking == {SignInView}
    assert "clean" in vars(SignInView.authentication_form)
    assert settings.AUTHENTICATION_BACKENDS == ["django.contrib.auth.backends.ModelBackend"]
    assert settings.REST_FRAMEWORK["DEFAULT_AUTHENTICATION_CLASSES"] == [
        "rest_framework.authentication.SessionAuthentication"
    ]


def _views(patterns: list[URLPattern | URLResolver]) -> Iterator[Any]:
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from _views(each.url_patterns)
        else:
            yield each.callback
