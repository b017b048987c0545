"""What somebody prefers, kept in their browser."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from controlplane.console.pages import ROWS, ROWS_COOKIE, THEME_COOKIE, THEMES

_YEAR_S = 365 * 24 * 3600


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Store the chosen theme in a cookie, and redirect to the page on which it was chosen. Needs nobody signed in,
    because the sign-in page has a theme, too.
    """
    return _kept(request, THEME_COOKIE, request.POST.get("theme", ""), THEMES)


@require_POST
def rows(request: HttpRequest) -> HttpResponse:
    """Store how close the rows of lists stand in a cookie, and redirect to the page on which it was chosen."""
    return _kept(request, ROWS_COOKIE, request.POST.get("rows", ""), ROWS)


def _kept(request: HttpRequest, cookie: str, chosen: str, known: tuple[str, ...]) -> HttpResponse:
    back = request.POST.get("next", "/")
    safe = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    answer = redirect(back if safe else "/")
    if chosen in known:
        answer.set_cookie(cookie, chosen, max_age=_YEAR_S, samesite="Lax", secure=request.is_secure(), httponly=True)
    return answer


urlpatterns = [
    path("theme", theme, name="theme"),
    path("rows", rows, name="rows"),
]
