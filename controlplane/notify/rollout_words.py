"""What people are told of rollouts, in words (rollouts.md R7, R14). Pure.

Whoever wrote a change that was taken back reads where it stopped, who refused it, and that the fleet never had it.
"""

from collections.abc import Mapping
from typing import Final

# Of a pilot, which every change has, people are told only what did not go its way.
_ROUTINE: Final = ("rollout.opened", "rollout.done")
_PILOT: Final = "pilot"
_NOTHING: Final = ("", "[]")
_NEXT: Final[Mapping[str, str]] = {
    "rollout.opened": "watch it, if you like",
    "rollout.waiting": "let it go on, or abort it",
    "rollout.paused": "resume or abort it",
    "rollout.took_back": "read who refused it, mend it, and write it again",
    "rollout.done": "nothing",
    "rollout.aborted": "nothing, unless it should go on",
}


def is_news(kind: str, said: Mapping[str, str]) -> bool:
    """Whether an event of this kind tells people something that they need to hear. `said`: the event's data."""
    if kind == "rollout.aborted":
        return not _some(said)  # `rollout.took_back` of the same moment says more
    return kind not in _ROUTINE or said.get("mode") != _PILOT or _some(said)


def rollout_words(kind: str, environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    """The title and the text of a notification about a rollout."""
    label, names = _began(said.get("label", "a rollout")), said.get("names", "something")
    where = f"at step {said.get('step', '?')} of {said.get('steps', '?')}"
    why = said.get("reason", "").rstrip(".")
    who = f"{said['actor']}: " if said.get("actor") else ""
    match kind:
        case "rollout.opened":
            title = f"{label} of '{environment}' has begun"
            text = f"It carries changes of {said.get('by', 'somebody')}, in {said.get('steps', '?')} steps."
        case "rollout.waiting":
            title = f"{label} of '{environment}' waits for somebody"
            text = f"It stands {where}: {why}. It waits for {said.get('waits_for') or 'a person'}."
        case "rollout.paused":
            title = f"{label} of '{environment}' is paused"
            text = f"It stands {where}. {who}{why}. Nothing of it goes on or back by itself."
        case "rollout.took_back":
            title = f"{names} stopped on the way in '{environment}'"
            text = (
                f"{label} took it back {where}. {who}{why}. The fleet never had it: all others go on with what was "
                f"before. Written by {said.get('blamed') or said.get('by', 'somebody')}."
            )
        case "rollout.aborted":
            title = f"{label} of '{environment}' was aborted"
            text = f"It stood {where}. {who}{why}. What it carried waits for the next one."
        case _:
            title = f"{label} of '{environment}' is done"
            text = f"Every client may have it now{f', but for {names}' if _some(said) else ''}."
    return title, f"{text} Next: {_NEXT[kind]}."


def _some(said: Mapping[str, str]) -> bool:
    """Whether the rollout took something back."""
    return said.get("reverted", "") not in _NOTHING


def _began(label: str) -> str:
    return label[:1].upper() + label[1:]
