"""What somebody wants who types a command into the search box or the palette: the grammar. Pure.

A command begins with its words ("roll back to"), and names what it is about. It may end in "in" and an environment.
Nothing is decided here of what exists and who may do it, and no command changes anything: each leads to a page.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final

from xdscore.resource_types import by_word

MAX_CHARS: Final = 2_000
_ENVIRONMENT: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_DURATION: Final = re.compile(r"([1-9][0-9]{0,2})(min|m|h|d)")
_UNITS: Final = {"min": "minutes", "m": "minutes", "h": "hours", "d": "days"}
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_TO_HAVE: Final = frozenset({"get", "have", "see", "receive", "read"})
LIVE: Final = "live"
HELP: Final = "?"


class Verb(StrEnum):
    """What there is to do."""

    GO = "go to"
    EXPLAIN = "explain"
    EDIT = "edit"
    NEW = "new"
    QUARANTINE = "quarantine"
    RELEASE = "release"
    UNDO = "undo"
    ROLL_BACK = "roll back to"
    COMPARE = "compare"
    ALLOW = "allow"
    DENY = "deny"
    FREEZE = "freeze"
    WHERE = "where does"


@dataclass(frozen=True, slots=True)
class Intent:
    """A command that was understood. `what`: what it is about, such as a name, a change, a page or the number of a
    snapshot, or why something is frozen; `to`: of a comparison, the second, and of a freeze, how long. Each is empty
    where the command has none.
    """

    verb: Verb
    what: str = ""
    to: str = ""
    type: str = ""
    client: str = ""
    environment: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command for people: how it is written, and what it does. `openings`: the words with which it may begin, the
    usual ones first.
    """

    verb: Verb
    usage: str
    says: str
    openings: tuple[str, ...]

    @property
    def fill(self) -> str:
        """What to put into the box for somebody who goes on from there."""
        return self.openings[0] + (" " if self.usage != self.openings[0] else "")


COMMANDS: Final = (
    Command(Verb.GO, "go to PAGE", "opens a page, such as incidents or change sets", ("go to", "goto", "open")),
    Command(
        Verb.EXPLAIN,
        "explain NAME for CLIENT",
        "says why the client has, or does not have, the resource; also: why does CLIENT not get NAME",
        ("explain", "why"),
    ),
    Command(Verb.EDIT, "edit NAME", "opens the resource in the editor", ("edit",)),
    Command(
        Verb.NEW, "new TYPE", "begins a listener, cluster, route, …, an access rule or a channel", ("new", "create")
    ),
    Command(
        Verb.QUARANTINE,
        "quarantine NAME",
        "leads to the form that takes out of service what clients refused",
        ("quarantine",),
    ),
    Command(Verb.RELEASE, "release NAME", "leads to the form that ends a quarantine", ("release", "unquarantine")),
    Command(
        Verb.UNDO,
        "undo CHANGE",
        "shows what taking the change back would do; a change is its number or the beginning of its id",
        ("undo", "take back"),
    ),
    Command(
        Verb.ROLL_BACK,
        "roll back to SNAPSHOT",
        "shows what leading everything back to the snapshot would do",
        ("roll back to", "roll back", "rollback to", "rollback"),
    ),
    Command(
        Verb.COMPARE,
        "compare SNAPSHOT SNAPSHOT",
        "shows how two snapshots differ; live is what is now",
        ("compare", "diff"),
    ),
    Command(Verb.ALLOW, "allow NAME", "opens the form of a rule that allows it", ("allow", "grant")),
    Command(Verb.DENY, "deny NAME", "opens the form of a rule that denies it", ("deny", "forbid")),
    Command(
        Verb.FREEZE,
        "freeze ENVIRONMENT 2h WHY",
        "leads to the form that lets nobody write for a time, filled in",
        ("freeze",),
    ),
    Command(
        Verb.WHERE, "where does URL go", "says where a request goes, for everybody or for a client", ("where does",)
    ),
)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A way to go on from what was typed. `fill`: what is in the box then. `searches`: it looks for that, as a text."""

    fill: str
    usage: str
    says: str
    searches: bool = False


def intent_of(text: str) -> Intent | None:
    """The command that a text is, where it is a whole one; None for anything else."""
    words = _words(text)
    command, count = _opening(words)
    if command is None:
        return None
    rest, environment = _without_environment(words[count:])
    found = _READ[command.verb](rest)
    if found is None:
        return None
    return replace(found, verb=command.verb, environment=environment or found.environment)


def duration_of(word: str) -> timedelta | None:
    """How long a word such as 30m, 2h or 3d is; None where it says no such thing."""
    found = _DURATION.fullmatch(word.strip().lower())
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else None


def suggestions_for(text: str) -> tuple[Suggestion, ...]:
    """Commands that begin as the text does, or that it has begun; each command where nothing, or a question mark, was
    typed; and always at least one way to go on.
    """
    words = _words(text)
    said = " ".join(words)
    if not words or said == HELP:
        return tuple(Suggestion(each.fill, each.usage, each.says) for each in COMMANDS)
    command, _ = _opening(words)
    begun = [each for each in COMMANDS if each is command or any(_begins(one, said) for one in each.openings)]
    commands = [Suggestion(each.fill, each.usage, each.says) for each in begun]
    # A whole command has been carried out by then; nothing is left to be said of how it is written.
    shown = commands if intent_of(text) is None else []
    return (*shown, Suggestion(said, said, "look for these words in everything", searches=True))


def _begins(opening: str, said: str) -> bool:
    return opening.startswith(said.lower())


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.sub(r"[\x00-\x20\x7f-\xa0]+", " ", text[:MAX_CHARS]).split())


def _opening(words: Sequence[str]) -> tuple[Command | None, int]:
    """The command with whose words these begin, and the number of those words; the longest opening counts."""
    best: tuple[Command | None, int] = (None, 0)
    lower = [word.lower() for word in words]
    for command in COMMANDS:
        for opening in command.openings:
            parts = opening.split()
            if lower[: len(parts)] == parts and len(parts) > best[1]:
                best = (command, len(parts))
    return best


def _without_environment(words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The words, and the environment in which they end ("in prod"); empty where they end in none."""
    if len(words) > 1 and words[-2].lower() == "in" and _ENVIRONMENT.fullmatch(words[-1].lower()):
        return tuple(words[:-2]), words[-1].lower()
    return tuple(words), ""


Read = Callable[[tuple[str, ...]], Intent | None]


def _named(words: tuple[str, ...]) -> Intent | None:
    """A resource: a name, behind a type where one is said."""
    if len(words) > 1 and words[0].lower() in by_word:
        return Intent(Verb.GO, " ".join(words[1:]), type=words[0].lower())
    return Intent(Verb.GO, " ".join(words)) if words else None


def _explained(words: tuple[str, ...]) -> Intent | None:
    """NAME for CLIENT, or a question: does CLIENT not get NAME."""
    lower = [word.lower() for word in words]
    if lower[:1] in (["does"], ["doesn't"]):
        return _asked(words[1:])
    place = lower.index("for") if "for" in lower else len(words)
    found = _named(words[:place])
    client = " ".join(words[place + 1 :])
    if found is None or (place < len(words) and not client):
        return None
    return replace(found, client=client)


def _asked(words: tuple[str, ...]) -> Intent | None:
    """CLIENT not get NAME."""
    said = tuple(word for word in words if word.lower() not in ("not", "the"))
    place = next((at for at, word in enumerate(said) if word.lower() in _TO_HAVE), 0)
    found = _named(said[place + 1 :])
    if found is None or place == 0:
        return None
    return replace(found, what=found.what.rstrip("?"), client=" ".join(said[:place]))


def _made(words: tuple[str, ...]) -> Intent | None:
    return Intent(Verb.GO, " ".join(words).lower()) if words else None


def _one(words: tuple[str, ...]) -> Intent | None:
    """One word, such as a change."""
    said = [word for word in words if word.lower() not in ("change", "snapshot")]
    return Intent(Verb.GO, said[0].removeprefix("#")) if len(said) == 1 and said[0] != "#" else None


def _snapshot(words: tuple[str, ...]) -> Intent | None:
    found = _one(words)
    return found if found is not None and _NUMBER.fullmatch(found.what) else None


def _compared(words: tuple[str, ...]) -> Intent | None:
    said = [word.lower() for word in words if word.lower() not in ("snapshot", "snapshots", "and", "with", "to")]
    states = [word for word in said if _NUMBER.fullmatch(word) or word == LIVE]
    if not states or len(states) != len(said) or len(states) > 2:
        return None
    return Intent(Verb.GO, states[0], to=states[1] if len(states) > 1 else LIVE)


def _frozen(words: tuple[str, ...]) -> Intent | None:
    """An environment, for how long, and why; each may be left out, but a reason stands behind a time."""
    if not words:
        return Intent(Verb.GO)
    times = [place for place, word in enumerate(words[:2]) if duration_of(word) is not None]
    place = times[-1] if times else len(words)
    before = words[:place]
    if len(before) > 1 or not all(_ENVIRONMENT.fullmatch(word.lower()) for word in before):
        return None
    return Intent(
        Verb.GO,
        " ".join(words[place + 1 :]),
        to=words[place].lower() if times else "",
        environment="".join(before).lower(),
    )


def _gone(words: tuple[str, ...]) -> Intent | None:
    """A URL, "go" and, where one is said, for which client."""
    last = words[1].lower().rstrip("?") if len(words) > 1 else ""
    client = words[3:] if len(words) > 3 and words[2].lower() == "for" else ()
    if last != "go" or len(words) != 2 + bool(client) + len(client):
        return None
    return Intent(Verb.GO, words[0], client=" ".join(client))


_READ: Final[Mapping[Verb, Read]] = {
    Verb.GO: _made,
    Verb.EXPLAIN: _explained,
    Verb.EDIT: _named,
    Verb.NEW: _made,
    Verb.QUARANTINE: _named,
    Verb.RELEASE: _named,
    Verb.UNDO: _one,
    Verb.ROLL_BACK: _snapshot,
    Verb.COMPARE: _compared,
    Verb.ALLOW: _named,
    Verb.DENY: _named,
    Verb.FREEZE: _frozen,
    Verb.WHERE: _gone,
}
