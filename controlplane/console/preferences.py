"""What somebody prefers, kept in their browser."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.http import require_POST

from controlplane.common.zones import MAX_ZONE_CHARS, zone_named
from controlplane.console.pages import ROWS, ROWS_COOKIE, THEME_COOKIE, THEMES, ZONE_COOKIE

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


@require_POST
def zone(request: HttpRequest) -> HttpResponse:
    """Store the time zone in which times are shown in a cookie, empty for that of the browser, and redirect to the page
    of one's account. One that there is not is asked for again, as it was typed.
    """
    chosen = request.POST.get("zone", "").strip()
    if chosen and zone_named(chosen) is None:
        messages.error(request, "There is no such time zone; they are called as Europe/Berlin is. Nothing was changed.")
        return redirect(f"{reverse('account')}?{urlencode({'zone': chosen[:MAX_ZONE_CHARS]})}#times")
    messages.success(request, f"Times are shown in {chosen or 'the time zone of your browser'} now.")
    answer = redirect("account")
    answer.set_cookie(ZONE_COOKIE, chosen, max_age=_YEAR_S, samesite="Lax", secure=request.is_secure(), httponly=True)
    return answer


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
    path("zone", zone, name="zone"),
]
