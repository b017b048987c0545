"""Freezes: when an environment takes no changes. Who may write nevertheless is on the page of its review."""

import json
from dataclasses import dataclass, replace
from datetime import datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path
from django.utils import timezone

from controlplane.accounts.principal import Role
from controlplane.catalog.freezes import (
    MAX_REASON_CHARS,
    Freeze,
    Weekday,
    freezes_from_json,
)
from controlplane.catalog.rights import POLICY_ROLES, require
from controlplane.catalog.services import environment_update
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.common.errors import Conflict, ControlPlaneError, InputInvalid
from controlplane.console.commands import duration_of
from controlplane.console.pages import Page
from controlplane.console.times import field_text, iso_text, zone_given
from controlplane.http.moments import clock_problem, moment_typed


@dataclass(frozen=True, slots=True)
class FreezeLine:
    """A freeze in the list. `until`: when it ends, while it holds; `over`: it never holds again. `mark`: what the form
    that ends it says of it, so that it ends no other.
    """

    freeze: Freeze
    until: datetime | None
    over: bool
    mark: str

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the freeze stands."""
        return "frozen" if self.until is not None else "freeze_over" if self.over else "freeze_later"


class FreezesPage(Page):
    """The page with the freezes of an environment, and forms to add and end them."""

    template = "console/freezes.html"
    needs = {"GET": Role.VIEWER, "POST": Role.VIEWER}

    def get(self, request: HttpRequest, environment_key: str, error: ControlPlaneError | None = None) -> HttpResponse:  # noqa: ARG002
        """The freezes as they are; with `error`, the form as it was sent and what is wrong with it."""
        now, given = timezone.now(), request.POST if error is not None else QueryDict()
        lines = [
            FreezeLine(each, each.end_at(now), each.ends is not None and each.ends <= now, _mark(each))
            for each in self.here.policy.freezes
        ]
        context = {
            "lines": lines,
            "days": [each.value for each in Weekday],
            "chosen_days": request.POST.getlist("days"),
            "role": self.here.policy.review.break_glass_role.value,
            "max_reason": MAX_REASON_CHARS,
            "now": now,
            "once": given if given.get("action") == "once" else _begun(request.GET, now),
            "given": given,
            "error": error,
        }
        return self.page(context, status=error.status if error is not None else 200)

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Add a freeze, or end one."""
        action = request.POST.get("action", "")
        require(self.principal, POLICY_ROLES["freezes"], environment_key)
        before = self.here.policy
        try:
            policy, said = _changed(before, action, request.POST)
            environment_update(
                key=environment_key,
                policy=policy,
                before=before,
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
            )
        except ControlPlaneError as error:
            return self.get(request, environment_key, error)
        messages.success(request, said)
        return redirect("freezes", environment_key)


def _changed(before: EnvironmentPolicy, action: str, given: QueryDict) -> tuple[EnvironmentPolicy, str]:
    """The policy that a form makes of the one before, and what is said when it is stored. Raises InputInvalid and
    Conflict.
    """
    freezes = [each.as_json() for each in before.freezes]
    made: dict[str, object]
    match action:
        case "once":
            made = {"from": _time(given, "from"), "until": _time(given, "until"), "reason": given.get("reason", "")}
        case "weekly":
            hours = {name: given.get(name, "").strip() for name in ("from", "until")}
            weekly = {**hours, "days": given.getlist("days"), "zone": given.get("zone", "").strip() or "UTC"}
            made = {"reason": given.get("reason", ""), "weekly": weekly}
        case "end":
            left = [each for each in before.freezes if _mark(each) != given.get("freeze", "")]
            if len(left) == len(before.freezes):
                raise Conflict("This freeze is not there any more. Nothing was changed.")
            return replace(before, freezes=tuple(left)), "The freeze is gone."
        case _:
            raise InputInvalid(f"There is nothing called '{action[:20]}' to do here. Nothing was changed.")
    return replace(before, freezes=freezes_from_json([*freezes, made])), "The freeze is set."


def _time(given: QueryDict, name: str) -> str | None:
    """The time in this field of a form, as settings spell it; the text itself where it is none, and None where it is
    empty. Raises InputInvalid for a time that clocks never show, or twice.
    """
    text, zone = given.get(name, "").strip(), zone_given(given)
    moment = moment_typed(text, timezone.now(), zone) if text else None
    if unclear := clock_problem(text, zone):
        raise InputInvalid(f"{unclear} Nothing was changed.")
    return iso_text(moment) if moment is not None else text or None


def _begun(asked: QueryDict, now: datetime) -> dict[str, str]:
    """What the form of a freeze that holds once begins with: it holds from now on, for as long and for the reason that
    a link has (`for`, `reason`); empty where it has none.
    """
    long = duration_of(asked.get("for", ""))
    until = now + long if long is not None else None
    return {"from": field_text(now), "until": field_text(until), "reason": asked.get("reason", "")[:MAX_REASON_CHARS]}


def _mark(freeze: Freeze) -> str:
    return json.dumps(freeze.as_json(), sort_keys=True)


urlpatterns = [
    path("e/<str:environment_key>/freezes", FreezesPage.as_view(), name="freezes"),
]
