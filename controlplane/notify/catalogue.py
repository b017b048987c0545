"""Which events people are told of, how often, and in which words (texts.md section 6). Pure.

What, where, since when, how many of how many, the probable cause, one link and one next step. Texts from clients come
in already cut and harmless; they are quoted, never interpreted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from urllib.parse import quote, urlencode

from controlplane.notify.change_set_words import change_set_words
from controlplane.notify.rollout_words import rollout_words
from xdscore.resource_types import by_word


class Severity(StrEnum):
    """How urgent a notification is. PAGE, the highest: more than a twentieth of the clients that were sent a content
    refuse it, clients lost something, or a large share of an environment's clients is gone.
    """

    QUIET = "quiet"
    NORMAL = "normal"
    PAGE = "page"

    @property
    def loudness(self) -> int:
        """The rank of the severity: a higher number is more urgent."""
        return list(Severity).index(self)


class Stage(Enum):
    """What a notification says of the thing that it is about: that it began, or is there still; that it is over; or
    what happened at a moment, of which no end is ever told.
    """

    BEGINS = "begins"
    ENDS = "ends"
    MOMENT = "moment"


PAGE_SHARE = 0.05
# What is kept of a link; a longer one would lead nowhere.
LINK_CHARS = 500


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of notification.

    `cooldown`: for how long people are not told again about the same subject.
    `after`: other kinds that also keep this one from being told during that time, if they were at least as severe.
    `stage`: whether it says that something begins or ends.
    `personal`: whether it is told to one person alone, in the inbox, and to no channel.
    """

    name: str
    cooldown: timedelta
    severity: Severity
    after: tuple[str, ...] = ()
    stage: Stage = Stage.MOMENT
    personal: bool = False

    @property
    def noun(self) -> str:
        """The word for what notifications of this kind are about; kinds with the same word tell of the same things."""
        return self.name.partition(".")[0]


_MINUTES_15 = timedelta(minutes=15)
_AT_ONCE = timedelta(0)
# Told once for each number of days that is left.
_ONCE = timedelta(days=30)
DAYS_LEFT = (1, 3, 14)

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("incident.opened", _MINUTES_15, Severity.NORMAL, stage=Stage.BEGINS),
        Kind("incident.regressed", _MINUTES_15, Severity.NORMAL, stage=Stage.BEGINS),
        Kind(
            "incident.escalating",
            _MINUTES_15,
            Severity.PAGE,
            after=("incident.opened", "incident.regressed"),
            stage=Stage.BEGINS,
        ),
        Kind("incident.unmuted", _AT_ONCE, Severity.NORMAL, stage=Stage.BEGINS),
        Kind("incident.assigned", _AT_ONCE, Severity.QUIET),
        Kind("incident.resolved", _AT_ONCE, Severity.QUIET, stage=Stage.ENDS),
        Kind("quarantine.opened", _AT_ONCE, Severity.NORMAL, stage=Stage.BEGINS),
        Kind("quarantine.released", _AT_ONCE, Severity.NORMAL, stage=Stage.ENDS),
        Kind("comment.mentioned", _AT_ONCE, Severity.QUIET, personal=True),
        Kind("build.failed", timedelta(hours=1), Severity.NORMAL),
        Kind("certificate.expiring", _AT_ONCE, Severity.NORMAL),
        Kind("hold.set", _AT_ONCE, Severity.NORMAL, stage=Stage.BEGINS),
        Kind("hold.released", _AT_ONCE, Severity.NORMAL, stage=Stage.ENDS),
        Kind("freeze.broken", _AT_ONCE, Severity.NORMAL),
        Kind("freeze.ended", _AT_ONCE, Severity.QUIET),
        Kind("review.broken", _AT_ONCE, Severity.NORMAL),
        # Quiet, so that nobody is woken because somebody asks for a review.
        Kind("change_set.submitted", _AT_ONCE, Severity.QUIET),
        Kind("change_set.approved", _AT_ONCE, Severity.QUIET),
        Kind("change_set.rejected", _AT_ONCE, Severity.QUIET, stage=Stage.ENDS),
        Kind("change_set.published", _AT_ONCE, Severity.QUIET, stage=Stage.ENDS),
        Kind("change_set.waiting", _AT_ONCE, Severity.NORMAL, stage=Stage.BEGINS),
        Kind("change_set.stopped", _AT_ONCE, Severity.NORMAL, stage=Stage.BEGINS),
        Kind("change_set.expired", _AT_ONCE, Severity.NORMAL, stage=Stage.ENDS),
        Kind("token.expiring", _ONCE, Severity.NORMAL),
        Kind("client.silent", _MINUTES_15, Severity.NORMAL),
        Kind("fleet.dropped", _MINUTES_15, Severity.PAGE),
        Kind("channel.paused", _AT_ONCE, Severity.NORMAL),
        Kind("messages.held", _AT_ONCE, Severity.NORMAL),
        Kind("rollout.opened", _AT_ONCE, Severity.QUIET),
        Kind("rollout.waiting", _MINUTES_15, Severity.NORMAL),
        Kind("rollout.paused", _AT_ONCE, Severity.NORMAL),
        Kind("rollout.took_back", _AT_ONCE, Severity.NORMAL),
        Kind("rollout.done", _AT_ONCE, Severity.QUIET),
        Kind("rollout.aborted", _AT_ONCE, Severity.NORMAL),
    )
}


OF_CHANNELS = tuple(kind.name for kind in KINDS.values() if not kind.personal)
"""The names of the kinds that channels are told."""


def beginnings(kind: Kind) -> frozenset[str]:
    """The names of the kinds that tell the beginning of what this one is about; none where no end of it is told."""
    return frozenset(each.name for each in KINDS.values() if each.noun == kind.noun and each.stage is Stage.BEGINS)


@dataclass(frozen=True, slots=True)
class Wording:
    """The severity, title and text of a notification. `link`: the URL of the page that says more."""

    severity: Severity
    title: str
    text: str
    link: str


def wording_of(kind: Kind, *, environment: str, payload: Mapping[str, object], public_url: str) -> Wording:
    """The words for an event of this kind. `payload`: the event's data; `public_url`: where the console is, for the
    link.
    """
    said = {name: str(value) for name, value in payload.items()}
    if kind.name.startswith("incident."):
        of_loss = said.get("cause") == "loss"
        return (_loss if of_loss else _incident)(kind, environment, said, public_url)
    if kind.name.startswith("quarantine."):
        return _quarantine(kind, environment, said, public_url)
    if kind.name == "build.failed":
        title = f"A build of '{environment}' failed"
        text = (
            f"Generation {said.get('generation', '?')} could not be built ({said.get('reason', '')}). Clients keep the "
            "snapshot they have. The build is tried again each second."
        )
        if "types" in said:
            text = (
                f"Generation {said.get('generation', '?')} was built without these types: {said['types']} "
                f"({said.get('reason', '')}). They stay as they were published before; the others advance. The next "
                "change is built with all types again."
            )
        return Wording(kind.severity, title, text, f"{public_url}{_environment_page(environment)}/builds")
    room = kind.name.partition(".")[0]
    title, text = _words_of(room, kind.name, environment, said)
    if kind.name in _LINKS:
        return Wording(kind.severity, title, text, _LINKS[kind.name](environment, said, public_url))
    page = _PAGES.get(kind.name, "").format(environment=_environment_page(environment))
    if room == "rollout":
        page = f"/rollouts/{said.get('rollout', '')}"
    if room == "change_set":
        page = f"/change-sets/{said.get('change_set', '')}"
    return Wording(kind.severity, title, text, public_url + page)


def _words_of(room: str, kind: str, environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    if room == "rollout":
        return rollout_words(kind, environment, said)
    if room == "change_set":
        return change_set_words(kind, environment, said)
    return _WORDS[kind](environment, said)


def _environment_page(environment: str) -> str:
    return f"/e/{quote(environment, safe='')}"


def _resource_page(environment: str, said: Mapping[str, str], public_url: str) -> str:
    """The URL of the page of the resource that `said` names; where its name makes the link too long to be stored whole,
    that of the environment's page.
    """
    page = f"{public_url}{_environment_page(environment)}"
    asked = urlencode({"type": said.get("type", ""), "name": said.get("name", "")})
    link = f"{page}/resource?{asked}"
    return link if len(link) <= LINK_CHARS else page


def _subject_page(environment: str, said: Mapping[str, str], public_url: str) -> str:
    """The URL of the page of what a comment is about, at the comment."""
    key, anchor = said.get("key", ""), f"#comment-{said.get('comment', '')}"
    if said.get("about") == "resource":
        word, _, name = key.partition("/")
        page = _resource_page(environment, {"type": word, "name": name}, public_url)
        return f"{page}&tab=comments{anchor}" if "?" in page and len(page) <= LINK_CHARS - 100 else page
    return f"{public_url}/{said.get('about', '')}s/{quote(key, safe='')}{anchor}"


def _mentioned(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    key = said.get("key", "")
    about = key.replace("/", " ", 1) if said.get("about") == "resource" else f"{said.get('about', '')} {key[:8]}"
    title = f"{said.get('author', '')} mentioned you in a comment on {about} in '{environment}'"
    return title, f'They say: "{said.get("text", "")}".'


def _tokens_page(_environment: str, said: Mapping[str, str], public_url: str) -> str:
    """The URL of the page that lists tokens of the kind in `said`, and only that token, unless its name makes the link
    too long to be stored whole.
    """
    page = f"{public_url}/tokens?{urlencode({'kind': said.get('kind', 'api')})}"
    link = f"{page}&{urlencode({'text': said.get('name', '')})}"
    return link if len(link) <= LINK_CHARS else page


def _paused(_environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    text = f"{said.get('reason', '')} Mend the target, then resume the channel; what was missed is in the inbox."
    return f"Channel '{said.get('channel', '')}' is paused", text


def _left_out(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    count = said.get("messages", "?")
    were = "message about '{}' was" if count == "1" else "messages about '{}' were"
    most = f" {said['of_one']} are about what '{said['who']}' says." if said.get("who") else ""
    text = (
        f"More came than channels are sent within an hour. Left out: {said.get('counts', '')}.{most} All of them are "
        "in the inbox. Next: look there, and at who causes most of them."
    )
    return f"{count} {were.format(environment)} not sent", text


def _held(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    reason = said.get("reason", "")
    text = f"{said.get('actor', '')}: {reason}. Changes of resources are refused until the hold is released."
    return f"'{environment}' is on hold", text


def _released(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    text = f"{said.get('actor', '')} released the hold. It was held for: {said.get('reason', '')}."
    return f"'{environment}' takes changes again", text


def _broken(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    text = f"{said.get('actor', '')}: {said.get('reason', '')}. It is frozen for: {said.get('freeze', '')}."
    return f"Somebody wrote to '{environment}' although it is frozen", text


def _unreviewed(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    text = f"{said.get('actor', '')}: {said.get('reason', '')}. Next: look at the change, and undo it if it is wrong."
    return f"Somebody wrote to '{environment}' without the review that it asks for", text


def _thawed(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    sooner = f"it ends at {_moment(said['ends'])}" if said.get("ends") else "it takes changes from now on"
    text = (
        f"By {said.get('actor', '')} {sooner}. It was frozen until {_moment(said.get('until', ''))} for: "
        f"{said.get('freeze', '')}."
    )
    return f"The freeze of '{environment}' ends before its time", text


def _certificate(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    became = "has expired" if said.get("expired") == "True" else "expires soon"
    day = said.get("day", "soon")
    text = f"Its last day is {day}; peers refuse it from then on. Next: renew it and write the resource again."
    return f"A certificate of {_resource(said)} in '{environment}' {became}", text


def _token(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    where = f" It is good for '{environment}' only." if environment else ""
    end = _moment(said.get("at", ""))
    text = f"Whoever uses it is refused from {end} on.{where} Make a new one and put it in its place."
    return f"Token '{said.get('name', '')}' expires within {_days(said)}", text


def _silent(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    text = (
        f"They were sent something more than {said.get('seconds', '?')} s ago and neither accepted nor refused it: "
        f"{said.get('names', '')}. They run what they accepted last. Next: look whether they are stuck."
    )
    count = said.get("clients", "?")
    return f"{count} {'client does' if count == '1' else 'clients do'} not answer in '{environment}'", text


def _dropped(environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    cause = f" Most of their streams ended so: {said['cause']}." if said.get("cause") else ""
    text = (
        f"They left within {said.get('seconds', '?')} s and are not back: {said.get('names', '')}.{cause} Clients "
        "run on with what they accepted last. Next: look whether they, the network, or an ADS server is down."
    )
    return f"{said.get('clients', '?')} of {said.get('of', '?')} clients are gone from '{environment}'", text


def _moment(text: str) -> str:
    """A time out of an event's payload, written for people; any text that is not a time is returned unchanged."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def _days(said: Mapping[str, str]) -> str:
    return "a day" if said.get("days") == "1" else f"{said.get('days', '?')} days"


_LINKS: Mapping[str, Callable[[str, Mapping[str, str], str], str]] = {
    "certificate.expiring": _resource_page,
    "comment.mentioned": _subject_page,
    "token.expiring": _tokens_page,
}
# Where there is more to see than the front page has.
_PAGES: Mapping[str, str] = {
    "channel.paused": "/messages",
    "messages.held": "/messages",
    "hold.set": "{environment}",
    "hold.released": "{environment}",
    "freeze.broken": "{environment}/changes",
    "review.broken": "{environment}/changes",
    "freeze.ended": "{environment}/freezes",
    "client.silent": "{environment}/clients",
    "fleet.dropped": "{environment}/clients",
}

_WORDS: Mapping[str, Callable[[str, Mapping[str, str]], tuple[str, str]]] = {
    "certificate.expiring": _certificate,
    "comment.mentioned": _mentioned,
    "channel.paused": _paused,
    "hold.set": _held,
    "messages.held": _left_out,
    "hold.released": _released,
    "freeze.broken": _broken,
    "review.broken": _unreviewed,
    "freeze.ended": _thawed,
    "token.expiring": _token,
    "client.silent": _silent,
    "fleet.dropped": _dropped,
}


def _incident(kind: Kind, environment: str, said: Mapping[str, str], public_url: str) -> Wording:
    nacked, sent = int(said.get("nacked") or 0), int(said.get("sent") or 0)
    resource = _resource(said)
    title = {
        "incident.opened": f"{resource} is refused in '{environment}'",
        "incident.regressed": f"{resource} is refused again in '{environment}'",
        "incident.escalating": f"More and more clients refuse {resource} in '{environment}'",
        "incident.unmuted": f"{resource} is refused in '{environment}', and not muted any more",
        "incident.assigned": f"{_assignee(said)} is to look after {resource}, which is refused in '{environment}'",
        "incident.resolved": f"{resource} is not refused any more in '{environment}'",
    }[kind.name]
    cause = f" Suspect: change {said['change']} by {said.get('author') or 'somebody'}." if said.get("change") else ""
    impact = f"{nacked} of {sent} {said.get('family', '')} clients refuse it since {_moment(said.get('since', ''))}."
    if kind.name == "incident.resolved" and said.get("by"):
        title, text = _closed(f"of {resource}", environment, said), f"{impact} That is as it was."
    elif kind.name == "incident.resolved":
        text = f"It was refused since {_moment(said.get('since', ''))}; nothing is left to do."
    else:
        now = f" Since then: {said['now']}." if said.get("now") else ""
        says = f'They say: "{said.get("message", "")}".'
        text = f"{_done(kind, said)}{impact}{now}{cause} {says} Next: look at the incident, mend or quarantine."
    loud = kind.severity is not Severity.QUIET and sent > 0 and nacked > PAGE_SHARE * sent
    severity = Severity.PAGE if loud else kind.severity
    return Wording(severity, title, text, f"{public_url}/incidents/{said.get('incident', '')}")


def _assignee(said: Mapping[str, str]) -> str:
    name = said.get("assignee", "")
    return f"The team '{name}'" if said.get("team") == "True" else name


def _done(kind: Kind, said: Mapping[str, str]) -> str:
    """The sentence, with a blank behind it, that says who assigned an incident, or what ended its mute; empty for other
    kinds.
    """
    if kind.name == "incident.assigned":
        return f"{said.get('by', '')} assigned it. "
    if kind.name == "incident.unmuted":
        by = said.get("by")
        return f"{by} unmuted it. " if by else f"It is not muted any more, because {said.get('because', '')}. "
    return ""


def _closed(about: str, environment: str, said: Mapping[str, str]) -> str:
    """The title of a notification that somebody has closed an incident."""
    became = "is ignored" if said.get("state") == "ignored" else "was resolved"
    return f"The incident {about} in '{environment}' {became} by {said['by']}"


def _loss(kind: Kind, environment: str, said: Mapping[str, str], public_url: str) -> Wording:
    """The words for an event about what clients lost by a change. The link leads to the change, where it can be
    undone.
    """
    change = said.get("change", "")
    counted = f"{said.get('nacked', '?')} of {said.get('sent', '?')} connected clients"
    if kind.name == "incident.resolved":
        title = f"What {counted} lost in '{environment}' is no open incident any more"
        if said.get("by"):
            title = _closed(f"of what {counted} lost", environment, said)
        text = (
            f"They lost {said.get('lost', '?')} by change {change[:8]} of {said.get('author', '')} on "
            f"{_moment(said.get('since', ''))}. The incident says what ended it; nothing is left to do."
        )
        return Wording(kind.severity, title, text, f"{public_url}/incidents/{said.get('incident', '')}")
    lost = f"{counted} lost {said.get('lost', '?')} in '{environment}'"
    title = {
        "incident.unmuted": f"{lost}, which is not muted any more",
        "incident.assigned": f"{_assignee(said)} is to look after what {lost}",
    }.get(kind.name, lost)
    text = (
        f"{_done(kind, said)}{said.get('message', '')} Lost since {_moment(said.get('since', ''))}: "
        f"{said.get('names', '')}. Who: {said.get('who', '')}. Of these kinds: {said.get('kinds', '')}."
    )
    severity = Severity.QUIET if kind.severity is Severity.QUIET else Severity.PAGE
    return Wording(severity, title, text, f"{public_url}/changes/{change}")


def _quarantine(kind: Kind, environment: str, said: Mapping[str, str], public_url: str) -> Wording:
    resource, revision = _resource(said), said.get("revision", "?")
    if kind.name == "quarantine.opened":
        title = f"{resource} is quarantined in '{environment}'"
        text = f"r{revision} is not served any more: {said.get('reason', '')}. A new revision ends the quarantine."
    else:
        title = f"{resource} is served again in '{environment}'"
        text = f"{said.get('actor', '')} released r{revision}: {said.get('reason', '')}."
    incident = said.get("incident", "")
    link = f"{public_url}/incidents/{incident}" if incident else _resource_page(environment, said, public_url)
    return Wording(kind.severity, title, text, link)


def _resource(said: Mapping[str, str]) -> str:
    kind = by_word.get(said.get("type", ""))
    title = kind.title if kind is not None else "A resource"
    return f"{title} '{said['name']}'" if said.get("name") else f"One of several {title} resources"
