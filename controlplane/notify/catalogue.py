"""Which events people are told of, how often, and in which words (ux.md section 6). Pure.

What, where, since when, how many of how many, the probable cause, one link and one next step. Texts from clients come
in already cut and harmless; they are quoted, never interpreted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from xdscore.resource_types import by_word


class Severity(StrEnum):
    """How loud a notification is. PAGE: more than a twentieth of those sent it refuse."""

    QUIET = "quiet"
    NORMAL = "normal"
    PAGE = "page"


PAGE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the catalogue. `cooldown`: how long repeats about the same subject are not told."""

    name: str
    cooldown: timedelta
    severity: Severity


_MINUTES_15 = timedelta(minutes=15)
_AT_ONCE = timedelta(0)

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("incident.opened", _MINUTES_15, Severity.NORMAL),
        Kind("incident.regressed", _MINUTES_15, Severity.NORMAL),
        Kind("incident.escalating", _MINUTES_15, Severity.PAGE),
        Kind("incident.resolved", _AT_ONCE, Severity.QUIET),
        Kind("quarantine.opened", _AT_ONCE, Severity.NORMAL),
        Kind("quarantine.released", _AT_ONCE, Severity.NORMAL),
        Kind("build.failed", timedelta(hours=1), Severity.NORMAL),
        Kind("certificate.expiring", _AT_ONCE, Severity.NORMAL),
        Kind("channel.paused", _AT_ONCE, Severity.NORMAL),
    )
}


@dataclass(frozen=True, slots=True)
class Wording:
    """A notification in words. `link` leads to the page that says more."""

    severity: Severity
    title: str
    text: str
    link: str


def wording_of(kind: Kind, *, environment: str, payload: Mapping[str, object], public_url: str) -> Wording:
    """The words for an event of this kind."""
    said = {name: str(value) for name, value in payload.items()}
    if kind.name.startswith("incident."):
        return _incident(kind, environment, said, public_url)
    if kind.name.startswith("quarantine."):
        return _quarantine(kind, environment, said, public_url)
    if kind.name == "build.failed":
        title = f"A build of '{environment}' failed"
        text = (
            f"Generation {said.get('generation', '?')} could not be built ({said.get('reason', '')}). Clients keep the "
            "snapshot they have. The build is tried again each second."
        )
        return Wording(kind.severity, title, text, public_url)
    if kind.name == "certificate.expiring":
        return _certificate(kind, environment, said, public_url)
    title = f"Channel '{said.get('channel', '')}' is paused"
    text = f"{said.get('reason', '')} Mend the target, then resume the channel; what was missed is in the inbox."
    return Wording(kind.severity, title, text, public_url)


def _incident(kind: Kind, environment: str, said: Mapping[str, str], public_url: str) -> Wording:
    nacked, sent = int(said.get("nacked") or 0), int(said.get("sent") or 0)
    resource = _resource(said)
    became = {
        "incident.opened": f"{resource} is refused in '{environment}'",
        "incident.regressed": f"{resource} is refused again in '{environment}'",
        "incident.escalating": f"More and more clients refuse {resource} in '{environment}'",
        "incident.resolved": f"{resource} is not refused any more in '{environment}'",
    }
    cause = f" Suspect: change {said['change']} by {said.get('author') or 'somebody'}." if said.get("change") else ""
    impact = f"{nacked} of {sent} {said.get('family', '')} clients refuse it since {said.get('since', '')}."
    if kind.name == "incident.resolved":
        text = f"It was refused since {said.get('since', '')}; nothing is left to do."
    else:
        text = f'{impact}{cause} They say: "{said.get("message", "")}". Next: look at the incident, mend or quarantine.'
    loud = kind.severity is not Severity.QUIET and sent > 0 and nacked > PAGE_SHARE * sent
    severity = Severity.PAGE if loud else kind.severity
    return Wording(severity, became[kind.name], text, f"{public_url}/incidents/{said.get('incident', '')}")


def _quarantine(kind: Kind, environment: str, said: Mapping[str, str], public_url: str) -> Wording:
    resource, revision = _resource(said), said.get("revision", "?")
    if kind.name == "quarantine.opened":
        title = f"{resource} is quarantined in '{environment}'"
        text = f"r{revision} is not served any more: {said.get('reason', '')}. A new revision ends the quarantine."
    else:
        title = f"{resource} is served again in '{environment}'"
        text = f"{said.get('actor', '')} released r{revision}: {said.get('reason', '')}."
    incident = said.get("incident", "")
    return Wording(kind.severity, title, text, f"{public_url}/incidents/{incident}" if incident else public_url)


def _certificate(kind: Kind, environment: str, said: Mapping[str, str], public_url: str) -> Wording:
    resource, day = _resource(said), said.get("day", "soon")
    became = "has expired" if said.get("expired") == "True" else "expires soon"
    title = f"A certificate of {resource} in '{environment}' {became}"
    text = f"Its last day is {day}; peers refuse it from then on. Next: renew it and write the resource again."
    return Wording(kind.severity, title, text, public_url)


def _resource(said: Mapping[str, str]) -> str:
    kind = by_word.get(said.get("type", ""))
    title = kind.title if kind is not None else "A resource"
    return f"{title} '{said['name']}'" if said.get("name") else f"One of several {title} resources"
