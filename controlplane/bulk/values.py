"""What goes into a bulk act: what is done, and with which resources. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from controlplane.accounts.principal import Role
from controlplane.catalog.marking import Mark, words_of_marks
from controlplane.catalog.values import Delete, Existing, Expectation
from controlplane.common.errors import InputInvalid, InputTooLarge
from xdscore.codes import CATALOGUE
from xdscore.labels import LabelEdits, Requirement
from xdscore.resource_types import ResourceType

MAX_RESOURCES: Final = 1_000
# Each of them is told to channels.
MAX_QUARANTINED: Final = 100


class BulkAct(StrEnum):
    """What is done with many resources: deletion; another owner; labels; back to what each was before its newest
    revision; into quarantine, and out of it.
    """

    DELETE = "delete"
    OWNER = "owner"
    LABELS = "labels"
    RESTORE = "restore"
    QUARANTINE = "quarantine"
    RELEASE = "release"


ROLE_OF: Final[Mapping[BulkAct, Role]] = {
    BulkAct.DELETE: Role.EDITOR,
    BulkAct.OWNER: Role.EDITOR,
    BulkAct.LABELS: Role.EDITOR,
    BulkAct.RESTORE: Role.EDITOR,
    BulkAct.QUARANTINE: Role.OPERATOR,
    BulkAct.RELEASE: Role.OPERATOR,
}
"""The role that each act needs, on each of the resources; of an operator, in the environment as a whole."""

QUARANTINES: Final = frozenset({BulkAct.QUARANTINE, BulkAct.RELEASE})
"""The acts that take revisions out of service, or put them back."""

PROPOSABLE: Final = frozenset({BulkAct.DELETE, BulkAct.RESTORE})
"""The acts that change contents, and so can be proposed as a change set."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A resource that is meant. `revision`: the one that whoever chose it saw; None: whichever there is."""

    kind: ResourceType
    name: str
    revision: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The word of the type, and the name."""
        return self.kind.word, self.name

    @property
    def expect(self) -> Expectation:
        """The condition under which something is done with it."""
        return Existing.PRESENT if self.revision is None else frozenset({self.revision})


@dataclass(frozen=True, slots=True)
class Bulk:
    """An act upon many resources. `owner`: the one that they get; empty: nobody; `labels`: what becomes of their
    labels; `reason`: of a quarantine or release.
    """

    act: BulkAct
    chosen: tuple[Chosen, ...]
    owner: str = ""
    labels: LabelEdits = field(default_factory=dict)
    reason: str = ""

    @property
    def deletions(self) -> tuple[Delete, ...]:
        """The edits that delete all of them."""
        return tuple(Delete(each.kind, each.name, each.expect) for each in self.chosen)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks by which all of them get the owner, or the labels."""
        owner = self.owner if self.act is BulkAct.OWNER else None
        labels = self.labels if self.act is BulkAct.LABELS else {}
        return tuple(Mark(each.kind, each.name, owner, labels, expect=each.expect) for each in self.chosen)

    @property
    def words(self) -> str:
        """What is done, as the message of a change that has no other."""
        count = len(self.chosen)
        of = f"{self.chosen[0].kind.word} '{self.chosen[0].name}'" if count == 1 else f"{count:,} resources"
        match self.act:
            case BulkAct.OWNER | BulkAct.LABELS:
                return words_of_marks(self.marks)
            case BulkAct.DELETE:
                return f"delete {of}"[:1_000]
            case _:
                return f"{self.act.value} of {of}"[:1_000]


def most_of(act: BulkAct) -> int:
    """The most resources with which this may be done at once."""
    return MAX_QUARANTINED if act in QUARANTINES else MAX_RESOURCES


def bulk_check(bulk: Bulk) -> None:
    """Raise InputInvalid where the act lacks something or a resource is named twice, and InputTooLarge where there are
    too many.
    """
    if not bulk.chosen:
        raise InputInvalid("No resource is chosen. Nothing was changed.")
    if len(bulk.chosen) > most_of(bulk.act):
        raise too_many(len(bulk.chosen), bulk.act)
    if bulk.act is BulkAct.LABELS and not bulk.labels:
        raise InputInvalid("Say which labels to set or remove, such as team=pay or team-. Nothing was changed.")
    if bulk.act in QUARANTINES and not bulk.reason.strip():
        raise InputInvalid("Say why: it is told to channels, and kept. Nothing was changed.")
    if repeated := _repeated(bulk.chosen):
        findings = tuple(
            CATALOGUE["XDS3006"].finding("", word=each.kind.word, name=each.name).about(*each.key) for each in repeated
        )
        raise InputInvalid("A resource is named more than once. Nothing was changed.", findings=findings)


def too_many(count: int, act: BulkAct) -> InputTooLarge:
    """The error for an act upon more resources than may be acted upon at once."""
    why = ", for each of them is told to channels" if most_of(act) < MAX_RESOURCES else ""
    return InputTooLarge(
        f"{count:,} resources are meant; at most {most_of(act):,} at once are allowed{why}. Choose fewer, by a "
        "narrower filter or one part after the other. Nothing was changed."
    )


def _repeated(chosen: Sequence[Chosen]) -> tuple[Chosen, ...]:
    counted = Counter(keys_of(chosen))
    return tuple({each.key: each for each in chosen if counted[each.key] > 1}.values())


@dataclass(frozen=True, slots=True)
class Filter:
    """Resources that are meant by what they have in common, as lists are filtered. `status`: the word of a status;
    empty: any.
    """

    kind: ResourceType | None = None
    owner: str | None = None
    name_part: str = ""
    status: str = ""
    labels: tuple[Requirement, ...] = ()


def keys_of(chosen: Collection[Chosen]) -> tuple[tuple[str, str], ...]:
    """The types and names of these resources."""
    return tuple(each.key for each in chosen)
