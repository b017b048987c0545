"""Finds, among resources that Envoy has not judged yet, those that it refuses. Pure: who judges comes from the caller.

Envoy takes a configuration as a whole and tells the first thing that it dislikes, so the resource at fault is searched
for: resources stand in the order in which they were written, and the shortest beginning of that row that is refused
ends in it. So where two resources cannot stand together the later one gives way, as with claims (`conflicts`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from xdscore.snapshot import EntryKey


class EnvoyVerdict(Enum):
    """How a question to Envoy ended."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNDECIDED = "undecided"  # no Envoy, no time, or it did not end well: never a reason to hold anything back


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of Envoy about a configuration: `text` is its complaint, or why there is no verdict."""

    verdict: EnvoyVerdict
    text: str = ""


ACCEPTED = Answer(EnvoyVerdict.ACCEPTED)
Judge = Callable[[Sequence[EntryKey]], Answer]
"""A function that asks Envoy about a configuration that holds these resources and no others."""


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search for the resources that Envoy refuses.

    `refused`: suspects that are at fault, with Envoy's words. `doubted`: resources that Envoy complains of and that are
    served all the same. `undecided`: why the search did not come to its end, or empty; without it, all that is in
    neither mapping is accepted.
    """

    refused: Mapping[EntryKey, str]
    doubted: Mapping[EntryKey, str]
    undecided: str = ""


def find_refused(context: Sequence[EntryKey], suspects: Sequence[EntryKey], judge: Judge) -> Search:
    """Search for the suspects that Envoy refuses, until it accepts what is left. `context` are the resources beside the
    suspects; they are never at fault: clients have acknowledged them, or Envoy has accepted them before.
    """
    row = [*context, *suspects]
    blamable = frozenset(suspects)
    refused: dict[EntryKey, str] = {}
    doubted: dict[EntryKey, str] = {}
    sound = 0  # so many from the beginning are known to be accepted together
    answer = judge(row)
    if answer.verdict is EnvoyVerdict.REFUSED and (base := judge(())).verdict is not EnvoyVerdict.ACCEPTED:
        return Search({}, {}, base.text or "it refuses an empty configuration")
    while answer.verdict is EnvoyVerdict.REFUSED:
        low, high = sound, len(row)
        while high - low > 1:
            middle = (low + high) // 2
            tried = judge(row[:middle])
            if tried.verdict is EnvoyVerdict.UNDECIDED:
                return Search(refused, doubted, tried.text)
            if tried.verdict is EnvoyVerdict.REFUSED:
                high, answer = middle, tried
            else:
                low = middle
        culprit = row.pop(high - 1)
        sound = high - 1
        certain = culprit in blamable and not about_unknown_cluster(answer.text)
        (refused if certain else doubted)[culprit] = answer.text
        answer = judge(row)
    return Search(refused, doubted, answer.text)


_CLUSTER_IS_ELSEWHERE = ("unknown", "not found", "no such", "does not exist", "not static", "statically defined")


def about_unknown_cluster(text: str) -> bool:
    """Whether Envoy complains of an unknown cluster. A proxy has clusters of its own in its bootstrap that nobody here
    knows of, and what is missing here is told by the references of the catalogue (XDS2002).
    """
    said = text.casefold()
    return "cluster" in said and any(words in said for words in _CLUSTER_IS_ELSEWHERE)
