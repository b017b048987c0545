"""What every page shares: who looks, what they may do, and that every refusal is a page that says why.

Denied by default: a page says in `needs` what each of its verbs needs, and a verb it does not name is refused.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views import View
from structlog.contextvars import get_contextvars

from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import user_principal
from controlplane.catalog.rights import environment_visible, require
from controlplane.catalog.selectors import EnvironmentState
from controlplane.console.navigation import surroundings
from controlplane.errors import ControlPlaneError

THEME_COOKIE: Final = "theme"
THEMES: Final = ("auto", "light", "dark")  # the first is that of the device


class Page(View):
    """The base of all pages that need somebody signed in.

    A role in `needs` is needed in the environment of the path, or everywhere when the path has none; None is open to
    everybody who is signed in, and the page shows each what they may see.
    """

    template: ClassVar[str]
    needs: ClassVar[Mapping[str, Role | None]] = {"GET": Role.VIEWER}
    http_method_names = ["get", "post", "head"]
    principal: Principal
    environment: EnvironmentState | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Let in whoever may; everybody else learns why not."""
        principal = user_principal(request.user)
        if principal is None:
            return redirect_to_login(request.get_full_path())
        self.principal = principal
        verb = "GET" if request.method == "HEAD" else str(request.method)
        if verb not in self.needs:
            return HttpResponseNotAllowed(sorted(self.needs))
        try:
            key = kwargs.get("environment_key")
            if key is not None:
                self.environment = environment_visible(principal, key)
            role = self.needs[verb]
            if role is not None:
                require(principal, role, key)
            return super().dispatch(request, *args, **kwargs)
        except ControlPlaneError as error:
            return self.refusal(error)

    @property
    def here(self) -> EnvironmentState:
        """The environment of the path; only for pages whose path has one."""
        if self.environment is None:
            raise RuntimeError(f"the path of {type(self).__name__} has no environment")
        return self.environment

    @property
    def request_id(self) -> str:
        """The id under which log and audit know this request."""
        return str(get_contextvars().get("request_id", ""))

    def may(self, role: Role) -> bool:
        """Whether whoever looks may act in this role here."""
        return self.principal.may(role, self.environment.key if self.environment is not None else None)

    def page(
        self, context: Mapping[str, object] | None = None, *, template: str = "", status: int = 200
    ) -> HttpResponse:
        """The page with this content."""
        around = surroundings(self.request, self.principal, self.environment)
        shared = {
            "principal": self.principal,
            "environment": self.environment,
            "around": around,
            "may_edit": self.may(Role.EDITOR),
            "may_operate": self.may(Role.OPERATOR),
            "may_edit_access": self.may(Role.ACCESS_EDITOR),
            "may_administer": self.may(Role.ADMIN),
        }
        answer = render(self.request, template or self.template, {**shared, **(context or {})}, status=status)
        # What a page shows depends on who looks and on what was written a moment ago.
        answer.headers.setdefault("Cache-Control", "private, no-cache")
        return answer

    def part(self, template: str, context: Mapping[str, object]) -> HttpResponse:
        """A part of a page, for a page that is open."""
        answer = render(self.request, template, dict(context))
        answer.headers["Cache-Control"] = "private, no-store"
        return answer

    def refusal(self, error: ControlPlaneError) -> HttpResponse:
        """The page that says why not."""
        return self.page({"error": error}, template="console/refused.html", status=error.status)


def theme_of(request: HttpRequest) -> str:
    """The colours whoever looks has chosen; their device's where they have not."""
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else THEMES[0]
