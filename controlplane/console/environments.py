"""Environments: all of them, and what operators decide about one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeVar

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.access.checks import pattern_problem, selector_findings
from controlplane.access.services import default_effect_check
from controlplane.accounts.principal import Role
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.guarding import MAX_ACCESS_CLIENTS, MAX_OTHER_PERCENT, LossThreshold
from controlplane.catalog.models import DEFAULT_EFFECTS, ENVIRONMENT_KEY_PATTERN
from controlplane.catalog.rights import POLICY_ROLES, require
from controlplane.catalog.selectors import EnvironmentState, environment_list
from controlplane.catalog.services import environment_create, environment_update, quarantine_default
from controlplane.catalog.values import ChangeMade, EnvironmentPolicy
from controlplane.changesets.selectors import review_counts
from controlplane.clients.selectors import connected_counts
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.console.access_words import matcher_line, matchers_of
from controlplane.console.pages import PART, Page
from controlplane.console.places import Place, Section
from controlplane.console.posted import whole_of
from controlplane.console.states import look_of_environment
from controlplane.incidents.selectors import incident_open_counts
from controlplane.status.environments import EnvironmentStatus
from controlplane.status.selectors import environment_statuses
from xdscore.access import Effect
from xdscore.codes import shown
from xdscore.schema.content_policy import KINDS, Stance, policy_of, stances_of

Choice = TypeVar("Choice", bound=Enum)

_MAX_HOLD_CHARS: Final = 500  # the column
_MAX_NODE_IDS: Final = 100  # as over REST
CONTENT_TITLES: Final = {
    "lua": "Lua code in filters",
    "modules": "Wasm and dynamic modules",
    "files": "Files on the data plane's disk",
    "pipes": "Unix sockets on the data plane",
    "loopback": "Addresses of the data plane itself",
    "link_local": "Link-local addresses and metadata services of clouds",
    "variables": "Environment variables of the data plane",
    "unknown_fields": "Fields that Parley does not know, left out; commands in formats and resolvers, kept",
    "opaque": "Bytes of messages that Parley does not know",
}


@dataclass(frozen=True, slots=True)
class Row:
    """An environment in the list, with how it stands, and how many clients and unresolved incidents it has."""

    state: EnvironmentState
    status: EnvironmentStatus
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
        clients, incidents = connected_counts(), incident_open_counts()
        seen = [each for each in environment_list() if self.principal.may(Role.VIEWER, each.key)]
        statuses = environment_statuses(environments=seen)
        rows = [Row(each, statuses[each.key], clients.get(each.key, 0), incidents.get(each.key, 0)) for each in seen]
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
    """The page of one environment: its settings, each of which needs a role to change."""

    template = "console/environment.html"
    needs = {"GET": Role.VIEWER, "POST": Role.VIEWER}

    def get(self, request: HttpRequest, environment_key: str, error: ControlPlaneError | None = None) -> HttpResponse:
        """The environment's settings as they are now; with `error`, what went wrong when a form was sent."""
        policy = self.here.policy
        stances = stances_of(policy.content)
        context = {
            "state": self.here,
            "status": (status := environment_statuses(environments=[self.here])[environment_key]),
            "look": look_of_environment(status.status),
            "waiting": review_counts(environment_keys=[environment_key])[environment_key],
            "counts": [(each.value, count) for each, count in status.counts.items()],
            "effects": DEFAULT_EFFECTS,
            "quarantines": [each.value for each in QuarantinePolicy],
            "content": [(kind, CONTENT_TITLES[kind], stances[kind]) for kind in KINDS],
            "stances": [each.value for each in Stance],
            "selectors": [each.as_json() for each in policy.selectors],
            "selector_text": "\n".join(map(matcher_line, policy.selectors)),
            "node_id_text": "\n".join(policy.node_ids),
            "max_access_clients": MAX_ACCESS_CLIENTS,
            "max_other_percent": MAX_OTHER_PERCENT,
            "given": request.POST if error is not None else QueryDict(),
            "error": error,
        }
        return self.page(context, status=error.status if error else 200)

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Change the setting that the form names. Where the form only asks, while somebody fills it in, answer what
        clients would lose by it.
        """
        if PART in request.headers:
            return self.foreseen(lambda: self._changed(request.POST, dry_run=True).loss)
        try:
            made = self._changed(request.POST, dry_run=False)
        except ControlPlaneError as error:
            return self.get(request, environment_key, error)
        messages.success(
            request, "The policy holds now." if made.changed or made.change_id else "Nothing had to change."
        )
        return redirect("environment", environment_key)

    def _changed(self, given: QueryDict, *, dry_run: bool) -> ChangeMade:
        """Change the setting that the form names; returns the change. `dry_run`: store nothing. Raises
        ControlPlaneError.
        """
        key, field, before = self.here.key, given.get("field", ""), self.here.policy
        change = _CHANGES.get(field)
        if change is None:
            raise InputInvalid(f"There is no policy '{field[:20]}'. Nothing was changed.")
        require(self.principal, POLICY_ROLES[field], key)
        policy = change(before, given)
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


def _one_of(kind: type[Choice], text: str) -> Choice:
    try:
        return kind(text)
    except ValueError:
        known = ", ".join(str(each.value) for each in kind)
        raise InputInvalid(f"'{text[:20]}' is not one of {known}. Nothing was changed.") from None


def _quarantine(before: EnvironmentPolicy, given: QueryDict) -> EnvironmentPolicy:
    return replace(before, quarantine=_one_of(QuarantinePolicy, given.get("quarantine", "")))


def _default_effect(before: EnvironmentPolicy, given: QueryDict) -> EnvironmentPolicy:
    value = given.get("default_effect", "")
    if value not in DEFAULT_EFFECTS:
        raise InputInvalid(f"An environment allows or denies by default, not '{value[:20]}'. Nothing was changed.")
    return replace(before, default_effect=Effect(value))


def _content(before: EnvironmentPolicy, given: QueryDict) -> EnvironmentPolicy:
    stances = {kind: _one_of(Stance, given.get(kind, "")).value for kind in KINDS}
    return replace(before, content=policy_of(stances))


def _selectors(before: EnvironmentPolicy, given: QueryDict) -> EnvironmentPolicy:
    """A copy of the policy `before` with the selectors of the form, one from each line; without any line the
    environment takes no clients by selectors. Raises InputInvalid.
    """
    text = given.get("selectors", "")
    selectors = matchers_of(text) if text.strip() else ()
    if findings := selector_findings(selectors, settings.PARLEY.limits):
        raise InputInvalid("A pattern is not taken. Nothing was changed.", findings=findings)
    return replace(before, selectors=selectors)


def _node_ids(before: EnvironmentPolicy, given: QueryDict) -> EnvironmentPolicy:
    patterns = tuple(line.strip() for line in given.get("node_ids", "").splitlines() if line.strip())
    if len(patterns) > _MAX_NODE_IDS:
        raise InputInvalid(f"At most {_MAX_NODE_IDS} lines are taken. Nothing was changed.")
    for pattern in patterns:
        if problem := pattern_problem(pattern, settings.PARLEY.limits):
            raise InputInvalid(f"The pattern '{shown(pattern, 60)}' {problem}. Nothing was changed.")
    return replace(before, node_ids=patterns)


def _deep_validation(before: EnvironmentPolicy, given: QueryDict) -> EnvironmentPolicy:
    return replace(before, deep_validation=given.get("deep_validation") == "on")


def _require_if_match(before: EnvironmentPolicy, given: QueryDict) -> EnvironmentPolicy:
    return replace(before, require_if_match=given.get("require_if_match") == "on")


def _loss_threshold(before: EnvironmentPolicy, given: QueryDict) -> EnvironmentPolicy:
    threshold = LossThreshold(
        whole_of(given, "access_clients", minimum=1, maximum=MAX_ACCESS_CLIENTS),
        whole_of(given, "other_percent", minimum=0, maximum=MAX_OTHER_PERCENT),
    )
    return replace(before, loss_threshold=threshold)


_CHANGES: Final[Mapping[str, Callable[[EnvironmentPolicy, QueryDict], EnvironmentPolicy]]] = {
    "hold": _hold,
    "quarantine": _quarantine,
    "default_effect": _default_effect,
    "content": _content,
    "selectors": _selectors,
    "node_ids": _node_ids,
    "deep_validation": _deep_validation,
    "require_if_match": _require_if_match,
    "loss_threshold": _loss_threshold,
}


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
