"""Django's admin behind the console's own door, for superusers alone: whoever may change users can become anybody."""

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode


class ParleyAdminSite(AdminSite):
    """Django's admin pages for users, groups and tokens, open to superusers only."""

    site_header = site_title = "Parley"
    index_title = "Users, groups and tokens"

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether the user may see the admin pages: only an active superuser may; Django's flag `is_staff` is not
        enough.
        """
        return request.user.is_active and getattr(request.user, "is_superuser", False)

    def login(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:  # noqa: ARG002 - Django's
        """Redirect to the console's sign-in page, which counts attempts; somebody who is signed in is redirected to the
        front page.
        """
        if request.user.is_authenticated:
            return redirect("home")
        return redirect(f"{reverse('login')}?{urlencode({'next': request.GET.get('next', reverse('admin:index'))})}")

    def password_change(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:  # type: ignore[override]  # noqa: ARG002
        """Redirect to the console's page of the user's own account, which counts attempts with a wrong old password."""
        return redirect("account")
