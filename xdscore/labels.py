"""Labels: words in pairs, key=value, that people put on resources and clients, in the form and with the limits that
Kubernetes has for its own; and selectors, by which lists are filtered.

Labels are notes for people. Nothing that a client is sent, and nothing that it may read, depends on them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from xdscore.codes import shown

Labels = Mapping[str, str]
LabelEdits = Mapping[str, str | None]
"""What becomes of labels: the value that each of these keys gets; None: the label is removed."""

LABELS_KEY: Final = "@labels"
"""The key of a manifest under which the labels of its resource stand. No field of a message can have it."""

MAX_LABELS: Final = 64
MAX_PART_CHARS: Final = 63
MAX_PREFIX_CHARS: Final = 253
MAX_SELECTOR_CHARS: Final = 1_024
MAX_REQUIREMENTS: Final = 16

_WORD: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_PREFIX: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_OF_WORDS: Final = (
    f"up to {MAX_PART_CHARS} letters, digits, '-', '_' and '.', with a letter or digit at the beginning and the end"
)


def key_problem(key: str) -> str:
    """Why a label cannot have this key, as a sentence; empty where it can."""
    prefix, slash, name = key.rpartition("/")
    if len(name) > MAX_PART_CHARS or not _WORD.fullmatch(name):
        return f"The key '{shown(key)}' is not one of a label: {_OF_WORDS}, and before that a DNS name and '/' at most."
    if slash and (len(prefix) > MAX_PREFIX_CHARS or not _PREFIX.fullmatch(prefix)):
        return (
            f"The key '{shown(key)}' has a prefix that is no DNS name of up to {MAX_PREFIX_CHARS} characters in "
            "lowercase, such as 'example.com/'."
        )
    return ""


def value_problem(key: str, value: str) -> str:
    """Why the label with this key cannot have this value, as a sentence; empty where it can."""
    if value and (len(value) > MAX_PART_CHARS or not _WORD.fullmatch(value)):
        return f"The value '{shown(value)}' of '{shown(key)}' is not one of a label: empty, or {_OF_WORDS}."
    return ""


def edit_problems(edits: LabelEdits) -> tuple[str, ...]:
    """What is wrong with these edits of labels, a sentence each."""
    found = (key_problem(key) or value_problem(key, value or "") for key, value in edits.items())
    return tuple(filter(None, found))


def count_problem(labels: Mapping[str, object]) -> str:
    """Why something cannot have so many labels, as the end of a sentence; empty where it can."""
    return f"would have {len(labels)} labels; at most {MAX_LABELS} are allowed" if len(labels) > MAX_LABELS else ""


def edited(labels: Labels, edits: LabelEdits) -> dict[str, str]:
    """The labels after these edits, by key in order."""
    after = {**labels, **edits}
    return {key: value for key, value in sorted(after.items()) if value is not None}


def edits_between(before: Labels, after: Labels) -> dict[str, str | None]:
    """The edits that make `after` of `before`."""
    gone: dict[str, str | None] = {key: None for key in before if key not in after}
    return gone | {key: value for key, value in after.items() if before.get(key) != value}


def edits_read(words: Iterable[str]) -> dict[str, str | None]:
    """The edits that words such as `team=pay` and `old-` ask for. Raises ValueError with a sentence for each problem
    that makes a word unreadable; `edit_problems` says what is wrong with the rest.
    """
    edits: dict[str, str | None] = {}
    problems = []
    for word in words:
        key, equals, value = word.partition("=")
        is_removal = not equals and len(word) > 1 and word.endswith("-")
        key = word[:-1] if is_removal else key
        if not equals and not is_removal:
            problems.append(f"'{shown(word)}' is no label: write key=value, or key- to remove one.")
        elif key in edits:
            problems.append(f"The key '{shown(key)}' is given twice.")
        edits[key] = None if is_removal else value
    if problems:
        raise ValueError(" ".join(problems))
    return edits


def label_words(labels: Labels) -> tuple[str, ...]:
    """Each label as people write it, such as `team=pay`, by key."""
    return tuple(f"{key}={value}" for key, value in sorted(labels.items()))


def edit_words(edits: LabelEdits) -> tuple[str, ...]:
    """Each edit as people write it, such as `team=pay` or `old-`, by key."""
    return tuple(f"{key}-" if value is None else f"{key}={value}" for key, value in sorted(edits.items()))


def packed(labels: Labels) -> str:
    """The labels as the text that is stored: one a line, by key, with a line break before and after; empty where there
    are none. So a database finds `key=value` as a part of it.
    """
    return "".join(f"\n{word}" for word in label_words(labels)) + "\n" if labels else ""


def unpacked(text: str) -> dict[str, str]:
    """The labels in this stored text."""
    pairs = (line.partition("=") for line in text.split("\n") if line)
    return {key: value for key, _, value in pairs}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition of a selector: there is a label with the key and, unless `value` is None, with that value; or,
    where it is not `wanted`, there is none such.
    """

    key: str
    value: str | None = None
    wanted: bool = True

    @property
    def part(self) -> str:
        """What the stored text of labels holds if, and only if, there is such a label."""
        return f"\n{self.key}=" if self.value is None else f"\n{self.key}={self.value}\n"

    def takes(self, labels: Labels) -> bool:
        """Whether these labels fulfil the condition."""
        found = self.key in labels and self.value in (None, labels[self.key])
        return found is self.wanted

    def __str__(self) -> str:
        """The condition as people write it."""
        if self.value is None:
            return self.key if self.wanted else f"!{self.key}"
        return f"{self.key}{'=' if self.wanted else '!='}{self.value}"


def selector_read(text: str) -> tuple[Requirement, ...]:
    """The conditions of a selector, all of which have to hold: `team=pay`, `team!=pay`, `team` and `!team`, separated
    by commas. Raises ValueError with a sentence for each problem.
    """
    if len(text) > MAX_SELECTOR_CHARS:
        raise ValueError(f"A selector has at most {MAX_SELECTOR_CHARS} characters; this has {len(text)}.")
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if len(parts) > MAX_REQUIREMENTS:
        raise ValueError(f"A selector has at most {MAX_REQUIREMENTS} conditions; this has {len(parts)}.")
    found, problems = [], []
    for part in parts:
        requirement = _requirement(part)
        problem = key_problem(requirement.key) or value_problem(requirement.key, requirement.value or "")
        problems += [problem] if problem else []
        found.append(requirement)
    if problems:
        raise ValueError(" ".join(problems))
    return tuple(found)


def selector_problem(text: str) -> str:
    """Why a selector cannot be read, as sentences; empty where it can."""
    try:
        selector_read(text)
    except ValueError as error:
        return str(error)
    return ""


def _requirement(part: str) -> Requirement:
    for sign, wanted in (("!=", False), ("==", True), ("=", True)):
        key, found, value = part.partition(sign)
        if found:
            return Requirement(key.strip(), value.strip(), wanted)
    return Requirement(part.removeprefix("!").strip(), None, not part.startswith("!"))
