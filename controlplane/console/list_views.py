"""The views of a list: filters and an order under a name, for oneself or for everybody of the environment."""

from typing import Final, TypedDict
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils import timezone

from controlplane.accounts.principal import Principal, Role
from controlplane.common.errors import ControlPlaneError, InputInvalid, NotFound
from controlplane.console.pages import Page
from controlplane.listing.frames import EVERYTHING, MAX_QUERY_CHARS, Frame
from controlplane.listing.models import MAX_NAME_CHARS
from controlplane.listing.registry import frame_of
from controlplane.listing.selectors import may_share, views_of
from controlplane.listing.services import MAX_OWN, view_change, view_default, view_delete, view_save
from xdscore.codes import shown

_SAID: Final = {
    "rename": "The view has its new name.",
    "share": "Everybody who reads {key} is offered the view.",
    "unshare": "The view is yours alone.",
    "default": "The list opens with this view for you.",
    "open-with-all": "The list opens with everything for you.",
    "delete": "The view is deleted.",
}


class _Act(TypedDict):
    """Where and by whom a view is changed, as services take it."""

    environment_key: str
    actor: Principal
    request_id: str


class ViewsPage(Page):
    """The page with the views that somebody has of one list, and a form to keep what they see as another."""

    template = "console/views.html"
    needs = {"GET": Role.VIEWER, "POST": Role.VIEWER}

    def get(
        self, request: HttpRequest, listed: str, environment_key: str = "", error: ControlPlaneError | None = None
    ) -> HttpResponse:
        """The views of the list; with `error`, the form as it was sent and what is wrong with it."""
        frame = frame_of(listed, of_environment=bool(environment_key))
        given = request.POST if error is not None else request.GET
        context = {
            "frame": frame,
            "base": _base(frame, environment_key),
            "everything": EVERYTHING,
            "views": views_of(principal=self.principal, listed=listed, environment_key=environment_key),
            "question": given.get("query", "")[: MAX_QUERY_CHARS + 1],
            "given": given,
            "may_share": may_share(self.principal, environment_key),
            "max_name": MAX_NAME_CHARS,
            "max_own": MAX_OWN,
            "error": error,
        }
        return self.page(context, status=error.status if error is not None else 200)

    def post(self, request: HttpRequest, listed: str, environment_key: str = "") -> HttpResponse:
        """Keep a view, or change one."""
        frame = frame_of(listed, of_environment=bool(environment_key))
        try:
            if request.POST.get("action") == "save":
                return self._saved(frame, environment_key)
            said = self._acted(frame, environment_key)
        except ControlPlaneError as error:
            return self.get(request, listed, environment_key, error)
        messages.success(request, said)
        return redirect(request.path)

    def _saved(self, frame: Frame, environment_key: str) -> HttpResponse:
        given, query = self.request.POST, self.request.POST.get("query", "")
        made = view_save(
            frame=frame,
            environment_key=environment_key,
            query=query,
            name=given.get("name", ""),
            shared=given.get("shared") == "1",
            actor=self.principal,
            request_id=self.request_id,
        )
        if given.get("default") == "1":
            view_default(public_id=made, frame=frame, environment_key=environment_key, actor=self.principal)
        messages.success(self.request, "The view is kept.")
        return redirect(f"{_base(frame, environment_key)}?{frame.kept(query, timezone.now()) or EVERYTHING}")

    def _acted(self, frame: Frame, environment_key: str) -> str:
        """Do with a view what the form says; returns what is said of it. Raises what the services raise."""
        given = self.request.POST
        action = given.get("action", "")
        if action not in _SAID:
            raise InputInvalid(f"There is nothing called '{shown(action, 20)}' to do here. Nothing was changed.")
        if action == "open-with-all":
            view_default(public_id=None, frame=frame, environment_key=environment_key, actor=self.principal)
            return _SAID[action]
        view = _id(given.get("view", ""))
        if action == "default":
            view_default(public_id=view, frame=frame, environment_key=environment_key, actor=self.principal)
            return _SAID[action]
        act = _Act(environment_key=environment_key, actor=self.principal, request_id=self.request_id)
        if action == "rename":
            view_change(public_id=view, name=given.get("name", ""), **act)
        elif action == "delete":
            view_delete(public_id=view, **act)
        else:
            view_change(public_id=view, shared=action == "share", **act)
        return _SAID[action].format(key=environment_key)


class ViewsAnywherePage(ViewsPage):
    """The page with the views that somebody has of a list that is of no environment: their own ones alone."""

    needs = {"GET": None, "POST": None}


def _base(frame: Frame, environment_key: str) -> str:
    return reverse(frame.route, args=[environment_key] if frame.of_environment else [])


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"This list has no view '{shown(text)}'.") from None


urlpatterns = [
    path("e/<str:environment_key>/views/<str:listed>", ViewsPage.as_view(), name="views"),
    path("views/<str:listed>", ViewsAnywherePage.as_view(), name="views-anywhere"),
]
