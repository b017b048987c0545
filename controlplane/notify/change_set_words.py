"""The words of messages about change sets (texts.md section 6). Pure."""

from collections.abc import Callable, Mapping
from typing import Final


def change_set_words(kind: str, environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    """The title and text of a message about a change set. `kind`: that of the event; `said`: its data."""
    return _WORDS[kind.partition(".")[2]](f"'{said.get('title', '')}'", environment, said)


def _submitted(title: str, environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    why = f" They say: {said['reason']}." if said.get("reason") else ""
    return (
        f"Change set {title} for '{environment}' waits for review",
        f"{said.get('actor', '')} proposes it.{why} Next: look at what it changes, then approve it or turn it down.",
    )


def _approved(title: str, environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    return (
        f"Change set {title} for '{environment}' is approved",
        f"{said.get('actor', '')} approved it last.{_reason(said)} Next: publish or schedule it.",
    )


def _rejected(title: str, environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    text = f"{said.get('actor', '')}: {said.get('reason', '')}. Next: mend it and submit it again."
    return f"Change set {title} for '{environment}' is turned down", text


def _published(title: str, environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    text = f"{said.get('actor', '')} published it.{_reason(said)} Its change says how far the fleet is."
    return f"Change set {title} is published in '{environment}'", text


def _waiting(title: str, environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    text = f"{said.get('reason', '')} It is published when that ends, unless it expires or somebody cancels it."
    return f"Change set {title} for '{environment}' waits", text


def _stopped(title: str, environment: str, said: Mapping[str, str]) -> tuple[str, str]:
    text = f"{said.get('reason', '').rstrip('.')}. It is not scheduled any more. Next: mend it and schedule it again."
    return f"Change set {title} for '{environment}' was not published at its time", text


def _expired(title: str, environment: str, _said: Mapping[str, str]) -> tuple[str, str]:
    text = "Its time was over before it was published. Next: set a later time and submit it again, or delete it."
    return f"Change set {title} for '{environment}' has expired", text


def _reason(said: Mapping[str, str]) -> str:
    return f" Why: {said['reason']}." if said.get("reason") else ""


_WORDS: Final[Mapping[str, Callable[[str, str, Mapping[str, str]], tuple[str, str]]]] = {
    "submitted": _submitted,
    "approved": _approved,
    "rejected": _rejected,
    "published": _published,
    "waiting": _waiting,
    "stopped": _stopped,
    "expired": _expired,
}
