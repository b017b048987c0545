"""Environments: all of them, and what operators decide about one."""

import re
from dataclasses import dataclass, replace
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.access.services import default_effect_check
from controlplane.accounts.principal import Role
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.guarding import MAX_ACCESS_CLIENTS, MAX_OTHER_PERCENT
from controlplane.catalog.models import DEFAULT_EFFECTS, ENVIRONMENT_KEY_PATTERN
from controlplane.catalog.rights import POLICY_ROLES, require
from controlplane.catalog.selectors import EnvironmentState, environment_list
from controlplane.catalog.services import environment_create, environment_update, quarantine_default
from controlplane.catalog.values import ChangeMade, EnvironmentPolicy
from controlplane.changesets.selectors import review_counts
from controlplane.clients.selectors import connected_counts
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.console.environment_settings import SettingsWrong, settings_read, settings_shown
from controlplane.console.pages import PART, Page
from controlplane.console.places import Place, Section
from controlplane.console.states import look_of_environment
from controlplane.status.environments import EnvironmentStatus
from controlplane.status.selectors import environment_statuses
from controlplane.status.sentence import Sentence
from controlplane.status.sentences import environment_sentences
from xdscore.schema.content_policy import Stance

_MAX_HOLD_CHARS: Final = 500  # the column


@dataclass(frozen=True, slots=True)
class Row:
    """An environment in the list, with how it stands, in one sentence, too, and how many clients and unresolved
    incidents it has.
    """

    state: EnvironmentState
    status: EnvironmentStatus
    sentence: Sentence
    clients: int
    incidents: int

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the environment stands."""
        return look_of_environment(self.status.status)


class EnvironmentsPage(Page):
    """The page with the environments that the user may see, in the order in which clients are matched with them."""

    template = "console/environments.html"
    needs = {"GET": None, "POST": Role.ADMIN}

    def get(self, request: HttpRequest, error: ControlPlaneError | None = None) -> HttpResponse:  # noqa: ARG002
        """The list of environments and, for administrators, a form to create one; with `error`, what went wrong when
        that was sent.
        """
        clients = connected_counts()
        seen = [each for each in environment_list() if self.principal.may(Role.VIEWER, each.key)]
        statuses = environment_statuses(environments=seen)
        said = environment_sentences(environments=seen, statuses=statuses)
        rows = [
            Row(each, statuses[each.key], said[each.key], clients.get(each.key, 0), statuses[each.key].unattended)
            for each in seen
        ]
        return self.page({"rows": rows, "error": error}, status=error.status if error else 200)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Create an environment, which denies by default, and redirect to its page."""
        key = request.POST.get("key", "").strip()
        try:
            if not re.fullmatch(ENVIRONMENT_KEY_PATTERN, key):
                raise InputInvalid(
                    f"'{key[:63]}' cannot be a key: lower-case letters, digits and '-', at most 63. Nothing was made."
                )
            policy = EnvironmentPolicy(quarantine=quarantine_default())
            environment_create(
                key=key, policy=policy, actor=self.principal, request_id=self.request_id, consent=self.consent
            )
        except ControlPlaneError as error:
            return self.get(request, error)
        messages.success(request, f"Environment '{key}' is there. It denies every client until a rule allows.")
        return redirect("environment", key)


class EnvironmentPage(Page):
    """The page of one environment: how it stands, its hold, and its settings, each of which needs a role to change."""

    template = "console/environment.html"
    needs = {"GET": Role.VIEWER, "POST": Role.VIEWER}

    def get(self, request: HttpRequest, environment_key: str, error: ControlPlaneError | None = None) -> HttpResponse:
        """The environment's settings as they are now; with `error`, the form as it was sent and what is wrong with
        it.
        """
        policy, given = self.here.policy, request.POST if error is not None else QueryDict()
        statuses = environment_statuses(environments=[self.here])
        status = statuses[environment_key]
        context = {
            "state": self.here,
            "status": status,
            "sentence": environment_sentences(environments=[self.here], statuses=statuses)[environment_key],
            "look": look_of_environment(status.status),
            "waiting": review_counts(environment_keys=[environment_key])[environment_key],
            "counts": [(each.value, count) for each, count in status.counts.items()],
            "effects": DEFAULT_EFFECTS,
            "quarantines": [each.value for each in QuarantinePolicy],
            "stances": [each.value for each in Stance],
            "selectors": [each.as_json() for each in policy.selectors],
            "max_access_clients": MAX_ACCESS_CLIENTS,
            "max_other_percent": MAX_OTHER_PERCENT,
            "set": settings_shown(policy, given),
            "wrong": error.wrong if isinstance(error, SettingsWrong) else {},
            "given": given,
            "error": error,
        }
        return self.page(context, status=error.status if error else 200)

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Change the settings that the form has. Where the form only asks, while somebody fills it in, answer what
        clients would lose by it.
        """
        if PART in request.headers:
            return self.foreseen(lambda: self._changed(request.POST, dry_run=True).loss)
        try:
            made = self._changed(request.POST, dry_run=False)
        except ControlPlaneError as error:
            return self.get(request, environment_key, error)
        messages.success(
            request, "The settings hold now." if made.changed or made.change_id else "Nothing had to change."
        )
        return redirect("environment", environment_key)

    def _changed(self, given: QueryDict, *, dry_run: bool) -> ChangeMade:
        """Change the settings that the form has, as one change; returns it. `dry_run`: store nothing. Raises
        ControlPlaneError.
        """
        key, before, fields = self.here.key, self.here.policy, given.getlist("field")
        for field in fields:
            if field in POLICY_ROLES:
                require(self.principal, POLICY_ROLES[field], key)
        policy = _hold(before, given) if fields == ["hold"] else settings_read(before, given)
        if policy.default_effect is not before.default_effect:
            default_effect_check(environment_key=key, default=policy.default_effect)
        return environment_update(
            key=key,
            policy=policy,
            before=before,
            actor=self.principal,
            request_id=self.request_id,
            consent=self.consent,
            dry_run=dry_run,
        )


def _hold(before: EnvironmentPolicy, given: QueryDict) -> EnvironmentPolicy:
    if given.get("release"):
        return replace(before, hold="")
    reason = given.get("reason", "").strip()
    if not reason or len(reason) > _MAX_HOLD_CHARS:
        raise InputInvalid(f"A hold says why, in at most {_MAX_HOLD_CHARS} characters. Nothing was changed.")
    return replace(before, hold=reason)


urlpatterns = [
    path("environments", EnvironmentsPage.as_view(), name="environments"),
    path("e/<str:environment_key>", EnvironmentPage.as_view(), name="environment"),
]
PLACES = (
    Place(
        Section.ADMINISTRATION,
        10,
        "Environments",
        "server",
        "environments",
        of_environment=False,
        also=("environment",),
    ),
)
