"""What every page shares: who looks, what they may do, and that every refusal is a page that says why.

Denied by default: a page says in `needs` what each of its verbs needs, and a verb it does not name is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views import View
from structlog.contextvars import get_contextvars

from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import user_principal
from controlplane.catalog.guarding import Consent, Loss, LossRefused
from controlplane.catalog.rights import environment_visible, require
from controlplane.catalog.selectors import EnvironmentState
from controlplane.common.errors import ControlPlaneError
from controlplane.console.guarding import consent_of, loss_shown, question_of
from controlplane.console.navigation import surroundings

PART: Final = "X-Parley-Part"
"""A request header: only the part of the page that changes is wanted."""

THEME_COOKIE: Final = "theme"
THEMES: Final = ("auto", "light", "dark")  # the first is that of the device


class Page(View):
    """The base of all pages that need somebody signed in.

    A role in `needs` is needed in the environment of the path, or everywhere when the path has none; None is open to
    everybody who is signed in, and the page shows each what they may see.

    A write by which connected clients would lose something has to be accepted: where the content of a page has
    LossRefused for its `error`, a question is answered instead, which sends the same form again with the number that
    somebody typed. The services read it from `consent`. `why`: the field in which forms of this page give a reason.
    """

    template: ClassVar[str]
    needs: ClassVar[Mapping[str, Role | None]] = {"GET": Role.VIEWER}
    why: ClassVar[str] = ""
    http_method_names = ["get", "post", "head"]
    principal: Principal
    environment: EnvironmentState | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Call the view's method if the user may; everybody else is asked to sign in or told why not."""
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
        """The environment in the path; only for pages whose path has one."""
        if self.environment is None:
            raise RuntimeError(f"the path of {type(self).__name__} has no environment")
        return self.environment

    @property
    def request_id(self) -> str:
        """The id of this request in log and audit."""
        return str(get_contextvars().get("request_id", ""))

    @property
    def consent(self) -> Consent:
        """The consent to a loss that the form gives."""
        return consent_of(self.request.POST, self.why)

    @property
    def repeated(self) -> QueryDict:
        """The fields that the question about a loss sends again: those of the form as it was sent."""
        return self.request.POST

    @property
    def asks_again(self) -> str:
        """The template of the fields that cannot be sent back, so that the question about a loss has to ask for them
        again; empty for none.
        """
        return ""

    @property
    def leave(self) -> str:
        """The address to which the question about a loss leads a user who does not accept it."""
        return self.request.get_full_path()

    def may(self, role: Role) -> bool:
        """Whether the user may act in this role in the page's environment, or everywhere where it has none."""
        return self.principal.may(role, self.environment.key if self.environment is not None else None)

    def page(
        self, context: Mapping[str, object] | None = None, *, template: str = "", status: int = 200
    ) -> HttpResponse:
        """The page with these template values. Where their `error` is a LossRefused, the question about the loss
        instead.
        """
        error = (context or {}).get("error")
        if isinstance(error, LossRefused):
            question = question_of(error.loss, self.principal, self.repeated, why=self.why)
            context = {"question": question, "leave": self.leave, "asks_again": self.asks_again}
            template = "console/loss.html"
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
        """A part of a page, rendered for a page that is open."""
        answer = render(self.request, template, dict(context))
        answer.headers["Cache-Control"] = "private, no-store"
        return answer

    def foreseen(self, dry_run: Callable[[], Loss]) -> HttpResponse:
        """The answer beside an open form: what connected clients would lose by the write, which was only tried, or what
        is wrong with it.

        htmx puts in what is answered with 200 alone, and this is an answer whatever it says.
        """
        try:
            found: dict[str, object] = {"shown": loss_shown(dry_run(), self.principal)}
        except ControlPlaneError as error:
            found = {"error": error}
        return self.part("console/parts/foreseen.html", found)

    def refusal(self, error: ControlPlaneError) -> HttpResponse:
        """The page that tells why a request was refused."""
        return self.page({"error": error}, template="console/refused.html", status=error.status)


def theme_of(request: HttpRequest) -> str:
    """The theme that the user has chosen; where they have not, the one that follows their device."""
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else THEMES[0]
