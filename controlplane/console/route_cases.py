"""Route cases: the list with how each stands, and the page of one, with its form and its history."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.catalog.filtering import ordered
from controlplane.catalog.selectors import resource_names
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.console.posted import number_of
from controlplane.console.route_case_forms import (
    Typed,
    draft_of,
    expecting,
    typed_of,
    typed_of_draft,
    typed_of_link,
)
from controlplane.console.row_lists import RowsPage
from controlplane.journal.models import AuditEvent
from controlplane.journal.selectors import audit_list
from controlplane.listing.frames import SINCE, UNTIL, Asked, Filter, Frame, Kind, Option, Order, options
from controlplane.listing.tables import Column
from controlplane.routecases.models import RouteCase
from controlplane.routecases.selectors import case_get, case_list, case_state, cases_run, drafts_run
from controlplane.routecases.services import case_create, case_delete, case_update
from controlplane.routecases.values import ANSWERS, NAME_CHARS, NOTE_CHARS, RouteCaseState
from xdscore.resource_types import LISTENER

_ORDERS: Final = {"name": ("name",), "state": ("holds", "name"), "changed": ("updated_at", "pk")}
_MAX_LISTENERS: Final = 100  # that are suggested
_MAX_HISTORY: Final = 20  # the audit log has all


class RouteCasesPage(RowsPage):
    """The page with the route cases of an environment."""

    template = "routecases/list.html"
    needs = {"GET": Role.VIEWER, "POST": Role.VIEWER}
    frame = Frame(
        "route-cases",
        "route cases",
        "route-cases",
        (
            Filter("text", "Name, note or listener", max_chars=NAME_CHARS, width="wide"),
            Filter("state", "State", Kind.CHOICE, options(("holds", "fails"))),
            Filter("blocking", "On a change", Kind.CHOICE, (Option("yes", "blocks it"), Option("no", "warns only"))),
            Filter("author", "Changed by", max_chars=150),
            SINCE,
            UNTIL,
        ),
        (Order("name", "Case"), Order("state", "State"), Order("changed", "Changed", falls=True)),
    )
    columns: ClassVar[Sequence[Column[RouteCaseState]]] = (
        Column("name", lambda each: each.draft.name),
        Column("state", lambda each: "holds" if each.holds else "fails"),
        Column("since_change", lambda each: each.since),
        Column("blocking", lambda each: each.draft.blocking),
        Column("request", lambda each: each.draft.asks),
        Column("end", lambda each: each.end.said),
        Column("expected", lambda each: each.draft.expect.said),
        Column("changed_at", lambda each: each.updated_at),
        Column("changed_by", lambda each: each.author),
    )

    def rows(self, asked: Asked) -> QuerySet[RouteCase]:
        """The cases that fit the filters."""
        state, blocking, text = asked.text("state"), asked.text("blocking"), asked.text("text")
        rows = case_list(environment_key=self.here.key, holds=state == "holds" if state else None)
        if blocking:
            rows = rows.filter(blocking=blocking == "yes")
        if text:
            rows = rows.filter(Q(name__icontains=text) | Q(note__icontains=text) | Q(listener__icontains=text))
        if author := asked.text("author"):
            rows = rows.filter(author=author)
        if asked.since is not None:
            rows = rows.filter(updated_at__gte=asked.since)
        if asked.until is not None:
            rows = rows.filter(updated_at__lte=asked.until)
        return rows.order_by(*ordered(_ORDERS[asked.sort or "name"], falls=asked.falls))

    def line(self, row: RouteCase) -> RouteCaseState:
        """A case as the list shows it."""
        return case_state(row)

    def beside(self, asked: Asked) -> Mapping[str, object]:  # noqa: ARG002 - of every list
        """How many cases fail, and who may write some."""
        every = case_list(environment_key=self.here.key)
        return {
            "fails": every.filter(holds=False).count(),
            "any": every.exists(),
            "may_write": self.may(Role.EDITOR),
        }

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Judge all cases by what is written now, and say what came of it."""
        runs = cases_run(environment_key=environment_key)
        failing = [run.draft.name for run in runs if not run.holds]
        if failing:
            named = ", ".join(f"'{name}'" for name in failing[:5])
            more = f" and {len(failing) - 5} more" if len(failing) > 5 else ""
            messages.warning(request, f"{len(failing)} of {len(runs)} fail: {named}{more}.")
        else:
            messages.success(request, f"All {len(runs)} hold by what is written now.")
        return redirect("route-cases", environment_key)


class RouteCaseNewPage(Page):
    """The page with the form of a new case. A link may bring the request; what is expected is then its end now."""

    template = "routecases/case.html"
    needs = {"GET": Role.EDITOR, "POST": Role.EDITOR}

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """The form, empty or with what the link says."""
        typed = typed_of_link(request.GET)
        draft, wrong = draft_of(typed)
        if typed.url and "url" not in wrong and "headers" not in wrong and "method" not in wrong:
            [run] = drafts_run(environment_key=environment_key, drafts=[draft])
            typed = expecting(typed, run.end)
        return form_page(self, typed)

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Keep the case, then redirect to its page."""
        typed = typed_of(request.POST)
        draft, wrong = draft_of(typed)
        try:
            _refuse(wrong)
            made = case_create(
                environment_key=environment_key, draft=draft, actor=self.principal, request_id=self.request_id
            )
        except ControlPlaneError as error:
            return form_page(self, typed, wrong=wrong, error=error)
        messages.success(request, "The case is kept: every change is judged by it from now on.")
        return redirect("route-case", environment_key, made.id)


class RouteCasePage(Page):
    """The page of one case: how it stands, and the form to change it."""

    template = "routecases/case.html"
    needs = {"GET": Role.VIEWER, "POST": Role.EDITOR}

    def get(self, _request: HttpRequest, environment_key: str, route_case_id: int) -> HttpResponse:
        """The case as it is kept."""
        case = case_get(environment_key=environment_key, case_id=route_case_id)
        return form_page(self, typed_of_draft(case.draft), case=case)

    def post(self, request: HttpRequest, environment_key: str, route_case_id: int) -> HttpResponse:
        """Change or delete the case as the form says. What somebody else changed meanwhile is not written over."""
        case = case_get(environment_key=environment_key, case_id=route_case_id)
        typed = typed_of(request.POST)
        draft, wrong = draft_of(typed, kept=case.draft)
        try:
            seen = frozenset({number_of(request.POST, "revision")})
            if request.POST.get("action") == "delete":
                case_delete(
                    environment_key=environment_key,
                    case_id=case.id,
                    expect=seen,
                    actor=self.principal,
                    request_id=self.request_id,
                )
                messages.success(
                    request, f"The case '{case.draft.name}' is deleted: no change is judged by it any more."
                )
                return redirect("route-cases", environment_key)
            _refuse(wrong)
            case_update(
                environment_key=environment_key,
                case_id=case.id,
                draft=draft,
                expect=seen,
                actor=self.principal,
                request_id=self.request_id,
            )
        except ControlPlaneError as error:
            return form_page(self, typed, case=case, wrong=wrong, error=error)
        messages.success(request, "The case is kept as you changed it.")
        return redirect("route-case", environment_key, case.id)


def form_page(
    page: Page,
    typed: Typed,
    *,
    case: RouteCaseState | None = None,
    wrong: Mapping[str, str] | None = None,
    error: ControlPlaneError | None = None,
) -> HttpResponse:
    """The page with the form of a case. `case`: the one that is kept; None for a new one; `wrong`, `error`: what is
    wrong with the form as it was sent, by field and in one sentence.
    """
    context = {
        "typed": typed,
        "case": case,
        "answers": [each.value for each in ANSWERS],
        "listeners": resource_names(environment_key=page.here.key, kind=LISTENER, limit=_MAX_LISTENERS),
        "wrong": wrong or {},
        "may_write": page.may(Role.EDITOR),
        "history": _history(page.here.key, case) if case is not None else (),
        "max_name": NAME_CHARS,
        "max_note": NOTE_CHARS,
        "error": error,
    }
    return page.page(context, template=RouteCasePage.template, status=error.status if error is not None else 200)


def _history(environment_key: str, case: RouteCaseState) -> list[AuditEvent]:
    """What was done with the case, newest first."""
    return list(
        audit_list(
            environments=[environment_key],
            subjects=[f"route_case/{case.id}"],
            since=case.created_at,
            limit=_MAX_HISTORY,
        )
    )


def _refuse(wrong: Mapping[str, str]) -> None:
    if wrong:
        raise InputInvalid("The case cannot be kept so; what is wrong stands at each field. Nothing was changed.")


urlpatterns = [
    path("e/<str:environment_key>/route-cases", RouteCasesPage.as_view(), name="route-cases"),
    path("e/<str:environment_key>/route-cases/new", RouteCaseNewPage.as_view(), name="route-case-new"),
    path("e/<str:environment_key>/route-cases/<int:route_case_id>", RouteCasePage.as_view(), name="route-case"),
]
PLACES = (
    Place(
        Section.CONFIGURATION,
        22,
        "Route cases",
        "circle-check",
        "route-cases",
        also=("route-case", "route-case-new"),
    ),
)
