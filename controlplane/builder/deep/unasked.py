"""What no Envoy has judged of resources that somebody only tries (a check, a dry run), why, and how to have it judged.
An Envoy is asked when a change is built and never by a check, which would take as long as Envoy does; so each check
says what it leaves out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from controlplane.builder.deep.showing import SHOWN, why_not_shown
from controlplane.builder.selectors import last_unchecked
from controlplane.catalog.selectors import EnvironmentState, environment_get
from controlplane.catalog.values import ChangePlanned
from xdscore.schema import ParsedResource

MAX_NAMED: Final = 100
"""The resources that are named for each reason; the rest are counted."""

_GUIDE: Final = "docs/reference/deep-validation.md"
_OTHER_TYPES: Final = "an Envoy is asked about clusters, listeners and route configurations only"
_WHEN_BUILT: Final = "an Envoy is asked when the change is built"
_HELD_BACK: Final = "What it refuses is held back then, with its words (XDS2007)."


@dataclass(frozen=True, slots=True)
class NotJudged:
    """Resources that no Envoy has judged, for one reason.

    `why`: the reason, a clause. `hint`: how to have them judged; empty where that is not to be had. `resources`: their
    types and names.
    """

    why: str
    hint: str
    resources: tuple[tuple[str, str], ...]

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        """The first of the resources, which are listed."""
        return self.resources[:MAX_NAMED]

    @property
    def omitted(self) -> int:
        """How many more resources there are than those that are listed."""
        return len(self.resources) - len(self.named)

    def as_json(self) -> dict[str, object]:
        """The JSON object of it that the API answers."""
        known: dict[str, object] = {"by": "envoy", "why": self.why}
        if self.hint:
            known["hint"] = self.hint
        listed = [{"type": word, "name": name} for word, name in self.named]
        return known | {"count": len(self.resources), "resources": listed}


@dataclass(frozen=True, slots=True)
class Asking:
    """Whether and when an Envoy is asked about what it may be shown.

    `why`, `hint`: why it has not judged that yet, and how to have it. `chosen`: one is asked later, so that it is worth
    looking at what it may not be shown.
    """

    why: str
    hint: str
    chosen: bool = False


NOWHERE: Final = Asking(
    "this check asks none, as it is about no environment",
    f"An environment with `deep_validation` asks one when a change is built ({_GUIDE}).",
)
"""For a check without an environment."""


def asking_of(environment: EnvironmentState, *, told: bool = True) -> Asking:
    """Whether and when an Envoy is asked in this environment. `told`: whoever is answered may read the environment as a
    whole, and so what its last build said. At most one query.
    """
    if not environment.policy.deep_validation:
        return Asking(
            f"deep validation is off in '{environment.key}'",
            "An administrator turns it on, by `deep_validation` of the environment or on its page; the worker then "
            f"needs an Envoy ({_GUIDE}).",
        )
    said = last_unchecked(environment_id=environment.id) if told else ""
    hint = f"The last build had no verdict: {said} What it takes: {_GUIDE}." if said else _HELD_BACK
    return Asking(_WHEN_BUILT, hint, chosen=True)


def not_judged(resources: Iterable[ParsedResource], asking: Asking) -> tuple[NotJudged, ...]:
    """What no Envoy has judged of these resources, by reason, those first that an Envoy could judge."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {(asking.why, asking.hint): []}
    for each in resources:
        never = _why_never(each, asking)
        reason = (never, "") if never else (asking.why, asking.hint)
        found.setdefault(reason, []).append((each.type.word, each.name))
    return tuple(NotJudged(*reason, tuple(keys)) for reason, keys in found.items() if keys)


def not_judged_of(
    planned: ChangePlanned, resources: Iterable[ParsedResource], *, told: bool = True
) -> tuple[NotJudged, ...]:
    """What no Envoy has judged of what a write would change, by reason. `resources`: what it writes, some of which may
    be stored already. `told`: as `asking_of` has it. No query where nothing would change.
    """
    changed = {(each.type, each.name) for each in planned.edits}
    written = [each for each in resources if (each.type.word, each.name) in changed]
    if not written:
        return ()
    return not_judged(written, asking_of(environment_get(key=planned.environment), told=told))


def _why_never(resource: ParsedResource, asking: Asking) -> str:
    """Why no Envoy will ever judge the resource, a clause; empty where one could."""
    if resource.type.word not in SHOWN:
        return _OTHER_TYPES
    why = why_not_shown(resource.any_bytes) if asking.chosen else ""
    return f"an Envoy is not shown it: {why}" if why else ""
