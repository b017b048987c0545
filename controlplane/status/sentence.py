"""Says in one sentence how an environment stands, the worst first: facts in, one sentence out. Pure.

The only place that decides it: home, the list and the page of environments, REST and `xdsctl environments` show what
stands here. What it tells of is what `environments.environment_status` says in a word; `EnvironmentStatus.reason` has
everything else that is wrong.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from controlplane.incidents.values import IncidentCause
from controlplane.rollouts.values import RolloutState
from controlplane.status.environments import EnvironmentStatus, Headline
from controlplane.status.values import Status

_SAID_CHARS: Final = 60  # of a message or a reason, so that the sentence stays one
_NAME_CHARS: Final = 80
_ID_CHARS: Final = 8  # as pages shorten a public id


class About(StrEnum):
    """What a link in a sentence leads to."""

    CHANGE = "change"
    INCIDENT = "incident"
    ROLLOUT = "rollout"


@dataclass(frozen=True, slots=True)
class Link:
    """A part of a sentence that leads somewhere. `id`: the public id of what it leads to."""

    text: str
    about: About
    id: str


Piece = str | datetime | Link
"""A part of a sentence: a text, in which words of others may stand; a time, which is read where "3 minutes ago" could
stand; or a link.
"""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in pieces, so that pages can link what it names and show times as they show all others."""

    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The sentence in one line, with times in UTC."""
        return "".join(_plain(each) for each in self.pieces)


@dataclass(frozen=True, slots=True)
class Worst:
    """The unresolved incident of an environment that matters most: of losses, else of refusals of what is served, the
    one with most clients.

    `clients`, `of`: how many lost or refuse something, of all that were connected, or were sent it.
    `type`, `name`, `revision`: what they refuse or what most of them lost; `name` is empty where nobody knows.
    `names`: how many names were lost, at least; 1 for a refusal.
    `change`, `author`, `message`: the change by which it came; empty where none is known. A message may be.
    """

    id: str
    cause: IncidentCause
    clients: int
    of: int
    type: str
    name: str
    since: datetime
    revision: int = 0
    names: int = 1
    change: str = ""
    author: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class OpenRollout:
    """The open rollout of an environment. `waits_for`: what it waits for, to be read after "waits for"; empty for
    nothing.
    """

    id: str
    state: RolloutState
    step: int
    steps: int
    waits_for: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """What the sentence tells beside the status of an environment.

    `connected`: how many clients are; `refusing`, `unanswered`: how many of them refuse what is published, or have not
    answered the last response of some type.
    `behind`: how many ADS processes do not serve the newest snapshot yet, which was `published_at`; None where nothing
    was published.
    """

    hold: str = ""
    worst: Worst | None = None
    rollout: OpenRollout | None = None
    connected: int = 0
    refusing: int = 0
    unanswered: int = 0
    behind: int = 0
    published_at: datetime | None = None


def environment_sentence(status: EnvironmentStatus, scene: Scene) -> Sentence:
    """The sentence that says what matters most about an environment with this status."""
    counts, total = status.counts, status.resources
    match status.status:
        case Headline.LOST:
            said = _lost(status.losses, scene.worst)
        case Headline.WITHHELD:
            count = counts[Status.WITHHELD]
            said = _said(f"{_share(count, total)} withheld: some clients, or all, get nothing of {_them(count)}.")
        case Headline.REFUSED:
            said = _refused(counts[Status.REFUSED], scene.worst)
        case Headline.QUARANTINED:
            said = _said(f"{_share(counts[Status.QUARANTINED], total)} quarantined: an earlier revision is served.")
        case Headline.STALLED:
            count = counts[Status.STALLED]
            said = _said(f"{_share(count, total)} stalled: a finding keeps {_them(count)} from being served.")
        case Headline.HELD:
            said = _said(f"On hold, so no resource can be changed: {_cut(scene.hold.rstrip('.'))}.")
        case Headline.WAITING:
            said = _waiting(counts[Status.WAITING], scene.rollout)
        case Headline.EMPTY:
            said = _said("It has no resources yet.")
        case _:
            said = _published(total, scene)
    return said


def _lost(losses: int, worst: Worst | None) -> Sentence:
    if worst is None:
        return _said(f"{_count(losses, 'loss', 'losses')} {_are(losses)} open: clients do not have what they had.")
    what = f"{worst.type} {_cut(worst.name, _NAME_CHARS)}" if worst.names == 1 else _count(worst.names, "name")
    more = f"; {_count(losses - 1, 'more loss', 'more losses')} {_are(losses - 1)} open" if losses > 1 else ""
    return Sentence((_incident(worst), f" lost {what}", *_by_change("since", worst), ", ", worst.since, f"{more}."))


def _refused(refused: int, worst: Worst | None) -> Sentence:
    if worst is None:
        return _said(f"Clients refuse {_count(refused, 'resource')}.")
    does = "refuses" if worst.clients == 1 else "refuse"
    if worst.name:
        number = f" r{worst.revision}" if worst.revision else ""
        what = f" {does} {worst.type} {_cut(worst.name, _NAME_CHARS)}{number}"
        others = refused - 1
    else:
        what, others = f" {does} a response, and nobody knows for which resource", refused
    more = f"; {_count(others, 'more resource')} {_are(others)} refused" if others > 0 else ""
    return Sentence((_incident(worst), what, *_by_change("of", worst), ", first ", worst.since, f"{more}."))


def _waiting(waiting: int, rollout: OpenRollout | None) -> Sentence:
    if rollout is not None:
        link = Link("The rollout", About.ROLLOUT, rollout.id)
        where = f"step {rollout.step} of {rollout.steps}"
        if rollout.state is RolloutState.PAUSED:
            return Sentence((link, f" is paused at {where}: it waits for a person to let it go on."))
        if rollout.waits_for:
            return Sentence((link, f" waits for {_cut(rollout.waits_for)}, at {where}."))
        return Sentence((link, f" is at {where}: the clients of its cohort are asked before all others."))
    if waiting:
        return _said(f"{_count(waiting, 'resource')} {'waits' if waiting == 1 else 'wait'} to be published.")
    return _said("What was written last waits for the next build.")


def _published(total: int, scene: Scene) -> Sentence:
    all_of_it = "Its only resource is" if total == 1 else f"All {total} resources are"
    if scene.published_at is None:
        return _said(f"{all_of_it} published.")
    if not scene.connected:
        return Sentence(
            (f"{all_of_it} published, and no client is connected; the newest snapshot is of ", scene.published_at, ".")
        )
    published = ("what was published ", scene.published_at)
    if scene.behind:
        who = _count(scene.behind, "ADS process", "ADS processes")
        does = "does" if scene.behind == 1 else "do"
        return Sentence((f"{who} {does} not serve ", *published, "; clients there keep what they had."))
    missing = min(scene.refusing + scene.unanswered, scene.connected)
    if missing:
        told = [
            f"{scene.refusing} refused the last response" if scene.refusing else "",
            f"{scene.unanswered} {_has(scene.unanswered)} not answered yet" if scene.unanswered else "",
        ]
        who = f"{scene.connected - missing} of {_count(scene.connected, 'client')}"
        has = _has(scene.connected - missing)
        return Sentence((f"{who} {has} ", *published, f": {', '.join(each for each in told if each)}."))
    who = "The only client has " if scene.connected == 1 else f"All {scene.connected} clients have "
    return Sentence((who, *published, "."))


def _incident(worst: Worst) -> Link:
    return Link(f"{worst.clients} of {_count(worst.of, 'client')}", About.INCIDENT, worst.id)


def _by_change(joined: str, worst: Worst) -> tuple[Piece, ...]:
    """By whose change it came, after the word `joined`; nothing where no change is known."""
    if not worst.change:
        return ()
    message = f" (“{_cut(worst.message)}”)" if worst.message else ""
    link = Link(f"change {worst.change[:_ID_CHARS]}", About.CHANGE, worst.change)
    return (f" {joined} ", link, f" by {worst.author}{message}")


def _said(text: str) -> Sentence:
    return Sentence((text,))


def _share(count: int, total: int) -> str:
    return f"{count} of {_count(total, 'resource')} {_are(count)}"


def _count(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def _cut(text: str, chars: int = _SAID_CHARS) -> str:
    """The text on one line, with at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


def _plain(piece: Piece) -> str:
    if isinstance(piece, Link):
        return piece.text
    return f"{piece.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if isinstance(piece, datetime) else piece
