"""The settings of an environment as one form: what it shows, and what is read of it, everything that is wrong at once.

A form may have some of the settings only. One that its reader did not touch stays as it is by then, so that nobody
takes back what somebody else saved meanwhile.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, Final, TypeVar

from django.conf import settings
from django.http import QueryDict

from controlplane.access.checks import pattern_problem, selector_findings
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.guarding import MAX_ACCESS_CLIENTS, MAX_OTHER_PERCENT, LossThreshold
from controlplane.catalog.models import DEFAULT_EFFECTS
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.common.errors import Conflict, ControlPlaneError, InputInvalid
from controlplane.console.access_words import matcher_line, matchers_of
from controlplane.console.posted import whole_of
from xdscore.access import Effect
from xdscore.codes import shown
from xdscore.schema.content_policy import KINDS, Stance, policy_of, stances_of

Choice = TypeVar("Choice", bound=Enum)

_MAX_NODE_IDS: Final = 100  # as over REST
_MARK_CHARS: Final = 16
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


class SettingsWrong(InputInvalid):
    """Settings of a form cannot be stored; nothing was. `wrong`: by setting, the sentence that says why."""

    def __init__(self, errors: Mapping[str, ControlPlaneError]) -> None:
        count = len(errors)
        head = f"{count} settings cannot be stored as they are. Nothing was changed. " if count > 1 else ""
        findings = tuple(each for error in errors.values() for each in error.findings)
        super().__init__(head + " ".join(error.detail for error in errors.values()), findings=findings)
        self.wrong = {field: error.detail.removesuffix(" Nothing was changed.") for field, error in errors.items()}


def settings_read(before: EnvironmentPolicy, given: QueryDict) -> EnvironmentPolicy:
    """The policy with the settings that the form names in `field`. Raises InputInvalid for one that there is not, and
    SettingsWrong with everything that cannot be stored.
    """
    policy, errors = before, dict[str, ControlPlaneError]()
    for field in given.getlist("field"):
        read = _READERS.get(field)
        if read is None:
            raise InputInvalid(f"There is no setting '{shown(field, 20)}'. Nothing was changed.")
        try:
            policy = _touched(policy, read(policy, given), field, given.get(f"seen-{field}", ""))
        except ControlPlaneError as error:
            errors[field] = error
    if errors:
        raise SettingsWrong(errors)
    return policy


def settings_shown(policy: EnvironmentPolicy, given: QueryDict) -> dict[str, Any]:
    """The value of each setting as its field shows it: as it was typed, where the form was sent and is shown again."""
    sent = frozenset(given.getlist("field"))
    stances = stances_of(policy.content)

    def typed(field: str, name: str, value: object) -> object:
        return given.get(name, "") if field in sent else value

    return {
        "quarantine": typed("quarantine", "quarantine", policy.quarantine.value),
        "default_effect": typed("default_effect", "default_effect", policy.default_effect.value),
        "content": [(kind, CONTENT_TITLES[kind], typed("content", kind, stances[kind])) for kind in KINDS],
        "selectors": typed("selectors", "selectors", "\n".join(map(matcher_line, policy.selectors))),
        "node_ids": typed("node_ids", "node_ids", "\n".join(policy.node_ids)),
        "deep_validation": typed("deep_validation", "deep_validation", "on" if policy.deep_validation else ""),
        "require_if_match": typed("require_if_match", "require_if_match", "on" if policy.require_if_match else ""),
        "access_clients": typed("loss_threshold", "access_clients", policy.loss_threshold.access_clients),
        "other_percent": typed("loss_threshold", "other_percent", policy.loss_threshold.other_percent),
        "seen": {field: given.get(f"seen-{field}") or _mark(policy, field) for field in _READERS},
    }


def _touched(before: EnvironmentPolicy, after: EnvironmentPolicy, field: str, seen: str) -> EnvironmentPolicy:
    """The policy after a setting was read of a form that showed it with the mark `seen`, empty for none. Raises
    Conflict where somebody else changed the setting meanwhile, too.
    """
    if not seen:
        return after
    if _mark(after, field) == seen:
        return before
    if _mark(before, field) not in (seen, _mark(after, field)):
        raise Conflict("Somebody else changed this meanwhile: load the page again to see it. Nothing was changed.")
    return after


def _mark(policy: EnvironmentPolicy, field: str) -> str:
    # Every process has to make the same mark of a setting, and a set has another order in each.
    value = sorted(stances_of(policy.content).items()) if field == "content" else getattr(policy, field)
    return hashlib.sha256(repr(value).encode()).hexdigest()[:_MARK_CHARS]


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


_READERS: Final[Mapping[str, Callable[[EnvironmentPolicy, QueryDict], EnvironmentPolicy]]] = {
    "quarantine": _quarantine,
    "default_effect": _default_effect,
    "content": _content,
    "selectors": _selectors,
    "node_ids": _node_ids,
    "deep_validation": _deep_validation,
    "require_if_match": _require_if_match,
    "loss_threshold": _loss_threshold,
}
