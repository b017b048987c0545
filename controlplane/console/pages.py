"""What every page shares: who looks, what they may do, and that every refusal is a page that says why.

Denied by default: a page says in `needs` what each of its verbs needs, and a verb it does not name is refused.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from functools import cached_property
from typing import Any, ClassVar, Final, TypedDict

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.views import View
from structlog.contextvars import get_contextvars

from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import user_principal
from controlplane.catalog.freezes import Frozen, WriteFrozen, frozen_at
from controlplane.catalog.guarding import CasesBroken, Consent, Loss, LossRefused
from controlplane.catalog.review import WriteUnreviewed
from controlplane.catalog.rights import OnSome, environment_among, require, require_some
from controlplane.catalog.selectors import EnvironmentState, environment_list
from controlplane.common.errors import ControlPlaneError
from controlplane.common.zones import zone_named
from controlplane.console.guarding import cases_question_of, consent_of, freeze_question_of, loss_shown, question_of
from controlplane.console.navigation import surroundings
from controlplane.console.proposing import proposal_question
from controlplane.discussion.linking import Ticket
from controlplane.discussion.tickets import tickets_of

PART: Final = "X-Parley-Part"
"""A request header: only the part of the page that changes is wanted."""

THEME_COOKIE: Final = "theme"
THEMES: Final = ("auto", "light", "dark")  # the first is that of the device
ZONE_COOKIE: Final = "zone"  # the time zone that somebody chose
BROWSER_ZONE_COOKIE: Final = "browser_zone"  # that of the browser; static/console/console.js writes it
ROWS_COOKIE: Final = "rows"
ROWS: Final = ("roomy", "dense")  # the first is without a choice


class Act(TypedDict):
    """What every service that writes asks for: who acts, why, and by which request."""

    actor: Principal
    reason: str
    request_id: str


class Page(View):
    """The base class of all pages that need somebody signed in.

    `needs`: the role that each HTTP method needs, in the environment of the path or, where the path has none, in all
    environments; with `OnSome`, on some resources of the path's environment at least, for whoever reads it as a whole.
    None: everybody who is signed in may use the method, and is shown what they may see.

    Where a write would take something from clients, the page that would tell the error LossRefused asks whether the
    loss is accepted, instead; where it is frozen or route cases would break, whether that is meant. The answer is the
    same form with what somebody typed (`consent`).
    `why`: the name of the form's field for a reason. `proposes`: what the form would write can be proposed as a change
    set instead.
    """

    template: ClassVar[str]
    needs: ClassVar[Mapping[str, Role | OnSome | None]] = {"GET": Role.VIEWER}
    why: ClassVar[str] = ""
    proposes: ClassVar[bool] = True
    http_method_names = ["get", "post", "head"]
    principal: Principal
    environment: EnvironmentState | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Call the method of the view if the user may; redirect others to sign in, or answer why they may not."""
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
                self.enter(key)
            need = self.needs[verb]
            if isinstance(need, OnSome):
                require_some(principal, need.role, str(key))
            elif need is not None:
                require(principal, need, key)
            with timezone.override(zone_of(request)):
                return super().dispatch(request, *args, **kwargs)
        except ControlPlaneError as error:
            return self.refusal(error)

    @cached_property
    def environments(self) -> tuple[EnvironmentState, ...]:
        """Every environment, also those that the user may not see: read once for the page and what is around it."""
        return environment_list()

    def enter(self, key: str) -> None:
        """Set the page's environment to the one with this key. Raises NotFound, with one text, where it does not exist
        and where the user may not see it.
        """
        self.environment = environment_among(self.principal, key, self.environments)

    @property
    def here(self) -> EnvironmentState:
        """The environment that the path names. Only for pages whose path names one."""
        if self.environment is None:
            raise RuntimeError(f"the path of {type(self).__name__} has no environment")
        return self.environment

    @property
    def request_id(self) -> str:
        """The id of this request in logs and the audit log."""
        return str(get_contextvars().get("request_id", ""))

    def act(self, reason: str) -> Act:
        """Whoever asks, with their reason, as services take it."""
        return {"actor": self.principal, "reason": reason, "request_id": self.request_id}

    @property
    def consent(self) -> Consent:
        """The consent to a loss that the form gives, where the user was asked and answered."""
        return consent_of(self.request.POST, self.why)

    @property
    def repeated(self) -> QueryDict:
        """The fields of the form as it was sent, to be repeated by the question about a loss."""
        return self.request.POST

    @property
    def asks_again(self) -> str:
        """The template of the fields that the question about a loss cannot repeat and has to ask for once more; empty
        where there are none.
        """
        return ""

    @property
    def leave(self) -> str:
        """The URL to which a user goes who does not accept a loss."""
        return self.request.get_full_path()

    @property
    def _frozen(self) -> Frozen | None:
        """The freeze that holds in the page's environment; None without either."""
        return frozen_at(self.environment.policy.freezes, timezone.now()) if self.environment is not None else None

    def _tickets(self) -> tuple[Ticket, ...]:
        """Which words lead to tickets in the page's environment; none where it has none."""
        return tickets_of(environment_key=self.environment.key) if self.environment is not None else ()

    def may(self, role: Role) -> bool:
        """Whether the user may act in this role in the page's environment or, where the page has none, in all
        environments.
        """
        return self.principal.may(role, self.environment.key if self.environment is not None else None)

    @property
    def may_edit(self) -> bool:
        """Whether the user may write resources of the page's environment, some at least."""
        return self.environment is not None and not self.principal.allowed(Role.EDITOR, self.environment.key).nothing

    def page(
        self, context: Mapping[str, object] | None = None, *, template: str = "", status: int = 200
    ) -> HttpResponse:
        """The page with these template values or, where their `error` is a LossRefused, the question whether the loss
        is accepted; where it is a WriteFrozen or a CasesBroken and the user may, whether the freeze, or the cases, are
        to be broken; where it is a WriteUnreviewed, into which change set it goes.
        """
        error = (context or {}).get("error")
        if isinstance(error, LossRefused):
            question = question_of(error.loss, self.principal, self.repeated, why=self.why)
            context = {"question": question, "leave": self.leave, "asks_again": self.asks_again}
            template = "console/loss.html"
        elif isinstance(error, WriteFrozen) and self.may(error.role):
            asked = freeze_question_of(error.frozen, self.repeated)
            context = {"question": asked, "leave": self.leave, "asks_again": self.asks_again}
            template = "console/frozen.html"
        elif isinstance(error, CasesBroken) and self.may(Role.EDITOR):
            broken = cases_question_of(error, self.repeated)
            context = {"question": broken, "leave": self.leave, "asks_again": self.asks_again}
            template = "console/cases_broken.html"
        elif isinstance(error, WriteUnreviewed):
            context, template = self._proposal(error), "console/propose.html"
        around = surroundings(self.request, self.principal, self.environments, self.environment)
        shared = {
            "principal": self.principal,
            "environment": self.environment,
            "frozen": self._frozen,
            "tickets": SimpleLazyObject(self._tickets),
            "around": around,
            "may_edit": self.may_edit,
            "may_operate": self.may(Role.OPERATOR),
            "may_edit_access": self.may(Role.ACCESS_EDITOR),
            "may_administer": self.may(Role.ADMIN),
        }
        answer = render(self.request, template or self.template, {**shared, **(context or {})}, status=status)
        # What a page shows depends on who looks and on what was written a moment ago.
        answer.headers.setdefault("Cache-Control", "private, no-cache")
        return answer

    def proposal_page(self, error: ControlPlaneError | None = None) -> HttpResponse:
        """The question into which change set goes what the form would write; with `error`, what was wrong with an
        earlier answer.
        """
        status = error.status if error is not None else 200
        return self.page(self._proposal(error), template="console/propose.html", status=status)

    def _proposal(self, error: ControlPlaneError | None) -> dict[str, object]:
        refused = isinstance(error, WriteUnreviewed)
        may_break = isinstance(error, WriteUnreviewed) and self.may(error.role)
        question = proposal_question(self.here.key, self.repeated, may_break=may_break)
        return {
            "question": question,
            "proposal": question.proposal,
            "refused": refused,
            "proposes": self.proposes,
            "problem": None if refused else error,
            "leave": self.leave,
            "asks_again": self.asks_again,
        }

    def part(self, template: str, context: Mapping[str, object]) -> HttpResponse:
        """A part of a page, for a script that puts it into an open page."""
        answer = render(self.request, template, dict(context))
        answer.headers["Cache-Control"] = "private, no-store"
        return answer

    def foreseen(self, dry_run: Callable[[], Loss]) -> HttpResponse:
        """For a script beside an open form: what connected clients would lose by the write that `dry_run` tries, or
        what is wrong with the form.

        The status is 200 in any case, because htmx shows no other answer.
        """
        try:
            found: dict[str, object] = {"shown": loss_shown(dry_run(), self.principal)}
        except ControlPlaneError as error:
            found = {"error": error}
        return self.part("console/parts/foreseen.html", found)

    def refusal(self, error: ControlPlaneError) -> HttpResponse:
        """The page that says why a request was refused."""
        return self.page({"error": error}, template="console/refused.html", status=error.status)


def theme_of(request: HttpRequest) -> str:
    """The theme that the user has chosen; without a choice, the one that follows the settings of their device."""
    return _chosen(request, THEME_COOKIE, THEMES)


def rows_of(request: HttpRequest) -> str:
    """How close the rows of lists stand, as the user has chosen; without a choice, with room between them."""
    return _chosen(request, ROWS_COOKIE, ROWS)


def zone_chosen(request: HttpRequest) -> str:
    """The name of the time zone that the user has chosen; empty for that of the browser."""
    chosen = request.COOKIES.get(ZONE_COOKIE, "")
    return chosen if zone_named(chosen) is not None else ""


def zone_of(request: HttpRequest) -> tzinfo:
    """The time zone in which times are shown: the one that the user has chosen; else that of the browser, as far as it
    said which that is; else UTC.
    """
    return zone_named(zone_chosen(request)) or zone_named(request.COOKIES.get(BROWSER_ZONE_COOKIE, "")) or UTC


def _chosen(request: HttpRequest, cookie: str, known: tuple[str, ...]) -> str:
    chosen = request.COOKIES.get(cookie, "")
    return chosen if chosen in known else known[0]
