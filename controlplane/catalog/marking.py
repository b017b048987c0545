"""What is said about a resource beside its content: its owner and its labels. Pure.

Neither reaches a client, so a mark makes no revision and no snapshot, and no hold, freeze or review keeps anybody from
it. A change keeps in `Change.undo` what it found and what it left.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controlplane.catalog.values import Existing, Expectation
from xdscore.labels import LabelEdits, Labels, edit_words, edits_between, label_words
from xdscore.resource_types import ResourceType

Key = tuple[str, str]
_MAX_MESSAGE_CHARS: Final = 1_000  # the column


@dataclass(frozen=True, slots=True)
class Mark:
    """An edit of what is said about a resource, under the condition `expect`.

    `owner`: the owner that it gets; None: it keeps its own.
    `labels`: what becomes of its labels. `whole`: all labels that it has then; None: those that `labels` does not name
        stay.
    """

    kind: ResourceType
    name: str
    owner: str | None = None
    labels: LabelEdits = field(default_factory=dict)
    whole: Labels | None = None
    expect: Expectation = Existing.ANY

    @property
    def key(self) -> Key:
        """The word of the type, and the name."""
        return self.kind.word, self.name


@dataclass(frozen=True, slots=True)
class LabelsMoved:
    """A resource whose labels a change moved: what they were before it, and after."""

    type: str
    name: str
    before: Labels
    after: Labels

    @property
    def key(self) -> Key:
        """The word of the type, and the name."""
        return self.type, self.name

    def back(self, now: Labels) -> dict[str, str | None]:
        """The edits that put back what the change moved, except the labels that were set again since. `now`: the labels
        that there are.
        """
        edits = edits_between(self.after, self.before)
        return {key: value for key, value in edits.items() if now.get(key) == self.after.get(key)}

    @property
    def words(self) -> str:
        """What was put on and taken off, such as "+team=pay -old=1"."""
        moved = edits_between(self.before, self.after)
        on = (f"+{word}" for word in label_words({key: value for key, value in moved.items() if value is not None}))
        off = (f"-{word}" for word in label_words({key: self.before[key] for key in moved if key in self.before}))
        return " ".join((*off, *on))


@dataclass(frozen=True, slots=True)
class Marked:
    """What a mark does to a resource: its owner and its labels before and after."""

    key: Key
    owner: tuple[str, str]
    labels: tuple[Labels, Labels]

    @property
    def owner_moves(self) -> bool:
        """Whether the resource gets another owner."""
        return self.owner[0] != self.owner[1]

    @property
    def labels_move(self) -> bool:
        """Whether the resource gets other labels."""
        return self.labels[0] != self.labels[1]


def words_of_marks(marks: Sequence[Mark]) -> str:
    """What marks that all do the same do, as the message of a change: "labels of cluster 'pay': team=pay old-"."""
    first = marks[0]
    of = f"{first.kind.word} '{first.name}'" if len(marks) == 1 else f"{len(marks):,} resources"
    said = [f"owner of {of}: {first.owner or 'nobody'}"] if first.owner is not None else []
    said += [f"labels of {of}: {' '.join(edit_words(first.labels))}"] if first.labels else []
    return "; ".join(said)[:_MAX_MESSAGE_CHARS]


def labels_as_json(marked: Iterable[Marked]) -> dict[str, object]:
    """The changes of labels as the JSON object that `Change.undo` stores; an empty object where there are none."""
    kept = [[*each.key, dict(each.labels[0]), dict(each.labels[1])] for each in marked if each.labels_move]
    return {"labels": kept} if kept else {}


def labels_of(undo: Mapping[str, object] | None) -> tuple[LabelsMoved, ...]:
    """The changes of labels that `Change.undo` holds; empty where it holds none."""
    kept = (undo or {}).get("labels", [])
    return tuple(LabelsMoved(word, name, before, after) for word, name, before, after in kept)  # type: ignore[attr-defined]  # labels_as_json
