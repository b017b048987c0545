"""How changes of an environment reach its clients: the settings of rollouts, and what they would mean to the fleet that
is connected now.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.access.selectors import group_list
from controlplane.accounts.principal import Role
from controlplane.catalog.json_reading import duration_text
from controlplane.catalog.rights import POLICY_ROLES, require
from controlplane.catalog.rollout_settings import (
    MAX_STEPS,
    Measure,
    OnFailure,
    RolloutMode,
    RolloutSettings,
    RolloutStep,
    Unexposed,
    settings_from_json,
)
from controlplane.catalog.services import environment_update
from controlplane.common.errors import ControlPlaneError
from controlplane.console.pages import PART, Page
from controlplane.rollouts.selectors import preview, rollouts_open
from controlplane.rollouts.services import webhook_secret_make
from xdscore.resource_types import RESOURCE_TYPES

# There are always some rows for more steps.
_ROWS: Final = 4
_MEASURES: Final = (
    (Measure.KINDS.value, "of each kind"),
    (Measure.CLIENTS.value, "clients"),
    (Measure.PERCENT.value, "% of all"),
)
_MORE_ROWS: Final = 2
_MAX_TEXT: Final = 20_000


@dataclass(frozen=True, slots=True)
class StepRow:
    """A row of the form for one step; `amount` is empty in a row for a step that is not there yet. `was`: the number of
    the step, from 0, whose own gates it keeps; empty for a new one.
    """

    index: int
    measure: str = Measure.KINDS.value
    amount: str = ""
    groups: str = ""
    bake: str = ""
    approve: bool = False
    was: str = ""

    @property
    def number(self) -> int:
        """The number of the step, from 1."""
        return self.index + 1


class RolloutSettingsPage(Page):
    """The page of how changes of an environment reach its clients: a form, and beside it who would be asked."""

    template = "rollouts/settings.html"
    needs = {"GET": Role.VIEWER, "POST": Role.VIEWER}

    def get(self, request: HttpRequest, environment_key: str, error: ControlPlaneError | None = None) -> HttpResponse:  # noqa: ARG002
        """The settings as they are, with their preview; with `error`, the form as it was sent and what is wrong with
        it.
        """
        return self._page(self.here.policy.rollout, error=error)

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Save the settings, or say what they would mean: for a script beside the open form, or as the page again. Or
        make a secret for webhooks, which is shown once.
        """
        require(self.principal, POLICY_ROLES["rollout"], environment_key)
        if request.POST.get("action") == "secret":
            secret = webhook_secret_make(
                environment_key=environment_key, actor=self.principal, request_id=self.request_id
            )
            return self._page(self.here.policy.rollout, secret=secret)
        try:
            settings = _settings(request.POST, self.here.policy.rollout, groups=_groups(environment_key))
            if PART in request.headers:
                return self.part("rollouts/preview.html", _foreseen(environment_key, settings))
            if request.POST.get("action") == "preview":
                return self._page(settings)
            before = self.here.policy
            made = environment_update(
                key=environment_key,
                policy=replace(before, rollout=settings),
                before=before,
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
            )
        except ControlPlaneError as error:
            if PART in request.headers:
                return self.part("rollouts/preview.html", {"error": error})
            return self._page(self.here.policy.rollout, error=error)
        text = "Saved. It applies to the next change." if made.changed else "Nothing had to change."
        messages.success(request, text)
        return redirect("rollout-settings", environment_key)

    def _page(
        self, settings: RolloutSettings, *, error: ControlPlaneError | None = None, secret: str = ""
    ) -> HttpResponse:
        key = self.here.key
        given = self.request.POST if error is not None else None
        context: dict[str, object] = {
            "settings": settings,
            "mode": given.get("mode", "off") if given is not None else settings.mode.value,
            "rows": _rows(given, settings.steps),
            "measures": _MEASURES,
            "groups": sorted(_groups(key)),
            "types": [(each, each.word in settings.immediate) for each in RESOURCE_TYPES],
            "answer_within": duration_text(settings.answer_within_s),
            "on_failures": [each.value for each in OnFailure],
            "unexposed": [each.value for each in Unexposed],
            "webhooks": "\n".join(settings.gates.webhooks or ()),
            "may_set": self.may(POLICY_ROLES["rollout"]),
            "role": POLICY_ROLES["rollout"].value,
            "open": rollouts_open(environment_keys=[key]).get(key),
            "error": error,
            "secret": secret,
        }
        if error is None:
            context |= _foreseen(key, settings)
        answer = self.page(context, status=error.status if error is not None else 201 if secret else 200)
        if secret:
            answer.headers["Cache-Control"] = "no-store"
        return answer


def _foreseen(environment_key: str, settings: RolloutSettings) -> dict[str, object]:
    """The template values of the preview of these settings."""
    found = preview(environment_key=environment_key, settings=settings)
    return {"preview": found, "kinds": list(found.kinds.items()), "mode": settings.mode.value}


def _groups(environment_key: str) -> frozenset[str]:
    return frozenset(group_list(environment_key=environment_key).values_list("key", flat=True))


def _rows(given: QueryDict | None, steps: Sequence[RolloutStep]) -> list[StepRow]:
    """The rows of the form: those that were sent, or the steps there are; and some for more."""
    found = [_row(index, each) for index, each in enumerate(steps)] if given is None else _sent_rows(given)
    count = min(MAX_STEPS, max(_ROWS, len(found) + _MORE_ROWS))
    return [*found, *(StepRow(index) for index in range(len(found), count))]


def _row(index: int, step: RolloutStep) -> StepRow:
    amount = step.as_json()[step.measure.value]
    return StepRow(
        index,
        step.measure.value,
        str(amount),
        ", ".join(step.groups),
        duration_text(step.bake_s) if step.bake_s else "",
        step.approve,
        str(index),
    )


def _sent_rows(given: QueryDict) -> list[StepRow]:
    """The rows that were sent and say anything, in their order and without gaps."""
    found: list[StepRow] = []
    for sent in range(MAX_STEPS):
        amount, groups, bake = (
            given.get(f"{field}-{sent}", "").strip()[:200] for field in ("amount", "groups", "bake")
        )
        if amount or groups or bake:
            measure, was = given.get(f"measure-{sent}", "")[:20], given.get(f"was-{sent}", "")[:2]
            approve = given.get(f"approve-{sent}") == "on"
            found.append(StepRow(len(found), measure, amount, groups, bake, approve, was))
    return found


def _settings(given: QueryDict, before: RolloutSettings, *, groups: frozenset[str]) -> RolloutSettings:
    """The settings in the form. Raises InputInvalid with everything that is wrong."""
    gates: dict[str, object] = {"errors": given.get("errors") == "on"}
    if lost := given.get("lost_percent", "").strip():
        gates["lost_percent"] = _number(lost)
    if webhooks := [line.strip() for line in given.get("webhooks", "")[:_MAX_TEXT].splitlines() if line.strip()]:
        gates["webhooks"] = webhooks
    tree = {
        "mode": given.get("mode", RolloutMode.OFF.value),
        "steps": [_step_json(row, before) for row in _sent_rows(given)],
        "immediate": given.getlist("immediate"),
        "on_failure": given.get("on_failure") or None,
        "unexposed": given.get("unexposed") or None,
        "answer_within": given.get("answer_within", "").strip() or None,
        "silent_percent": _number(given.get("silent_percent", "").strip()),
        "prefer_group": given.get("prefer_group") or None,
        "rehearsal_group": given.get("rehearsal_group") or None,
        "four_eyes": given.get("four_eyes") == "on",
        "gates": gates,
    }
    return settings_from_json(tree, groups=groups)


def _step_json(row: StepRow, before: RolloutSettings) -> dict[str, object]:
    found: dict[str, object] = {
        row.measure: _number(row.amount),
        "groups": [each.strip() for each in row.groups.split(",") if each.strip()],
        "approve": row.approve,
    }
    if row.bake:
        found["bake"] = row.bake
    if row.was.isascii() and row.was.isdigit() and int(row.was) < len(before.steps):
        found["gates"] = before.steps[int(row.was)].gates.as_json()
    return found


def _number(text: str) -> int | float | str | None:
    """The number in a text; None where there is none, and the text itself where it is no number, for the reader of
    settings to refuse.
    """
    if not text:
        return None
    try:
        return int(text) if text.isascii() and text.isdigit() else float(text)
    except ValueError:
        return text


urlpatterns = [
    path("e/<str:environment_key>/rollouts/settings", RolloutSettingsPage.as_view(), name="rollout-settings"),
]
